//! Checking everything that is stored.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;

use alluvium_base::{BlobId, Corruption, TableId};
use alluvium_io::OpenMode;
use serde::Serialize;

use super::database::Db;
use super::scan::Iter;
use crate::blob::{BlobFile, BlobFiles, Blobs, LargeValue, RecordReader, Reference, walk};
use crate::chained::{DirectoryFile, SavedFile};
use crate::error::{Error, IoContext, Result};
use crate::file_names::directory_file_name;
use crate::item::ItemKind;
use crate::table::Section;

/// The findings of [`Db::verify`].
#[derive(Debug, Clone, Default, Serialize)]
pub struct VerifyReport {
    /// Number of table files read.
    pub tables: usize,
    /// Number of pages whose checksum, order and contents were checked.
    pub pages: u64,
    /// Number of items seen.
    pub items: u64,
    /// Number of log segments whose header and records were checked.
    pub log_segments: usize,
    /// Bytes of log files read.
    pub log_bytes: u64,
    /// Number of blob files read.
    pub blob_files: usize,
    /// Number of large items of which every chunk was checked.
    pub large_items: u64,
    /// Bytes of blob files that belong to no live item: collection will free them.
    pub garbage_bytes: u64,
    /// The problems found, one line each; empty if everything is sound.
    pub problems: Vec<String>,
}

impl VerifyReport {
    /// Notes damage, each only once; returns other errors.
    fn note(&mut self, outcome: Result<()>) -> Result<()> {
        match outcome {
            Err(error @ (Error::Corruption(_) | Error::MissingFile { .. })) => {
                let problem = error.to_string();
                if !self.problems.contains(&problem) {
                    self.problems.push(problem);
                }
                Ok(())
            }
            other => other,
        }
    }
}

impl Db {
    /// Reads and checks everything that is stored: all checksums, orders, filters and counts of tables; the headers and
    /// written records of the log; the manifest; all headers of blob files; and all large items, in the order of their
    /// positions. Writes nothing. Takes about 50 bytes of memory for each large item.
    ///
    /// # Errors
    /// [`Error::Io`] if something cannot be read. Damage is not an error: the report lists it.
    pub fn verify(&self) -> Result<VerifyReport> {
        let shared = self.shared();
        let mut report = VerifyReport::default();
        report.problems.extend(shared.damage.iter().map(ToString::to_string));
        let manifest = shared.manifest.lock().expect("no panic while held").check();
        report.note(manifest)?;
        self.verify_log(&mut report)?;
        let mut files = BTreeMap::new();
        // By address: versions of one keyspace share sections.
        let mut live: BTreeMap<TableId, BTreeMap<usize, Arc<Section>>> = BTreeMap::new();
        // Kept until everything is read: otherwise the space of tables that are merged meanwhile would be freed.
        for keyspace in shared.all_keyspaces() {
            report.note(shared.open_tables_of(&keyspace))?;
        }
        let versions: Vec<_> =
            shared.all_keyspaces().iter().map(|keyspace| keyspace.version.load_full()).collect();
        for version in &versions {
            files.extend(version.body.files().map(|file| (file.id, file.clone())));
            for section in version.body.sections() {
                let sections = live.entry(section.file_number()).or_default();
                sections.insert(Arc::as_ptr(section) as usize, section.clone());
            }
        }
        for file in files.values() {
            shared.check_open()?;
            let mut sections: Vec<_> =
                live.get(&file.id).map(|sections| sections.values().collect()).unwrap_or_default();
            sections.sort_unstable_by_key(|section| section.page_offset(0));
            let outcome = file.table.verify_sections(sections)?;
            report.pages += outcome.page_count;
            report.items += outcome.item_count;
            report.problems.extend(outcome.corruptions.iter().map(ToString::to_string));
        }
        let chains = versions.iter().filter_map(|version| version.chain.as_ref());
        for file in chains.flat_map(|chain| &chain.files) {
            shared.check_open()?;
            report.log_segments += 1;
            report.log_bytes += file.bytes;
            report.note(file.for_each_linked(shared.memory.budget().read_bytes, |_| Ok(())))?;
        }
        drop(versions);
        report.tables = files.len();
        self.verify_directories(&mut report)?;
        self.verify_blobs(&mut report)?;
        Ok(report)
    }

