//! [`UnplacedTable`]: a table file that is removed again unless the manifest names it.

use alluvium_base::TableId;

use crate::core::Shared;
use crate::file_names::table_file_name;

/// The number of a table file that no durable record names yet. The file is removed if this is dropped before
/// [`UnplacedTable::place`], so an abandoned operation leaves nothing.
#[derive(Debug)]
pub(super) struct UnplacedTable<'s> {
    shared: &'s Shared,
    id: TableId,
    is_placed: bool,
}

impl<'s> UnplacedTable<'s> {
    /// For a file that will be created.
    pub fn new(shared: &'s Shared, id: TableId) -> Self {
        Self { shared, id, is_placed: false }
    }

    /// Declares that the manifest names the file.
    pub fn place(mut self) {
        self.is_placed = true;
    }
}

impl Drop for UnplacedTable<'_> {
    fn drop(&mut self) {
        // After a failed append only an opening can tell whether the manifest names it.
        let is_unnamed = || self.shared.manifest.lock().is_ok_and(|manifest| !manifest.is_broken());
        if !self.is_placed && is_unnamed() {
            self.shared.reclaimer.remove(table_file_name(self.id));
        }
    }
}
