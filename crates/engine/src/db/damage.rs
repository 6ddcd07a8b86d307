//! What an opening for reading went on without.

use alluvium_base::Corruption;

use super::database::Db;

impl Db {
    /// What was found wrong with the log, and with blob files that were being written, when the database was opened for
    /// reading: empty for a sound one. What is listed is missing from what is read, or reported by whatever meets it;
    /// behind it an older value may show. Openings for writing refuse such a database with
    /// [`crate::Error::Damaged`], and [`crate::repair()`] makes it sound.
    ///
    /// Damage in tables and in finished blob files is found by [`Db::verify`] and by gets.
    pub fn damage(&self) -> &[Corruption] {
        &self.shared().damage
    }
}
