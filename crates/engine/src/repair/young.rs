//! The directory of young levels in a repair.

use super::Repair;
use super::report::ManifestRepair;
use super::structure::Structure;
use crate::error::{Error, Result};
use crate::young_directory::{YoungDirectory, do_without};

impl Repair {
    /// Checks that the second directory belongs to this database, as far as the manifest still tells. Returns `true` if
    /// the file that identifies it has to be written again.
    ///
    /// # Errors
    /// [`Error::YoungDirectory`] if it belongs to another database, and if it is not given although tables are in it,
    /// unless `is_lost` says that it no longer exists: then its tables count as missing.
    pub fn find_young_directory(
        &mut self,
        structure: &mut Structure,
        young: Option<&YoungDirectory>,
        is_lost: bool,
    ) -> Result<bool> {
        let state = &mut structure.state;
        let Some(young) = young else {
            match do_without(&*self.storage, state) {
                Err(Error::YoungDirectory { .. }) if is_lost => {
                    state.young_directory = None;
                    state.young_tables.clear();
                }
                checked => checked?,
            }
            return Ok(false);
        };
        let id = match young.id() {
            Ok(id) => id,
            Err(damage @ Error::Corruption(_)) => {
                self.report.problem(damage);
                None
            }
            Err(error) => return Err(error),
        };
        if structure.report == ManifestRepair::Rebuilt {
            // The manifest may have lost it.
            state.young_directory = state.young_directory.or(id);
        }
        if id.is_some() || state.young_directory.is_none() {
            young.check(state)?;
        }
        young.note_tables(state);
        Ok(id.is_none() && state.young_directory.is_some())
    }
}
