//! The files that a state names.

use std::collections::BTreeSet;

use alluvium_base::{SegmentId, TableId};

use super::keyspace_state::{KeyspaceState, SavedDirectory};
use super::state::DatabaseState;

impl DatabaseState {
    /// Whether some keyspace uses the table file of this number.
    pub fn names_file(&self, id: TableId) -> bool {
        self.keyspaces.values().any(|state| state.body.files().any(|file| file == id))
    }

    /// Whether some keyspace has records in this log segment that are linked to chains.
    pub fn names_chained(&self, segment: SegmentId, seed: u64) -> bool {
        let has_it =
            |state: &KeyspaceState| state.chained.get(&segment).is_some_and(|found| found.seed == seed);
        self.keyspaces.values().any(has_it)
    }

    /// Whether some keyspace has its directory of chains in the file of this number.
    pub fn names_directory(&self, number: u64) -> bool {
        self.directories().any(|directory| directory.file == number)
    }

    /// How far the log was synced at least, as saved directories prove.
    pub fn synced(&self) -> (SegmentId, u64) {
        self.directories().map(|directory| directory.synced).max().unwrap_or_default()
    }

    fn directories(&self) -> impl Iterator<Item = &SavedDirectory> {
        self.keyspaces.values().filter_map(|state| state.directory.as_ref())
    }

    /// Numbers of the table files in use that are stored in the second directory, ascending.
    pub fn young_tables(&self) -> impl Iterator<Item = TableId> {
        let files = if self.young_tables.is_empty() { BTreeSet::new() } else { self.files() };
        self.young_tables.iter().copied().filter(move |file| files.contains(file))
    }

    /// Numbers of all table files in use.
    pub fn files(&self) -> BTreeSet<TableId> {
        self.keyspaces.values().flat_map(|keyspace| keyspace.body.files()).collect()
    }

    /// Notes the number of items in a table file; 0 means unknown.
    pub fn note_items(&mut self, file: TableId, items: u64) {
        if items > 0 {
            self.table_items.insert(file, items);
        }
    }

    /// Drops the item counts of table files that are not in use.
    pub fn forget_unnamed(&mut self) {
        if !self.table_items.is_empty() {
            let files = self.files();
            self.table_items.retain(|file, _| files.contains(file));
        }
    }
}
