//! The second directory, for the tables of young levels (Wu's thesis, §4.3), and how a database recognizes its own.
//!
//! ```text
//! YOUNG:  magic 8 bytes "ALVMYNG\0" | major 2 | minor 2 | zero 4 | id 8 | checksum 8 of bytes 0..24, seed 0
//! ```
//!
//! The id is drawn when a database takes a directory, and is stored in the manifest as well. A copy of the database (a
//! checkpoint, a backup) has no second directory, so it cannot mistake the files of the original for its own and remove
//! them.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alluvium_base::checksum::checksum64;
use alluvium_base::{Corruption, TableId};
use alluvium_io::{FileStorage, IoOptions, OpenMode, Storage, TwoDirectories};

use crate::error::{Error, IoContext, Result};
use crate::file_names::{parse_table_file_name, table_file_name};
use crate::manifest::{DatabaseState, read_all};

/// The file that says which database the directory belongs to.
const YOUNG: &str = "YOUNG";
const YOUNG_NEW: &str = "YOUNG.new";
const MAGIC: [u8; 8] = *b"ALVMYNG\0";
const MAJOR: u16 = 1;
const MINOR: u16 = 0;
const FILE_LEN: usize = 32;

/// Whether `name` is the name of a file that identifies a directory of young levels.
pub(crate) fn is_file_name(name: &str) -> bool {
    name == YOUNG || name == YOUNG_NEW
}

/// The second directory, and the number of levels whose tables are stored there.
#[derive(Debug, Clone)]
pub(crate) enum YoungLevels {
    /// A directory by its path.
    Directory(PathBuf, usize),
    /// Any storage.
    Storage(Arc<dyn Storage>, usize),
}

impl YoungLevels {
    /// Opens the second directory in addition to `first`, which is at `path` if it is a directory of the file system.
    /// Creates it if `create` is true.
    pub fn open(
        self,
        first: Arc<dyn Storage>,
        path: &Path,
        create: bool,
        io: IoOptions,
    ) -> Result<YoungDirectory> {
        let (second, levels): (Arc<dyn Storage>, usize) = match self {
            Self::Storage(storage, levels) => (storage, levels),
            Self::Directory(second, levels) => {
                let context = || format!("opening the directory of young levels {}", second.display());
                let storage = match create && !second.join(YOUNG).exists() {
                    true => FileStorage::create(&second, io),
                    false => FileStorage::open(&second, io),
                };
                let storage = match storage {
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                        let reason = format!("there is no directory of young levels at {}", second.display());
                        return Err(Error::YoungDirectory { reason });
                    }
                    storage => storage.context(context)?,
                };
                let canonical = |path: &Path| std::fs::canonicalize(path).ok();
                if canonical(&second).is_some_and(|second| canonical(path) == Some(second)) {
                    let reason = format!("{} is the database's own directory", second.display());
                    return Err(Error::YoungDirectory { reason });
                }
                (Arc::new(storage), levels)
            }
        };
        let directories = TwoDirectories::new(first, second)
            .context(|| "listing the directory of young levels".to_owned())?;
        Ok(YoungDirectory { directories: Arc::new(directories), levels })
    }
}

/// The location of the tables of young levels, and which levels these are.
#[derive(Clone)]
pub(crate) struct YoungDirectory {
    /// The database's own directory and the second one.
    pub directories: Arc<TwoDirectories>,
    /// Tables made for levels below this number are stored in the second directory.
    pub levels: usize,
}

impl fmt::Debug for YoungDirectory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("YoungDirectory").field("levels", &self.levels).finish_non_exhaustive()
    }
}

impl YoungDirectory {
    /// Decides where the table `number`, about to be created for this level, will be stored: `true` for the second
    /// directory.
    pub fn place(&self, table: TableId, level: usize) -> bool {
        let is_young = level < self.levels;
        if is_young {
            self.directories.place_in_second(&table_file_name(table));
        }
        is_young
    }

    /// Whether this table is stored in the second directory.
    pub fn has(&self, table: TableId) -> bool {
        self.directories.is_in_second(&table_file_name(table))
    }

