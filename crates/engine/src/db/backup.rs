//! Backups: checkpoints side by side in one directory, which share the tables that did not change between them.
//!
//! ```text
//! ROOT/000001   a complete database
//! ROOT/000002   another one, which shares the files of 000001 for the same tables
//! ROOT/partial  one in progress, or the rest of one that was interrupted
//! ```
//!
//! A backup gets its name in one step when it is complete. Its manifest says of which database it is, and when it was
//! taken. Tables are immutable and their numbers are used once, so equal numbers of one database mean equal tables.
//! Even so, their trailers, which have a checksum of the whole directory, are compared.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alluvium_base::PrefixFunction;
use alluvium_base::checksum::checksum64;
use alluvium_io::{FileStorage, IoOptions, OpenMode, Storage};
use serde::Serialize;

use super::check_files::check_files;
use super::checkpoint::{Checkpoint, CheckpointOptions, Origin, copy};
use super::copy_target::CopyTarget;
use super::database::Db;
use crate::error::{Error, IoContext, Result};
use crate::file_names::COPY_MARKER;
use crate::manifest::{CURRENT, is_manifest_file_name, read_current};

const PARTIAL: &str = "partial";
const REMOVING: &str = "removing";
const LOCK: &str = "LOCK";

/// Describes a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Backup {
    /// Its number: the backups in a directory are numbered in ascending order.
    pub number: u64,
    /// The directory of the backup.
    pub path: PathBuf,
    /// The time when it was taken, in milliseconds since 1970.
    pub taken_at_ms: u64,
    /// Number of tables in it.
    pub tables: u64,
    /// Number of blob files in it.
    pub blob_files: u64,
    /// Bytes of its tables and blob files, including those shared with other backups.
    pub bytes: u64,
}

/// Options for making a backup.
#[derive(Debug, Clone, Copy)]
pub struct BackupOptions {
    /// Whether to read and check all of the backup before it counts as one, as for [`super::CheckpointOptions`].
    /// Default true.
    pub verify: bool,
    /// Removes the oldest backups afterwards until this number is left. Default: removes none. A good backup is never
    /// removed in favour of an unchecked one: without `verify`, the new backup is checked before anything is removed.
    pub keep: Option<usize>,
}

impl Default for BackupOptions {
    fn default() -> Self {
        Self { verify: true, keep: None }
    }
}

impl Db {
    /// Makes a backup of the database as it is now, in a new directory below `root`. `root` is created if it is
    /// missing, and may contain earlier backups of the same database. Writes continue meanwhile.
    ///
    /// Each backup is a complete database, and is read and checked before it counts as one. Tables on the file system
    /// of `root` are linked; others are linked from the previous backup if it has them, otherwise copied. What an
    /// interrupted backup leaves does not count as a backup, and the next one removes it.
    ///
    /// # Errors
    /// [`Error::Backup`] if `root` contains backups of another database; [`Error::Locked`] while another backup is
    /// being made there; [`Error::Corruption`] if a file, which it names, is damaged. After an error there is no new
    /// backup.
    pub fn backup_into(&self, root: impl AsRef<Path>) -> Result<(Backup, Checkpoint)> {
        self.backup_with(root, BackupOptions::default()).map(|(backup, made, _)| (backup, made))
    }

    /// Like [`Db::backup_into`], with options. Also returns how many old backups were removed.
    ///
    /// # Errors
    /// As [`Db::backup_into`].
    pub fn backup_with(
        &self,
        root: impl AsRef<Path>,
        options: BackupOptions,
    ) -> Result<(Backup, Checkpoint, usize)> {
        let root = root.as_ref();
        self.shared().check_failure()?;
        let root_storage = FileStorage::create(root, IoOptions::default())
            .context(|| format!("creating directory {}", root.display()))?;
        let _lock = crate::recovery::lock(&root_storage)?;
        let context = |path: &Path| format!("clearing {}", path.display());
        for leftover in
            [PARTIAL, REMOVING].map(|name| root.join(name)).into_iter().filter(|path| path.exists())
        {
            fs::remove_dir_all(&leftover).context(|| context(&leftover))?;
        }
        let number_before = numbers(root)?.last().copied();
        let database = database_of(self.shared().manifest.lock().expect("no panic while held").state().seed);
        let previous = match number_before {
            Some(number) => Some(self.open_previous(&directory(root, number), database)?),
            None => None,
        };
        let partial = root.join(PARTIAL);
        let destination = FileStorage::create(&partial, IoOptions::default())
            .context(|| format!("creating directory {}", partial.display()))?;
        let origin = Origin { database, taken_at_ms: self.shared().now_ms() };
        let previous = previous.as_ref().map(|previous| previous as &dyn Storage);
        let checkpoint_options = CheckpointOptions { verify: options.verify };
        let made = self
            .copy_into(Arc::new(destination), previous, Some(origin), checkpoint_options)
            // What cannot be removed now, the next backup removes.
            .inspect_err(|_| drop(fs::remove_dir_all(&partial)))?;
        let number = number_before.unwrap_or(0) + 1;
        let path = directory(root, number);
        fs::rename(&partial, &path).context(|| format!("naming the backup {}", path.display()))?;
        root_storage.sync_directory().context(|| format!("syncing directory {}", root.display()))?;
        let removed = match options.keep {
            Some(keep) => {
                let functions = &self.shared().settings.prefix_functions;
                remove_surplus(root, &root_storage, keep, (!options.verify).then_some(&functions[..]))?
            }
            None => 0,
        };
        Ok((describe(number, path)?, made, removed))
    }

