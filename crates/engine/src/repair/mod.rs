//! Repair: makes a sound database of what a damaged one still contains.
//!
//! Everything is judged by its own checksums. A sound manifest is trusted. A damaged one is read record by record;
//! where records are lost, the tables themselves tell what they are and in which order they were written. The sound
//! pages of damaged tables are written to new tables, and so are the sound records of a damaged log; filters and
//! indexes follow from the items. A new manifest makes all of this count at once, and only then are the damaged files
//! renamed or removed.
//!
//! Records of large items are read too. An item is removed if its record, or its whole blob file, is lost.
//!
//! Lost data may make visible what they hid: after the loss of a page or record, an older version of its key, or one
//! that was removed, can reappear. [`RepairReport::may_show_old_values`] tells whether that is possible.
//!
//! Architecture invariant: no file of the database changes before the new manifest counts, so that a repair interrupted
//! by a crash can be repeated.

mod blobs;
mod chained;
mod log;
mod placing;
mod records;
mod report;
mod rewrite;
mod segments;
mod set_aside;
mod structure;
mod tables;
mod young;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alluvium_base::{BlobId, KeyspaceId, PrefixFunction, TableId};
use alluvium_io::{FileStorage, IoOptions, Storage};
use alluvium_model::Plan;

use crate::core::complete_hasher;
use crate::environment::Environment;
use crate::error::{Error, IoContext, Result};
use crate::file_names::{parse_blob_file_name, parse_directory_file_name, parse_table_file_name};
use crate::log::segment;
use crate::manifest::{DatabaseState, Manifest, is_manifest_file_name};
use crate::recovery;
use crate::young_directory::{YoungDirectory, YoungLevels};
use records::Records;
pub use report::{ManifestRepair, RepairReport};
use structure::Structure;
pub(crate) use tables::{LiveItems, live_items};

/// Options of a repair.
#[derive(Debug, Clone)]
pub struct RepairOptions {
    /// Only report what would be done. Default false.
    pub dry_run: bool,
    /// Remove the damaged files at the end instead of keeping them under names that begin with `lost-`. Default false.
    pub discard: bool,
    /// The plan of keyspaces whose own plan was lost with the manifest. Default [`Plan::silt`].
    pub plan: Plan,
    /// Functions that find prefixes, as for [`crate::Builder::prefix_function`]. Default none.
    pub prefix_functions: Vec<PrefixFunction>,
    /// The directory of young levels, as for [`crate::Builder::young_levels_dir`]. Default none. If the manifest is
    /// lost, nothing shows that there was one.
    pub young_levels_dir: Option<PathBuf>,
    /// Whether the directory of young levels is lost, and its content is to be given up. Default false.
    pub without_young_levels: bool,
}

impl Default for RepairOptions {
    fn default() -> Self {
        Self {
            dry_run: false,
            discard: false,
            plan: Plan::silt(),
            prefix_functions: Vec::new(),
            young_levels_dir: None,
            without_young_levels: false,
        }
    }
}

/// Repairs the database in the directory `path` so that it opens again, with everything that can still be read.
///
/// Everything outside damaged pages and records is kept. Damaged files stay in the directory under names that begin
/// with `lost-` until they are removed by hand. A sound database is left as it is. An interrupted repair can be
/// repeated.
///
/// Reads the whole database. Holds the items of one table or log segment in memory at a time.
///
/// # Errors
/// [`Error::Locked`] while the database is open, [`Error::NotADatabase`] if the directory contains no part of a
/// database, [`Error::NewerFormat`] and [`Error::OlderFormat`] for files of another version, which are not damaged.
/// [`Error::Io`] if the new files cannot be written; nothing is lost then.
pub fn repair(path: impl AsRef<Path>, options: &RepairOptions) -> Result<RepairReport> {
    let path = path.as_ref();
    let storage = FileStorage::open(path, IoOptions::default())
        .context(|| format!("opening directory {}", path.display()))?;
    let environment = Environment::over(Arc::new(storage));
    let young = options.young_levels_dir.clone().map(|young| YoungLevels::Directory(young, 0));
    let young = young
        .map(|young| young.open(environment.storage.clone(), path, false, IoOptions::default()))
        .transpose()?;
    repair_with(environment, young.as_ref(), options)
}

/// Like [`repair`], in any storage.
#[doc(hidden)]
pub fn repair_in(environment: Environment, options: &RepairOptions) -> Result<RepairReport> {
    repair_with(environment, None, options)
}

/// Like [`repair_in`], with the tables of young levels in a second storage.
#[doc(hidden)]
pub fn repair_in_both(
    environment: Environment,
    young: Arc<dyn Storage>,
    options: &RepairOptions,
) -> Result<RepairReport> {
    let young = YoungLevels::Storage(young, 0).open(
        environment.storage.clone(),
        Path::new(""),
        false,
        IoOptions::default(),
    )?;
    repair_with(environment, Some(&young), options)
}

