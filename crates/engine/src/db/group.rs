//! [`GroupItems`]: the items of one prefix, from a row of the row cache.

use std::sync::Arc;

use alluvium_base::{HashRange, KeyHash};
use alluvium_cache::Era;

use super::merged_items::MergedItems;
use crate::core::{GROUP_BYTES_MAX, KeyspaceShared, Shared};
use crate::error::Result;
use crate::item::EncodedItem;
use crate::level::Version;
use crate::merge::Ascending;
use crate::planted_race::PlantedRace;

/// What tables have for a prefix, in order.
#[derive(Debug)]
pub(super) struct GroupItems {
    keyspace: Arc<KeyspaceShared>,
    /// Encoded items, one after the other.
    encoded: Vec<u8>,
    /// The hash and the position of the current item.
    current: Option<(KeyHash, usize)>,
    /// Position of the next item.
    next: usize,
}

impl GroupItems {
    /// A sequence of the items in `encoded`, before the first.
    pub fn new(keyspace: Arc<KeyspaceShared>, encoded: Vec<u8>) -> Self {
        Self { keyspace, encoded, current: None, next: 0 }
    }
}

impl Ascending for GroupItems {
    fn advance(&mut self) -> Result<bool> {
        let start = self.next;
        self.current = EncodedItem::decode(&self.encoded[start..]).map(|EncodedItem { item, bytes }| {
            self.next += bytes.len();
            (self.keyspace.hasher.hash(item.key), start)
        });
        Ok(self.current.is_some())
    }

    fn current_encoded(&self) -> Option<(KeyHash, EncodedItem<'_>)> {
        let (hash, start) = self.current?;
        Some((hash, EncodedItem::decode(&self.encoded[start..])?))
    }
}

/// A prefix of a keyspace, and the era in which a scan of it began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group<'a> {
    pub keyspace: &'a Arc<KeyspaceShared>,
    pub version: &'a Version,
    pub prefix: &'a [u8],
    /// The hashes of the prefix's keys.
    pub range: HashRange,
    pub era: Era,
}

impl Group<'_> {
    /// The items of the prefix in log and tables without a read, if a row has those of the tables.
    ///
    /// A row of a later era may have items that are younger than the log of the version, of which some are hidden by
    /// it: the scan would see a part of a batch.
    pub fn find(&self, shared: &Shared) -> Result<Option<MergedItems>> {
        let Self { keyspace, version, prefix, range, era } = *self;
        let Some(row) = shared.rows.find_group(keyspace.id, version, prefix) else { return Ok(None) };
        if shared.rows.era() != Some(era) {
            return Ok(None);
        }
        MergedItems::of_group(version, range, GroupItems::new(keyspace.clone(), row)).map(Some)
    }

    /// Takes the prefix's items of the tables out of `merged`, which is at its beginning, makes a row of them if they
    /// are small, and puts them back.
    ///
    /// Does nothing if the log has items of the prefix: the conversion of such items may have removed the prefix's row
    /// already, and would leave behind one that is made now. Items written since are converted in a later era.
    pub fn fill(&self, shared: &Shared, merged: &mut MergedItems) -> Result<()> {
        if merged.has_logged() && !shared.planted_bugs.has(PlantedRace::GroupsBesideLog) {
            return Ok(());
        }
        let Self { keyspace, version, prefix, era, .. } = *self;
        let mut encoded = Vec::new();
        let is_whole = merged.take_tables(&mut encoded, GROUP_BYTES_MAX)?;
        if is_whole {
            shared.rows.fill_group(era, keyspace.id, version, prefix, &encoded);
        }
        merged.put_back(GroupItems::new(keyspace.clone(), encoded))
    }
}

#[cfg(test)]
mod tests {
    use alluvium_base::PrefixRule;

    use super::*;
    use crate::{Db, Durability, KeyspaceOptions};

    /// The window between the loading of a version and the look at the row is too short for the simulation.
    #[test]
    fn a_row_of_a_later_era_is_not_used() {
        let directory = tempfile::tempdir().unwrap();
        let db = Db::builder(directory.path()).durability(Durability::Buffered).open().unwrap();
        let options = KeyspaceOptions::semi_sorted(PrefixRule::Delimiter { byte: b'/' });
        let keyspace = db.keyspace_with("k", &options).unwrap();
        let (shared, state) = (keyspace.database(), &keyspace.shared);
        keyspace.insert("p/1", "old").unwrap();
        let prefix = b"p";
        let range = HashRange::of_high_half(state.hasher.prefix_hash(prefix).unwrap());
        let (era, version) = (shared.rows.era().unwrap(), state.version.load_full());
        let early = Group { keyspace: state, version: &version, prefix, range, era };
        // In the log of another version, and then in a row.
        db.flush().unwrap();
        let mut batch = db.batch();
        batch.insert(&keyspace, "p/1", "new");
        batch.insert(&keyspace, "p/2", "new");
        batch.commit().unwrap();
        db.flush().unwrap();
        assert_eq!(keyspace.scan_prefix(prefix).unwrap().count(), 2);
        let (era, version) = (shared.rows.era().unwrap(), state.version.load_full());
        let late = Group { version: &version, era, ..early };
        assert!(late.find(shared).unwrap().is_some());
        // It would find `p/1` in its own log, and `p/2` in the row.
        assert!(early.find(shared).unwrap().is_none());
    }
}
