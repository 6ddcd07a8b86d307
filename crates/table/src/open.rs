//! [`Table`]: an open table file.

use std::sync::Arc;

use alluvium_base::{Corruption, PrefixFunction};
use alluvium_io::{AlignedBuffer, File, OpenMode, Storage};

use crate::directory::SectionEntry;
use crate::error::{Error, Result};
use crate::frame::{Identity, TRAILER_BYTES, Trailer, check_sum};
use crate::index_memory::{Charge, IndexMemory};
use crate::page::PAGE_BYTES;
use crate::section::{Section, read_exact};
use crate::stored_directory::StoredDirectory;

/// Bytes that opening reads first: the trailer, and the whole directory of up to a dozen sections.
const TAIL_BYTES: u64 = PAGE_BYTES as u64;

/// Maximum bytes of filters and indexes of a file that are read at once.
const INDEXES_BYTES_MAX: u64 = 8 << 20;

/// An open table file. Its sections are made from its directory; their indexes are loaded when first used.
#[derive(Debug)]
pub struct Table {
    file: Arc<dyn File>,
    trailer: Trailer,
    file_bytes: u64,
    /// All of them if all were requested; see [`Table::section`].
    sections: Vec<Arc<Section>>,
    memory: Arc<IndexMemory>,
    /// Its memory without its sections.
    _charge: Charge,
}

/// Memory of an open table without its sections: names, handles, entries in versions and in the manifest. Measured as
/// the memory of thousands of tables beyond what is counted.
const TABLE_BYTES: u64 = 1024;

impl Table {
    /// Opens the file `name` with all of its sections: one read of its end, and a second if the directory is long.
    /// Reads no data. `functions` are the functions that find prefixes, for sections that name them.
    ///
    /// # Errors
    /// [`Error::NewerFormat`] and [`Error::OlderFormat`] for a file of another major version, [`Error::Corruption`] for
    /// one that is foreign, truncated or damaged, [`Error::Io`] if the storage fails.
    pub fn open(storage: &dyn Storage, name: &str, functions: &[PrefixFunction]) -> Result<Self> {
        let (mut table, directory) = Self::open_within(storage, name, &Arc::default())?;
        let entries = table.within_directory(directory.entries())?;
        let sections = entries.into_iter().map(|entry| table.section(entry, functions));
        table.sections = sections.collect::<Result<_>>()?;
        Ok(table)
    }

    /// Like [`Table::open`], with its memory counted in `memory` and bounded by it, and without sections. Returns the
    /// directory, from which [`Table::section`] makes those that are needed.
    pub fn open_within(
        storage: &dyn Storage,
        name: &str,
        memory: &Arc<IndexMemory>,
    ) -> Result<(Self, StoredDirectory)> {
        let file = storage.open(name, OpenMode::Read).map_err(Error::io("open", name))?;
        let file_bytes = file.len().map_err(Error::io("read the length of", name))?;
        // The writer ends every file at a page boundary, so this also keeps the reads below aligned.
        if file_bytes < 2 * PAGE_BYTES as u64 || !file_bytes.is_multiple_of(PAGE_BYTES as u64) {
            let expected = format!("a table file of whole pages of {PAGE_BYTES} bytes");
            return Err(Corruption::new(name, 0, expected, format!("{file_bytes} bytes")).into());
        }
        let tail_start = file_bytes - file_bytes.min(TAIL_BYTES);
        let mut tail = AlignedBuffer::with_len((file_bytes - tail_start) as usize);
        read_exact(&*file, &mut tail, tail_start)?;
        let trailer = Trailer::decode(&tail, name, file_bytes)?;
        let charge = memory.charge_table(TABLE_BYTES);
        let memory = Arc::clone(memory);
        let table = Self { file, trailer, file_bytes, sections: Vec::new(), memory, _charge: charge };
        let directory = match trailer.directory_offset >= tail_start {
            true => table.directory_within(&tail, tail_start)?,
            false => table.read_directory()?,
        };
        Ok((table, directory))
    }

    /// Reads the directory again.
    pub fn read_directory(&self) -> Result<StoredDirectory> {
        let start = self.trailer.directory_offset - self.trailer.directory_offset % PAGE_BYTES as u64;
        let mut tail = AlignedBuffer::with_len((self.file_bytes - start) as usize);
        read_exact(&*self.file, &mut tail, start)?;
        self.directory_within(&tail, start)
    }

    /// The directory, from bytes that were read at `start`.
    fn directory_within(&self, tail: &[u8], start: u64) -> Result<StoredDirectory> {
        let Trailer { identity, directory_offset, directory_len, directory_checksum } = self.trailer;
        let name = self.file.name();
        let start = (directory_offset - start) as usize;
        let bytes = &tail[start..start + directory_len as usize];
        check_sum(bytes, directory_checksum, identity.seed, name, directory_offset, "directory")?;
        self.within_directory(StoredDirectory::new(bytes, directory_offset))
    }

    /// Converts the offsets of a corruption in the directory to offsets in the file.
    pub fn within_directory<T>(&self, outcome: std::result::Result<T, Corruption>) -> Result<T> {
        let within = |corruption: Corruption| {
            corruption.within(self.file.name(), self.trailer.directory_offset).into()
        };
        outcome.map_err(within)
    }

    /// Makes the section of this entry of the directory. To be called once per entry: a section is shared by all its
    /// users.
    ///
    /// # Errors
    /// [`Error::PrefixFunction`] if it names a function that is not among `functions`.
    pub fn section(&self, mut entry: SectionEntry, functions: &[PrefixFunction]) -> Result<Arc<Section>> {
        entry.hasher = entry.hasher.with_functions(functions);
        match entry.hasher.missing_function() {
            None => Ok(Section::new(Arc::clone(&self.file), self.trailer.identity, entry, &self.memory)),
            Some(function) => {
                let (file, function) = (self.file.name().to_owned(), function.as_str().to_owned());
                Err(Error::PrefixFunction { file, function })
            }
        }
    }

    /// The sections, in the order in which they were written, of a table that was opened with them.
    pub fn sections(&self) -> &[Arc<Section>] {
        &self.sections
    }

    /// Loads the filters and indexes of these sections of the file, as far as they may be in memory, with one read
    /// unless they are too large together.
    pub fn load_indexes(&self, sections: &[Arc<Section>]) -> Result<()> {
        let (mut start, mut end) = (u64::MAX, 0);
        for block in sections.iter().flat_map(|section| section.index_blocks()) {
            start = start.min(block.offset - block.offset % PAGE_BYTES as u64);
            end = end.max((block.offset + block.len).next_multiple_of(PAGE_BYTES as u64));
        }
        if start >= end || end - start > INDEXES_BYTES_MAX {
            return sections.iter().try_for_each(|section| section.index().map(drop));
        }
        let mut bytes = AlignedBuffer::with_len((end - start) as usize);
        read_exact(&*self.file, &mut bytes, start)?;
        sections.iter().try_for_each(|section| section.load_index_from(&bytes, start))
    }

    /// Length of the file in bytes.
    #[cfg(test)]
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// The file itself.
    pub fn file(&self) -> &Arc<dyn File> {
        &self.file
    }

    pub(super) fn identity(&self) -> Identity {
        self.trailer.identity
    }

    /// The bytes between directory and trailer, all zero in a sound file: offset and length.
    pub(super) fn padding(&self) -> (u64, u64) {
        let start = self.trailer.directory_offset + self.trailer.directory_len;
        (start, self.file_bytes - TRAILER_BYTES as u64 - start)
    }
}
