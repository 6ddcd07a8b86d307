//! [`StoredDirectory`]: the directory of a table file as stored; entries are decoded one by one.

use alluvium_base::{Corruption, KeyspaceId};

use crate::directory::{DIRECTORY_HEADER_BYTES, SectionEntry, check_shape, decode_entry};
use crate::frame::u32_at;

/// The bytes of a directory. A file made by a freeze has sections of all keyspaces that were written to, perhaps
/// thousands. A caller that needs the sections of one keyspace decodes only those; the stored bytes take a quarter of
/// the memory of all decoded entries.
#[derive(Debug)]
pub struct StoredDirectory {
    bytes: Box<[u8]>,
    /// Its offset in the file.
    offset: u64,
    entry_bytes: usize,
    /// Whether the entries are in ascending order of their keyspaces, as writers leave them.
    is_ascending: bool,
}

impl StoredDirectory {
    /// The directory at `offset` of its file, whose checksum was already checked. Offsets of corruptions are relative
    /// to the directory.
    pub fn new(bytes: &[u8], offset: u64) -> Result<Self, Corruption> {
        let entry_bytes = check_shape(bytes)?;
        let entries = bytes[DIRECTORY_HEADER_BYTES..].chunks_exact(entry_bytes);
        let is_ascending = entries.map(|entry| u32_at(entry, 0)).is_sorted();
        Ok(Self { bytes: bytes.into(), offset, entry_bytes, is_ascending })
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn count(&self) -> usize {
        (self.bytes.len() - DIRECTORY_HEADER_BYTES) / self.entry_bytes
    }

    fn keyspace_at(&self, number: usize) -> u32 {
        u32_at(&self.bytes, DIRECTORY_HEADER_BYTES + number * self.entry_bytes)
    }

    /// The number of the first entry of this keyspace or a later one.
    fn first_from(&self, keyspace: u64) -> usize {
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = low.midpoint(high);
            if u64::from(self.keyspace_at(middle)) < keyspace {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// All entries, in the order of their pages.
    pub fn entries(&self) -> Result<Vec<SectionEntry>, Corruption> {
        (0..self.count()).map(|number| self.entry(number)).collect()
    }

    /// The entries of one keyspace, in the order of their pages.
    pub fn entries_of(&self, keyspace: KeyspaceId) -> Result<Vec<SectionEntry>, Corruption> {
        let numbers = match self.is_ascending {
            true => self.first_from(keyspace.0.into())..self.first_from(u64::from(keyspace.0) + 1),
            false => 0..self.count(),
        };
        let own = numbers.filter(|&number| self.keyspace_at(number) == keyspace.0);
        own.map(|number| self.entry(number)).collect()
    }

    fn entry(&self, number: usize) -> Result<SectionEntry, Corruption> {
        let start = DIRECTORY_HEADER_BYTES + number * self.entry_bytes;
        decode_entry(&self.bytes[start..start + self.entry_bytes], start as u64, self.offset)
    }
}