fn repair_with(
    environment: Environment,
    young: Option<&YoungDirectory>,
    options: &RepairOptions,
) -> Result<RepairReport> {
    options.plan.check_executable()?;
    let plan = &alluvium_model::LevelsPlan::try_from(options.plan.clone())?.executed();
    let storage = match young {
        Some(young) => young.directories.clone(),
        None => environment.storage,
    };
    refuse_foreign(&*storage)?;
    let _lock = recovery::lock(&*storage)?;
    if let Some(young) = young {
        // No other file in it must be mistaken for a file of the database.
        match young.id() {
            Err(Error::Corruption(_)) => {}
            id => drop(id?),
        }
    }
    let mut repair = Repair {
        storage: storage.clone(),
        dry_run: options.dry_run,
        prefix_functions: options.prefix_functions.clone(),
        next_file: 0,
        items: BTreeMap::new(),
        replaced: Vec::new(),
        written: Vec::new(),
        chained_references: BTreeMap::new(),
        records: Records::none(&storage, options.dry_run),
        report: RepairReport { dry_run: options.dry_run, ..RepairReport::default() },
    };
    let mut structure = repair.find_structure(plan)?;
    let renews_id = repair.find_young_directory(&mut structure, young, options.without_young_levels)?;
    for keyspace in structure.state.keyspaces.values_mut() {
        keyspace.hasher = complete_hasher(&keyspace.name, keyspace.hasher, &options.prefix_functions)?;
    }
    repair.next_file = structure.state.next_file.max(first_free_number(&*storage)?);
    let log = repair.survey_log(&structure)?;
    repair.open_records(&structure.state, &log.blobs, structure.report)?;
    repair.check_blob_files(&mut structure.state, structure.report)?;
    repair.check_tables(&mut structure.state)?;
    repair.check_log(&mut structure, &log, plan)?;
    repair.finish_records(&mut structure.state)?;
    repair.report.changed = structure.report != ManifestRepair::Sound
        || renews_id
        || !repair.replaced.is_empty()
        || repair.report.lost_anything();
    repair.report.manifest = structure.report;
    if !repair.report.changed || options.dry_run {
        return Ok(repair.report);
    }
    repair.count_references(&mut structure.state)?;
    if structure.report == ManifestRepair::Rebuilt {
        structure.stale_files.extend(repair.unneeded_blob_files(&structure.state)?);
    }
    repair.written.iter().for_each(|&(file, items)| structure.state.note_items(file, items));
    let Repair { mut report, replaced, next_file, .. } = repair;
    let Structure { mut state, manifest_number, stale_files, .. } = structure;
    if state.seed == 0 {
        state.seed = alluvium_base::checksum::checksum64(&environment.random_seed.to_le_bytes(), 0) | 1;
    }
    state.next_file = next_file;
    if let (Some(young), Some(id)) = (young, state.young_directory) {
        if renews_id {
            young.write_id(id)?;
        }
        young.note_tables(&mut state);
    }
    storage.sync_directory().context(|| "syncing the database directory".to_owned())?;
    let damaged_current = set_aside::keep_current(&*storage, structure.report, options.discard)?;
    Manifest::create(storage.clone(), manifest_number + 1, state)?;
    let mut files = replaced;
    files.extend(stale_files);
    files.sort_unstable();
    files.dedup();
    report.set_aside = set_aside::set_aside(&*storage, files, options.discard)?;
    report.set_aside.extend(damaged_current);
    Ok(report)
}

/// The state shared by the parts of a repair.
struct Repair {
    storage: Arc<dyn Storage>,
    dry_run: bool,
    prefix_functions: Vec<PrefixFunction>,
    /// Number of the next table to be written.
    next_file: u64,
    /// Number of items in tables, by keyspace: determines how many shards a run should have.
    items: BTreeMap<KeyspaceId, u64>,
    /// Files that cease to count once the new manifest counts.
    replaced: Vec<String>,
    /// Table files that were written, with their numbers of items.
    written: Vec<(TableId, u64)>,
    /// Bytes of blob files to which segments of chained keyspaces refer that stay as they are.
    chained_references: BTreeMap<KeyspaceId, BTreeMap<BlobId, u64>>,
    records: Records,
    report: RepairReport,
}

impl Repair {
    fn take_file_number(&mut self) -> TableId {
        self.next_file += 1;
        TableId(self.next_file - 1)
    }
}

/// A number above those of all tables, blob files and directories of chains, including those left by an interrupted
/// repair.
fn first_free_number(storage: &dyn Storage) -> Result<u64> {
    let names = storage.list().context(|| "listing the database directory".to_owned())?;
    Ok(names
        .iter()
        .filter_map(|name| {
            let table_or_blob =
                parse_table_file_name(name).map(|id| id.0).or_else(|| Some(parse_blob_file_name(name)?.0));
            table_or_blob.or_else(|| parse_directory_file_name(name))
        })
        .max()
        .map_or(1, |last| last + 1))
}

/// Refuses a directory that contains no part of a database.
fn refuse_foreign(storage: &dyn Storage) -> Result<()> {
    let names = storage.list().context(|| "listing the database directory".to_owned())?;
    let is_ours = |name: &String| {
        is_manifest_file_name(name)
            || segment::is_file_name(name)
            || parse_table_file_name(name).is_some()
            || parse_blob_file_name(name).is_some()
    };
    if names.iter().any(is_ours) {
        return Ok(());
    }
    Err(Error::NotADatabase {
        reason: "the directory holds neither a manifest nor tables nor a log".to_owned(),
    })
}

/// Whether `state` has a keyspace of this id, so that its items count.
fn has_keyspace(state: &DatabaseState, keyspace: KeyspaceId) -> bool {
    state.keyspaces.contains_key(&keyspace)
}
