//! Blob files: which of them exist, and how much of each the tables refer to.
//!
//! Counts decide which files are removed, so after any change they are taken from the tables themselves. A file counts
//! if anything refers to it, whatever is left of the manifest.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use alluvium_base::BlobId;

use super::Repair;
use super::report::ManifestRepair;
use super::tables::claims_of;
use crate::blob::Reference;
use crate::error::{IoContext, Result};
use crate::file_names::{blob_file_name, parse_blob_file_name, table_file_name};
use crate::manifest::DatabaseState;
use crate::table::Table;

impl Repair {
    /// Removes missing files from `state`, so that it can be opened: what is stored elsewhere can be read.
    pub fn check_blob_files(&mut self, state: &mut DatabaseState, manifest: ManifestRepair) -> Result<()> {
        let present = self.present_blob_files()?;
        let missing: Vec<BlobId> =
            state.blobs.keys().copied().filter(|number| !present.contains(number)).collect();
        for number in missing {
            state.blobs.remove(&number);
            state.keyspaces.values_mut().for_each(|keyspace| {
                keyspace.blob_references.remove(&number);
            });
            // For a rebuilt structure it is not known whether the file was dropped.
            if manifest != ManifestRepair::Rebuilt {
                self.report.problem(format!("{} is missing", blob_file_name(number)));
                self.report.blob_files_lost += 1;
            }
        }
        Ok(())
    }

    /// Counts the references in the tables of the new structure and in segments that stay, and names every file to
    /// which they refer.
    pub fn count_references(&mut self, state: &mut DatabaseState) -> Result<()> {
        let present = self.present_blob_files()?;
        let mut counts = std::mem::take(&mut self.chained_references);
        counts.values_mut().for_each(|files| files.retain(|file, _| present.contains(file)));
        let mut ends: BTreeMap<BlobId, u64> = BTreeMap::new();
        for number in state.files() {
            let claims = claims_of(state, number);
            let table = Table::open(&*self.storage, &table_file_name(number), &self.prefix_functions)?;
            for section in table.sections() {
                section.salvage(|item| {
                    if !claims.iter().any(|claim| claim.wants(&item)) {
                        return;
                    }
                    let references = Reference::all_of(&item.item.item);
                    for reference in references.iter().filter(|reference| present.contains(&reference.file)) {
                        let files = counts.entry(item.keyspace).or_default();
                        *files.entry(reference.file).or_default() += reference.stored_bytes();
                        let end = ends.entry(reference.file).or_default();
                        *end = (*end).max(reference.record_end());
                    }
                });
            }
        }
        for (&id, keyspace) in &mut state.keyspaces {
            keyspace.blob_references = counts.remove(&id).unwrap_or_default();
        }
        for (number, end) in ends {
            if let Entry::Vacant(unnamed) = state.blobs.entry(number) {
                let name = blob_file_name(number);
                let file = self.storage.open(&name, alluvium_io::OpenMode::Read);
                let len = file.and_then(|file| file.len()).context(|| format!("measuring {name}"))?;
                unnamed.insert(Some(end.min(len)));
            }
        }
        Ok(())
    }

    /// Names of the files that `state` does not need: an opening would remove them.
    pub fn unneeded_blob_files(&self, state: &DatabaseState) -> Result<Vec<String>> {
        let mut present = self.present_blob_files()?;
        present.retain(|number| !state.blobs.contains_key(number));
        Ok(present.into_iter().map(blob_file_name).collect())
    }

    pub(super) fn present_blob_files(&self) -> Result<BTreeSet<BlobId>> {
        let names = self.storage.list().context(|| "listing the database directory".to_owned())?;
        Ok(names.iter().filter_map(|name| parse_blob_file_name(name)).collect())
    }
}