    /// The id of the second directory, or `None` if no database has taken it.
    ///
    /// # Errors
    /// [`Error::YoungDirectory`] if it contains files of others.
    pub fn id(&self) -> Result<Option<u64>> {
        id_in(&**self.directories.second(), &self.names()?)
    }

    /// Names of the files in the second directory, all of them ours.
    fn names(&self) -> Result<Vec<String>> {
        let names = self
            .directories
            .second()
            .list()
            .context(|| "listing the directory of young levels".to_owned())?;
        let is_ours = |name: &String| {
            is_file_name(name)
                || name == crate::file_names::LOCK
                || name.starts_with("lost-")
                || parse_table_file_name(name).is_some()
        };
        match names.iter().find(|name| !is_ours(name)) {
            Some(name) => {
                refuse(format!("the directory given for young levels holds the foreign file {name}"))
            }
            None => Ok(names),
        }
    }

    /// Lengths of the tables in the second directory. Costs one call per file.
    pub fn table_lengths(&self) -> impl Iterator<Item = u64> {
        let names = self.directories.second().list().unwrap_or_default();
        let tables = names.into_iter().filter(|name| parse_table_file_name(name).is_some());
        // A table removed in the meantime takes no space.
        tables.filter_map(|name| self.directories.second().open(&name, OpenMode::Read).ok()?.len().ok())
    }

    /// Checks that the second directory belongs to the database of this state, or to none. Call it with both
    /// directories locked, before any file in the second one is touched.
    ///
    /// # Errors
    /// [`Error::YoungDirectory`] if it belongs to another database or contains other files.
    pub fn check(&self, state: &DatabaseState) -> Result<()> {
        let names = self.names()?;
        let found = id_in(&**self.directories.second(), &names)?;
        if found.is_some() && found == state.young_directory {
            return Ok(());
        }
        if let Some(number) = state.young_tables().next() {
            return refuse(format!(
                "{} is in the directory of young levels, and the one given is {}",
                table_file_name(number),
                if found.is_some() { "another database's" } else { "of no database" },
            ));
        }
        match names.iter().find(|name| parse_table_file_name(name).is_some()) {
            Some(name) => refuse(format!(
                "the directory given for young levels holds {name} of another database, or of this one before it \
                 was opened without"
            )),
            None => Ok(()),
        }
    }

    /// Takes the second directory, which was checked, for the database of this state. The id counts once the manifest
    /// contains it; until then nothing else is written to the directory.
    pub fn take(&self, state: &mut DatabaseState, random: u64) -> Result<()> {
        if state.young_directory.is_some() && self.id()? == state.young_directory {
            return Ok(());
        }
        let id = checksum64(&random.to_le_bytes(), state.seed) | 1;
        self.write_id(id)?;
        state.young_directory = Some(id);
        Ok(())
    }

    /// Gives the second directory this id, durably and atomically.
    pub fn write_id(&self, id: u64) -> Result<()> {
        let (second, names) = (&**self.directories.second(), self.names()?);
        let context = || format!("writing {YOUNG}");
        if names.iter().any(|name| name == YOUNG_NEW) {
            second.remove(YOUNG_NEW).context(context)?;
        }
        let file = second.open(YOUNG_NEW, OpenMode::Create).context(context)?;
        file.write_at(&to_bytes(id), 0).context(context)?;
        file.sync().context(context)?;
        second.sync_directory().context(context)?;
        second.rename(YOUNG_NEW, YOUNG).context(context)?;
        second.sync_directory().context(context)
    }

    /// Records in `state` which of its tables are in the second directory, and replaces what it said before.
    pub fn note_tables(&self, state: &mut DatabaseState) {
        let young = state.files().into_iter().filter(|&number| self.has(number));
        state.young_tables = young.collect();
    }
}

