//! The position file of an import: how far the import is durable, and which import it belongs to.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use alluvium_base::checksum::checksum64;
use alluvium_transfer::{Format, Position};
use serde::{Deserialize, Serialize};

use crate::durable_file::DurableFile;
use crate::failure::Failure;

const VERSION: u32 = 1;
/// Number of bytes by which an input is recognized, besides its name.
const HEAD_BYTES_MAX: u64 = 4096;

/// Identifies an import. Another one must not continue where this one stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// The database, as an absolute path.
    pub database: PathBuf,
    /// The file that is read, as an absolute path.
    pub input: PathBuf,
    /// Name of the input's format.
    pub format: String,
    /// The keyspace that takes all records, if one was named.
    pub keyspace: Option<String>,
    head_bytes: u64,
    head_checksum: String,
}

impl Import {
    /// Describes an import from the file at `input`, which is recognized by its first `head_bytes` bytes; `None` stands
    /// for all bytes up to a page.
    pub fn new(
        database: PathBuf,
        input: PathBuf,
        format: Format,
        keyspace: Option<String>,
        head_bytes: Option<u64>,
    ) -> io::Result<Self> {
        let mut head = Vec::new();
        File::open(&input)?.take(head_bytes.unwrap_or(HEAD_BYTES_MAX)).read_to_end(&mut head)?;
        let (head_bytes, head_checksum) = (head.len() as u64, format!("{:016x}", checksum64(&head, 0)));
        Ok(Self { database, input, format: format.to_string(), keyspace, head_bytes, head_checksum })
    }
}

/// The content of the position file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    version: u32,
    /// The import that it belongs to.
    pub import: Import,
    /// The position before which all records are durable in the database.
    pub position: Position,
}

impl Progress {
    /// The content of the file at `path`; `None` if there is no such file.
    pub fn read(path: &Path) -> Result<Option<Self>, Failure> {
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Failure::Failed(format!("reading {}: {error}", path.display()))),
        };
        let refuse = |found: String| {
            Failure::Failed(format!(
                "{}: expected the position of an import (version {VERSION}), found {found}; remove it to start over",
                path.display()
            ))
        };
        let progress: Self = serde_json::from_slice(&text).map_err(|error| refuse(error.to_string()))?;
        if progress.version != VERSION {
            return Err(refuse(format!("version {}", progress.version)));
        }
        Ok(Some(progress))
    }

    /// Fails unless this is a position in `input` as it is now, for an import into `database`.
    pub fn check(
        &self,
        path: &Path,
        database: &Path,
        input: &Path,
        format: Format,
        keyspace: Option<&str>,
    ) -> Result<(), Failure> {
        let head_bytes = Some(self.import.head_bytes.min(HEAD_BYTES_MAX));
        let keyspace = keyspace.map(str::to_owned);
        let now = Import::new(database.to_owned(), input.to_owned(), format, keyspace, head_bytes)?;
        let is_long_enough = fs::metadata(input)?.len() >= self.position.offset;
        if now == self.import && is_long_enough {
            return Ok(());
        }
        Err(Failure::Failed(format!(
            "{} is the position of another import, or its input has changed: it speaks of {} into {}; remove it to \
             start over",
            path.display(),
            self.import.input.display(),
            self.import.database.display()
        )))
    }

    /// Durably replaces the file at `path` by one with the position of `import`.
    pub fn write(path: &Path, import: &Import, position: Position) -> Result<(), Failure> {
        let progress = Self { version: VERSION, import: import.clone(), position };
        let mut text = serde_json::to_vec(&progress)?;
        text.push(b'\n');
        let written = || -> io::Result<()> {
            let mut file = DurableFile::create(path)?;
            file.write_all(&text)?;
            file.complete()
        };
        written().map_err(|error| Failure::Failed(format!("writing {}: {error}", path.display())))
    }
}
