//! [`FoundItem`]: an item that an iteration or a scan found.

use std::sync::Arc;

use super::read::{View, retry_when_moved};
use crate::error::{Error, Result};
use crate::item::{Item, ItemKind};
use crate::level::Version;
use crate::metadata::Metadata;

/// A key and its value.
pub type KeyValue = (Vec<u8>, Vec<u8>);

/// A live item in the form stored in tables and the log.
#[derive(Debug)]
pub(super) struct FoundItem {
    pub kind: ItemKind,
    /// In its stored form.
    pub key: Vec<u8>,
    /// A reference if the value is large: the value is read when the item's turn comes.
    pub value: Vec<u8>,
    pub metadata: Metadata,
}

impl FoundItem {
    pub fn of(item: &Item<'_>) -> Self {
        let (key, value) = (item.key.to_vec(), item.value.to_vec());
        Self { kind: item.kind, key, value, metadata: Metadata::of(item) }
    }

    /// The item in the form stored in the log and tables.
    pub fn item(&self) -> Item<'_> {
        let Metadata { flags, expires_at_ms } = self.metadata;
        Item { kind: self.kind, flags, expires_at_ms, key: &self.key, value: &self.value }
    }

    /// The item with its key and its value, wherever they are stored, in a version that keeps them.
    pub fn resolve_held(self, view: View<'_>) -> Result<(KeyValue, Metadata)> {
        match self.kind {
            ItemKind::Reference => Ok((view.large_item(&self.item())?, self.metadata)),
            _ => Ok(((self.key, self.value), self.metadata)),
        }
    }

    /// The same in the current version, if the item was found in `version`; `None` if the item is gone meanwhile.
    pub fn resolve(self, view: View<'_>, version: &Arc<Version>) -> Result<Option<(KeyValue, Metadata)>> {
        if self.kind != ItemKind::Reference {
            return self.resolve_held(view).map(Some);
        }
        let keyspace = view.keyspace;
        match view.large_item(&self.item()) {
            // The item was written to the log, and moved on, after it was found.
            Err(Error::MissingFile { .. }) if !Arc::ptr_eq(version, &keyspace.version.load()) => {
                let hash = keyspace.hasher.hash(&self.key);
                retry_when_moved(keyspace, |version| {
                    View { version, ..view }.find(hash, &self.key, |view, item| {
                        item.map(|item| Ok((view.any_item(item)?, Metadata::of(item)))).transpose()
                    })
                })
            }
            found => Ok(Some((found?, self.metadata))),
        }
    }
}

#[cfg(test)]
mod tests {
    use alluvium_base::PrefixRule;

    use super::super::scan::Iter;
    use super::*;
    use crate::{Db, Durability, KeyspaceOptions};

    /// A scan that passed its check before the keyspace was dropped, and loads the version after that. The window is
    /// too short for the simulation.
    #[test]
    fn a_scan_of_a_dropped_keyspace_misses_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let builder = Db::builder(directory.path()).durability(Durability::Buffered).background(false);
        let db = builder.open().unwrap();
        let options = KeyspaceOptions::semi_sorted(PrefixRule::Delimiter { byte: b'/' });
        let keyspace = db.keyspace_with("k", &options).unwrap();
        keyspace.insert("p/1", vec![7; 100_000]).unwrap();
        assert!(db.drop_keyspace("k").unwrap());
        let (shared, state) = (&keyspace.handle.shared, &keyspace.shared);
        shared.blobs.end_current(None);
        while db.run_background_job().unwrap() {}
        assert!(shared.blobs.files().is_empty());
        let version = state.version.load_full();
        for prefix in [Some(b"p"), None] {
            let (shared, state, version, now_ms) = (shared, state.clone(), version.clone(), shared.now_ms());
            let mut items = match prefix {
                Some(prefix) => Iter::over_prefix(shared, state, version, prefix, now_ms, None).unwrap(),
                None => Iter::over(shared, state, version, now_ms),
            };
            let found = items.next().expect("the log store still has the item");
            assert!(matches!(found, Err(Error::KeyspaceDropped { .. })), "{found:?}");
        }
    }
}
