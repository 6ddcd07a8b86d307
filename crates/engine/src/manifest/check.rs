//! Checks the manifest of an open database.

use alluvium_base::Corruption;

use super::current::{CURRENT, parse_current};
use super::file::{Manifest, file_name, parse, read_all};
use crate::error::Result;

impl Manifest {
    /// Reads `CURRENT` and the manifest as they are on the device now.
    ///
    /// # Errors
    /// [`Error::Corruption`] or [`Error::MissingFile`] if they are not as they were written.
    pub fn check(&self) -> Result<()> {
        if self.is_broken {
            return Ok(());
        }
        let current = parse_current(&read_all(&*self.storage, CURRENT)?)?;
        if current.number != self.number {
            let found = file_name(current.number);
            return Err(Corruption::new(CURRENT, 0, format!("the name {}", self.name()), found).into());
        }
        let name = self.name();
        parse(&name, &read_all(&*self.storage, &name)?, Some(self.end)).map(drop)
    }
}