    fn open_previous(&self, path: &Path, database: u64) -> Result<FileStorage> {
        let storage = open_directory(path)?;
        match read_current(&storage)? {
            Some((_, state)) if state.origin.is_some_and(|(origin, _)| origin == database) => Ok(storage),
            _ => Err(Error::Backup {
                reason: format!("{} is of another database; give each one its own directory", path.display()),
            }),
        }
    }
}

/// The backups in `root`, old to young.
///
/// # Errors
/// Those of a damaged backup, which should be removed; [`Error::Io`] if there is no such directory.
pub fn backups(root: impl AsRef<Path>) -> Result<Vec<Backup>> {
    let root = root.as_ref();
    numbers(root)?.into_iter().map(|number| describe(number, directory(root, number))).collect()
}

/// Removes the oldest backups in `root` until `keep` are left, and returns how many were removed. Tables that younger
/// backups share stay for those. Before anything is removed, the youngest backup is read and checked.
///
/// # Errors
/// [`Error::Corruption`] and the like if the youngest backup is damaged; [`Error::PrefixFunction`] if only the
/// database's own program can read it (use [`BackupOptions::keep`] there). Nothing is removed in these cases.
pub fn remove_old_backups(root: impl AsRef<Path>, keep: usize) -> Result<usize> {
    let root = root.as_ref();
    let root_storage = open_directory(root)?;
    let _lock = crate::recovery::lock(&root_storage)?;
    remove_surplus(root, &root_storage, keep, Some(&[]))
}

/// Removes all but the youngest `keep` backups. If `check` is given (functions that find prefixes), first checks that
/// the youngest is sound.
fn remove_surplus(
    root: &Path,
    root_storage: &FileStorage,
    keep: usize,
    check: Option<&[PrefixFunction]>,
) -> Result<usize> {
    let numbers = numbers(root)?;
    let surplus = &numbers[..numbers.len().saturating_sub(keep)];
    if let Some(functions) = check
        && keep > 0
        && !surplus.is_empty()
        && let Some(&youngest) = numbers.last()
    {
        check_backup(&directory(root, youngest), functions)?;
    }
    for &number in surplus {
        let (path, removing) = (directory(root, number), root.join(REMOVING));
        let context = || format!("removing backup {}", path.display());
        // Renamed first, so that nothing half removed looks like a backup.
        fs::rename(&path, &removing).context(context)?;
        root_storage.sync_directory().context(context)?;
        fs::remove_dir_all(&removing).context(context)?;
    }
    Ok(surplus.len())
}

/// Reads and checks all of a backup.
fn check_backup(path: &Path, functions: &[PrefixFunction]) -> Result<()> {
    let storage: Arc<dyn Storage> = Arc::new(open_directory(path)?);
    let no_backup = || Error::Backup { reason: format!("{} is not a backup", path.display()) };
    let (_, state) = read_current(&*storage)?.ok_or_else(no_backup)?;
    check_files(&storage, &state, functions)
}

