//! Checks the files of a copy before it becomes a database.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_base::PrefixFunction;
use alluvium_io::{OpenMode, Storage};

use crate::blob::{BlobFile, BlobFiles, RecordReader, Reference};
use crate::chained::ChainFile;
use crate::db::verify::check_headers;
use crate::error::{IoContext, Result};
use crate::file_names::table_file_name;
use crate::level::Reclaimer;
use crate::manifest::DatabaseState;
use crate::repair::live_items;
use crate::table::Table;

/// Bytes of a segment that are read at a time.
const READ_BYTES: usize = 256 << 10;

/// Reads the tables and blob files that `state` names, one table at a time, and the large items to which tables refer.
/// Takes the memory of one table's directory, and 50 bytes for each of the table's large items.
///
/// # Errors
/// [`crate::Error::Corruption`] names the first damaged file.
pub(super) fn check_files(
    storage: &Arc<dyn Storage>,
    state: &DatabaseState,
    prefix_functions: &[PrefixFunction],
) -> Result<()> {
    let reclaimer = Reclaimer::new(storage.clone(), prefix_functions.to_vec());
    let mut blobs = BlobFiles::new();
    for (&number, &sealed_bytes) in &state.blobs {
        let file = BlobFile::open(&reclaimer, number, Some(sealed_bytes.unwrap_or(0)))?;
        check_headers(&file)?;
        blobs.insert(number, file);
    }
    for number in state.files() {
        let table = Table::open(&**storage, &table_file_name(number), prefix_functions)?;
        let live = live_items(state, number);
        let outcome = table.verify(|section| live.has(section))?;
        if let Some(corruption) = outcome.corruptions.into_iter().next() {
            return Err(corruption.into());
        }
        check_large_items(&table, &live, &blobs)?;
    }
    Ok(())
}

/// Reads the segments of chained keyspaces in a copy, one after the other. Takes the memory of one record.
///
/// # Errors
/// [`crate::Error::Corruption`] names the first damaged file.
pub(super) fn check_segments<'a>(
    storage: &Arc<dyn Storage>,
    segments: impl Iterator<Item = &'a ChainFile>,
) -> Result<()> {
    let reclaimer = Reclaimer::new(storage.clone(), Vec::new());
    for &ChainFile { segment, seed, bytes, ref file, .. } in segments {
        let name = file.name();
        let copy = storage.open(name, OpenMode::Read).context(|| format!("opening {name}"))?;
        ChainFile::new(segment, (seed, bytes), (copy, Arc::default()), &reclaimer)
            .for_each_linked(READ_BYTES, |_| Ok(()))?;
    }
    Ok(())
}

/// Checks the large items of a table, in the order in which blob files store them.
fn check_large_items(table: &Table, live: &crate::repair::LiveItems, blobs: &BlobFiles) -> Result<()> {
    if blobs.is_empty() {
        return Ok(());
    }
    let mut references = BTreeMap::new();
    for section in table.sections().iter().filter(|section| live.has(section)) {
        section.salvage(|item| {
            for reference in Reference::all_of(&item.item.item) {
                if live.wants(&item) {
                    references.insert((reference.file, reference.body), reference);
                }
            }
        });
    }
    for reference in references.values() {
        // References to a file that is gone are in obsolete versions.
        let Some(file) = blobs.get(&reference.file) else { continue };
        let mut reader = RecordReader::new(file.clone(), *reference);
        while reader.next_chunk()?.is_some() {}
    }
    Ok(())
}