    /// Checks the files with directories of chains. None is replaced meanwhile.
    fn verify_directories(&self, report: &mut VerifyReport) -> Result<()> {
        let shared = self.shared();
        let _no_collection = shared.collect_lock.lock().expect("no panic while held");
        let _no_conversion = shared.convert_lock.lock().expect("no panic while held");
        for keyspace in shared.all_keyspaces() {
            shared.check_open()?;
            let version = keyspace.version.load_full();
            let Some(directory) = version.chain.as_ref().map(|chain| &chain.directory) else { continue };
            let Some(SavedFile { number, from, .. }) = directory.saving.file() else { continue };
            let name = directory_file_name(number);
            let check = || match shared.storage.open(&name, OpenMode::Read) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    Err(Error::MissingFile { file: name.clone() })
                }
                file => {
                    let file = file.context(|| format!("opening {name}"))?;
                    let named = DirectoryFile { number, keyspace: keyspace.id, from };
                    named.read(&*file, |_| directory.spec).map(drop)
                }
            };
            report.note(check())?;
        }
        Ok(())
    }

    /// Checks that the log's files contain what was written to them.
    fn verify_log(&self, report: &mut VerifyReport) -> Result<()> {
        let shared = self.shared();
        let mut segments: Vec<_> =
            shared.frozen.lock().expect("no panic while held").iter().cloned().collect();
        segments.push(shared.log.active_segment());
        for segment in segments {
            match segment.check_file() {
                Ok(0) => {}
                Ok(bytes) => {
                    report.log_segments += 1;
                    report.log_bytes += bytes;
                }
                error => report.note(error.map(drop))?,
            }
        }
        Ok(())
    }

    /// Checks that the records of live large items are sound and where they should be.
    fn verify_blobs(&self, report: &mut VerifyReport) -> Result<()> {
        let shared = self.shared();
        let mut records: BTreeMap<(BlobId, u64), Reference> = BTreeMap::new();
        let mut files = BlobFiles::new();
        for keyspace in shared.all_keyspaces() {
            let version = keyspace.version.load_full();
            // The version keeps these files, even if collection empties some meanwhile. Records of younger files are
            // too young to be checked.
            let held = version.blobs.files.clone();
            let newest = held.keys().next_back().copied();
            files.extend(held.iter().map(|(number, file)| (*number, file.clone())));
            let items = Iter::over(&self.handle().shared, keyspace.clone(), version, 0);
            let outcome = items.for_each_reference(|reference| {
                if Some(reference.file) <= newest {
                    records.insert((reference.file, reference.body), reference);
                }
            });
            report.note(outcome)?;
        }
        for file in files.values() {
            report.note(check_headers(file))?;
        }
        for reference in records.values() {
            report.note(check_record(&files, reference))?;
        }
        let live: u64 = records.values().map(Reference::stored_bytes).sum();
        report.large_items = records.len() as u64;
        report.blob_files = files.len();
        report.garbage_bytes = files.values().map(|file| file.size()).sum::<u64>().saturating_sub(live);
        Ok(())
    }
}

impl Iter {
    /// Calls `found` with the references of all items in blob files, without reading these.
    pub(super) fn for_each_reference(mut self, mut found: impl FnMut(Reference)) -> Result<()> {
        while let Some(found_item) = self.next_item()? {
            if found_item.kind == ItemKind::Reference {
                let large = found_item.item();
                LargeValue::required(&large)?.pieces.into_iter().for_each(&mut found);
            }
        }
        Ok(())
    }
}

/// Checks that the headers of a file form a chain from its start to its end.
pub(super) fn check_headers(file: &BlobFile) -> Result<()> {
    if file.is_empty() {
        return Ok(());
    }
    file.read_header()?;
    // A file that is being written grows meanwhile.
    let size = file.size();
    let end = walk(file, |_, _| Ok(()))?;
    if end >= size {
        return Ok(());
    }
    let expected = format!("a record of a file of {size} bytes");
    Err(Corruption::new(file.name(), end, expected, "no record's header").into())
}

fn check_record(files: &BlobFiles, reference: &Reference) -> Result<()> {
    let file = files.get(&reference.file).ok_or_else(|| Blobs::missing(reference.file))?;
    let mut reader = RecordReader::new(file.clone(), *reference);
    while reader.next_chunk()?.is_some() {}
    Ok(())
}