/// Opens a database without a second directory, which is possible if no table needs one. Tables that were copied into
/// the database's own directory count there.
///
/// # Errors
/// [`Error::YoungDirectory`] if a table is in the second directory.
pub(crate) fn do_without(storage: &dyn Storage, state: &mut DatabaseState) -> Result<()> {
    if state.young_directory.is_none() && state.young_tables.is_empty() {
        return Ok(());
    }
    let names = storage.list().context(|| "listing the database directory".to_owned())?;
    let present: BTreeSet<TableId> = names.iter().filter_map(|name| parse_table_file_name(name)).collect();
    if let Some(number) = state.young_tables().find(|number| !present.contains(number)) {
        let name = table_file_name(number);
        return refuse(format!("{name} is in the directory of young levels, and none was given"));
    }
    state.young_directory = None;
    state.young_tables.clear();
    Ok(())
}

fn refuse<T>(reason: String) -> Result<T> {
    Err(Error::YoungDirectory { reason })
}

/// The id of the directory, or `None` if no database has taken it.
fn id_in(second: &dyn Storage, names: &[String]) -> Result<Option<u64>> {
    match names.iter().any(|name| name == YOUNG) {
        true => Ok(Some(parse(&read_all(second, YOUNG)?)?)),
        false => Ok(None),
    }
}

fn to_bytes(id: u64) -> [u8; FILE_LEN] {
    let mut bytes = [0; FILE_LEN];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..10].copy_from_slice(&MAJOR.to_le_bytes());
    bytes[10..12].copy_from_slice(&MINOR.to_le_bytes());
    bytes[16..24].copy_from_slice(&id.to_le_bytes());
    let checksum = checksum64(&bytes[..24], 0);
    bytes[24..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// The id in the bytes of the file.
///
/// # Errors
/// [`Error::Corruption`] for anything that [`to_bytes`] does not make, [`Error::NewerFormat`] for a newer major
/// version.
pub(crate) fn parse(bytes: &[u8]) -> Result<u64> {
    let damaged = |offset, expected: &str, found: String| Corruption::new(YOUNG, offset, expected, found);
    if bytes.len() != FILE_LEN || bytes[..8] != MAGIC {
        let found = format!("{} bytes that begin with {:02x?}", bytes.len(), &bytes[..bytes.len().min(8)]);
        return Err(damaged(0, "32 bytes that begin with the magic of a young directory", found).into());
    }
    if bytes[24..] != checksum64(&bytes[..24], 0).to_le_bytes() {
        return Err(damaged(24, "the checksum of bytes 0 to 23", "another one".to_owned()).into());
    }
    let major = u16::from_le_bytes([bytes[8], bytes[9]]);
    if major > MAJOR {
        return Err(Error::NewerFormat { file: YOUNG.to_owned(), found: major, supported: MAJOR });
    }
    Ok(u64::from_le_bytes(bytes[16..24].try_into().expect("eight bytes")))
}

/// A sound file, as a seed for fuzzers.
#[cfg(any(test, feature = "simulation"))]
pub(crate) fn sample() -> Vec<u8> {
    to_bytes(7).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let bytes = to_bytes(7);
        assert_eq!(parse(&bytes).unwrap(), 7);
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes;
                damaged[at] ^= 1 << bit;
                assert!(matches!(parse(&damaged), Err(Error::Corruption(_))), "byte {at}");
            }
            assert!(matches!(parse(&bytes[..at]), Err(Error::Corruption(_))));
        }
    }

    #[test]
    fn the_example_of_the_format_document_is_true() {
        let document = include_str!("../../../docs/format.md");
        for line in to_bytes(7).chunks(16) {
            let digits: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
            let written = format!("{}  {}", digits[..8].join(" "), digits[8..].join(" "));
            assert!(document.contains(&written), "{written}");
        }
    }

    #[test]
    fn a_newer_version_is_told() {
        let mut bytes = to_bytes(7);
        bytes[8] = 2;
        let checksum = checksum64(&bytes[..24], 0);
        bytes[24..].copy_from_slice(&checksum.to_le_bytes());
        assert!(matches!(parse(&bytes), Err(Error::NewerFormat { found: 2, .. })));
    }
}