/// Copies a backup to `target`, which must be empty or missing, and makes it a database that shares no files with the
/// backup. `source` is a backup, or a directory of backups, of which the youngest is taken. Calls `progress` with the
/// bytes copied so far and the total.
///
/// All of the copy is read back and checked before it becomes a database: its `CURRENT` is written last. What a failure
/// or a kill leaves is not a database, and the next attempt removes it.
///
/// # Errors
/// [`Error::NotADatabase`] if `target` contains anything else, [`Error::Backup`] if `source` contains no backup,
/// [`Error::Corruption`] if the backup is damaged: try an older one.
pub fn restore(
    source: impl AsRef<Path>,
    target: impl AsRef<Path>,
    mut progress: impl FnMut(u64, u64),
) -> Result<Backup> {
    let (source, target) = (source.as_ref(), target.as_ref());
    let path = if source.join(CURRENT).exists() {
        source.to_owned()
    } else {
        let youngest = if source.is_dir() { numbers(source)?.last().copied() } else { None };
        let missing = || Error::Backup { reason: format!("{} holds no backup", source.display()) };
        directory(source, youngest.ok_or_else(missing)?)
    };
    let number =
        path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok()).unwrap_or(0);
    let backup = describe(number, path.clone())?;
    let from = open_directory(&path)?;
    let to = FileStorage::create(target, IoOptions::default())
        .context(|| format!("creating directory {}", target.display()))?;
    let directories = fs::read_dir(target)
        .and_then(|entries| entries.collect::<std::io::Result<Vec<_>>>())
        .context(|| format!("listing directory {}", target.display()))?;
    if let Some(entry) = directories.iter().find(|entry| entry.path().is_dir()) {
        let reason = format!(
            "restoring needs an empty directory, and {} holds {}",
            target.display(),
            entry.file_name().display()
        );
        return Err(Error::NotADatabase { reason });
    }
    let to: Arc<dyn Storage> = Arc::new(to);
    let copying = CopyTarget::take(to.clone(), "restoring")?;
    let to = &*to;
    let mut names = from.list().context(|| format!("listing directory {}", path.display()))?;
    names.retain(|name| name != LOCK && name != CURRENT && name != COPY_MARKER);
    let mut done = 0;
    for name in &names {
        copy(&from, to, name).context(|| format!("copying {name}"))?;
        done += length(&from, name)?;
        progress(done.min(backup.bytes), backup.bytes);
    }
    to.sync_directory().context(|| format!("syncing directory {}", target.display()))?;
    check_copy(target, &names, &from)?;
    copy(&from, to, CURRENT).context(|| format!("copying {CURRENT}"))?;
    to.sync_directory().context(|| format!("syncing directory {}", target.display()))?;
    copying.finish()?;
    Ok(backup)
}

/// Verifies all tables of a copy that has no `CURRENT` yet.
fn check_copy(target: &Path, names: &[String], from: &FileStorage) -> Result<()> {
    use alluvium_io::ReadOnlyStorage;
    let to = ReadOnlyStorage::new(Arc::new(open_directory(target)?));
    // In memory only: on the device, the copy must not be a database until it is known to be sound.
    copy(from, &to, CURRENT).context(|| format!("copying {CURRENT}"))?;
    let db = Db::builder(target)
        .read_only(true)
        .environment(crate::environment::Environment::over(Arc::new(to)))
        .open()?;
    let report = db.verify()?;
    debug_assert!(names.iter().any(|name| is_manifest_file_name(name)));
    match report.problems.into_iter().next() {
        None => Ok(()),
        Some(problem) => Err(Error::Backup { reason: format!("the restored copy is damaged: {problem}") }),
    }
}

/// The id of a database in its backups. A hash of its seed, because the seed is secret.
fn database_of(seed: u64) -> u64 {
    checksum64(&seed.to_le_bytes(), u64::from_le_bytes(*b"ALVMBACK"))
}

fn describe(number: u64, path: PathBuf) -> Result<Backup> {
    let storage = open_directory(&path)?;
    let state = read_current(&storage)?;
    let no_backup = || Error::Backup { reason: format!("{} is not a backup", path.display()) };
    let (_, state) = state.ok_or_else(no_backup)?;
    let (mut tables, mut bytes) = (0, 0);
    for file in state.files() {
        tables += 1;
        bytes += length(&storage, &crate::file_names::table_file_name(file))?;
    }
    for &file in state.blobs.keys() {
        bytes += length(&storage, &crate::file_names::blob_file_name(file))?;
    }
    let blob_files = state.blobs.len() as u64;
    let taken_at_ms = state.origin.map_or(0, |(_, taken_at_ms)| taken_at_ms);
    Ok(Backup { number, path, taken_at_ms, tables, blob_files, bytes })
}

fn length(storage: &FileStorage, name: &str) -> Result<u64> {
    storage.open(name, OpenMode::Read).and_then(|file| file.len()).context(|| format!("measuring {name}"))
}

fn open_directory(path: &Path) -> Result<FileStorage> {
    FileStorage::open(path, IoOptions::default()).context(|| format!("opening directory {}", path.display()))
}

fn directory(root: &Path, number: u64) -> PathBuf {
    root.join(format!("{number:06}"))
}

/// Numbers of the complete backups in `root`, ascending.
fn numbers(root: &Path) -> Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(root).context(|| format!("listing directory {}", root.display()))? {
        let entry = entry.context(|| format!("listing directory {}", root.display()))?;
        let number = entry.file_name().to_str().and_then(|name| name.parse::<u64>().ok());
        numbers.extend(number.filter(|&number| directory(root, number).is_dir()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}
