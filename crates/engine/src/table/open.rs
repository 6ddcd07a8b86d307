//! [`Table`]: an open table file.

use std::sync::Arc;

use alluvium_base::{Corruption, PrefixFunction};
use alluvium_io::{AlignedBuffer, File, OpenMode, Storage};

use super::directory::{self, SectionEntry};
use super::error::{Error, Result};
use super::frame::{Identity, TRAILER_BYTES, Trailer, check_sum};
use super::index_memory::{Charge, IndexMemory};
use super::page::PAGE_BYTES;
use super::section::{Section, read_exact};

/// What opening reads at first: trailer and, with up to a hundred sections, all of the directory.
const TAIL_BYTES: u64 = 4 * PAGE_BYTES as u64;

/// Filters and indexes of a file that are read at once are no larger.
const INDEXES_BYTES_MAX: u64 = 8 << 20;

/// An open table file: its sections, whose indexes load when first used.
#[derive(Debug)]
pub(crate) struct Table {
    file: Arc<dyn File>,
    trailer: Trailer,
    file_bytes: u64,
    sections: Vec<Arc<Section>>,
    /// What it takes without its sections.
    _charge: Charge,
}

/// Memory of an open table without its sections: names, handles, its places in versions and in the manifest. Measured,
/// as what thousands of tables take beyond what is counted.
const TABLE_BYTES: u64 = 1024;

impl Table {
    /// Opens the file `name`: one read of its end, a second when the directory is long. No data is read. `functions`
    /// are those that find prefixes, for sections that name them.
    ///
    /// # Errors
    /// [`Error::NewerFormat`] and [`Error::OlderFormat`] for a file of another major version, [`Error::Corruption`]
    /// for one that is foreign, truncated or damaged, [`Error::Io`] when the storage fails.
    pub fn open(storage: &dyn Storage, name: &str, functions: &[PrefixFunction]) -> Result<Self> {
        Self::open_within(storage, name, &Arc::default(), functions)
    }

    /// Like [`Table::open`], with filters and indexes counted in `memory` and bounded by it.
    pub fn open_within(
        storage: &dyn Storage,
        name: &str,
        memory: &Arc<IndexMemory>,
        functions: &[PrefixFunction],
    ) -> Result<Self> {
        let file = storage.open(name, OpenMode::Read).map_err(Error::io("open", name))?;
        let file_bytes = file.len().map_err(Error::io("read the length of", name))?;
        // The writer ends every file on a page, so this also keeps the reads below aligned.
        if file_bytes < 2 * PAGE_BYTES as u64 || !file_bytes.is_multiple_of(PAGE_BYTES as u64) {
            let expected = format!("a table file of whole pages of {PAGE_BYTES} bytes");
            return Err(Corruption::new(name, 0, expected, format!("{file_bytes} bytes")).into());
        }
        let tail_start = file_bytes - file_bytes.min(TAIL_BYTES);
        let mut tail = AlignedBuffer::with_len((file_bytes - tail_start) as usize);
        read_exact(&*file, &mut tail, tail_start)?;
        let trailer = Trailer::decode(&tail, name, file_bytes)?;
        let Trailer { identity, directory_offset, directory_len, directory_checksum } = trailer;
        let from = directory_offset - directory_offset % PAGE_BYTES as u64;
        if from < tail_start {
            tail = AlignedBuffer::with_len((file_bytes - from) as usize);
            read_exact(&*file, &mut tail, from)?;
        }
        let start = (directory_offset - from.min(tail_start)) as usize;
        let bytes = &tail[start..start + directory_len as usize];
        check_sum(bytes, directory_checksum, identity.seed, name, directory_offset, "directory")?;
        let entries = directory::decode(bytes, directory_offset)
            .map_err(|corruption| corruption.within(name, directory_offset))?;
        let section = |mut entry: SectionEntry| {
            entry.hasher = entry.hasher.with_functions(functions);
            match entry.hasher.missing_function() {
                None => Ok(Section::new(Arc::clone(&file), identity, entry, memory)),
                Some(function) => {
                    let (file, function) = (name.to_owned(), function.as_str().to_owned());
                    Err(Error::PrefixFunction { file, function })
                }
            }
        };
        let sections = entries.into_iter().map(section).collect::<Result<_>>()?;
        Ok(Self { trailer, file_bytes, sections, file, _charge: memory.charge_table(TABLE_BYTES) })
    }

    /// The sections, in the order in which they were written.
    pub fn sections(&self) -> &[Arc<Section>] {
        &self.sections
    }

    /// Loads the filters and indexes of all sections, as far as they may be in memory, with one read where they are not
    /// too large together.
    pub fn load_indexes(&self) -> Result<()> {
        let (mut start, mut end) = (u64::MAX, 0);
        for block in self.sections.iter().flat_map(|section| section.index_blocks()) {
            start = start.min(block.offset - block.offset % PAGE_BYTES as u64);
            end = end.max((block.offset + block.len).next_multiple_of(PAGE_BYTES as u64));
        }
        if start >= end || end - start > INDEXES_BYTES_MAX {
            return self.sections.iter().try_for_each(|section| section.index().map(drop));
        }
        let mut bytes = AlignedBuffer::with_len((end - start) as usize);
        read_exact(&*self.file, &mut bytes, start)?;
        self.sections.iter().try_for_each(|section| section.load_index_from(&bytes, start))
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
