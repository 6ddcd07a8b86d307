//! The damage that an opening for reading ignored.

use alluvium_base::Corruption;

use super::database::Db;

impl Db {
    /// The damage in the log, and in blob files that were being written, when the database was opened for reading;
    /// empty for a sound database. Damaged items are missing from what is read, or reads that meet them report them; an
    /// older version of such an item may become visible. Openings for writing refuse such a database with
    /// [`crate::Error::Damaged`], and [`crate::repair()`] makes it sound.
    ///
    /// Damage in tables and in finished blob files is found by [`Db::verify`] and by gets.
    pub fn damage(&self) -> &[Corruption] {
        &self.shared().damage
    }
}
