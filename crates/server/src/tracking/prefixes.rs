//! [`Prefixes`]: clients that are told about all keys with a prefix.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::changes::Change;

/// Clients by prefixes. A prefix without clients has no entry.
#[derive(Debug, Default)]
pub(super) struct Prefixes(BTreeMap<Box<[u8]>, BTreeSet<u64>>);

/// Keys with the session that has changed each.
type Changed = BTreeMap<Arc<[u8]>, u64>;

impl Prefixes {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn insert(&mut self, prefix: &[u8], client: u64) {
        self.0.entry(prefix.into()).or_default().insert(client);
    }

    pub(super) fn remove(&mut self, prefix: &[u8], client: u64) {
        if let Some(clients) = self.0.get_mut(prefix) {
            clients.remove(&client);
            if clients.is_empty() {
                self.0.remove(prefix);
            }
        }
    }

    /// Each client that is to be told, with the keys that were changed and have one of its prefixes. There is one entry
    /// for each prefix.
    pub(super) fn concerned(&self, changes: &[Change]) -> Vec<(u64, Changed)> {
        let mut concerned = Vec::new();
        for (prefix, clients) in &self.0 {
            let with_prefix = changes.iter().filter(|change| change.key.starts_with(prefix));
            let changed: Changed = with_prefix.map(|change| (change.key.clone(), change.writer)).collect();
            if !changed.is_empty() {
                concerned.extend(clients.iter().map(|client| (*client, changed.clone())));
            }
        }
        concerned
    }
}

/// Whether there may be a key with both prefixes, so that a client with both would be told twice.
pub(crate) fn overlap(one: &[u8], other: &[u8]) -> bool {
    one.starts_with(other) || other.starts_with(one)
}
