//! The file of a directory, which an opening reads instead of all records (SkimpyStash, SIGMOD 2011, §4.7).
//!
//! ```text
//! directory-N:  header   magic 8 bytes "ALVMDIR\0" | major 2 | minor 2 | keyspace 4 | number of the file 8 | first
//!                        segment 8 | number of regions 4 | zero 4 | checksum 8 of bytes 0..40, seed 0
//!               part     length 4 | the region; one part for each region, in order
//!               part     length 4 | last segment 8 | zeros 4 | for each key of the sample: hash 8, bytes 4, expiry 8
//!               checksum 8
//! ```
//!
//! Regions are stored as module `chain_region` of `crates/index` does it. The *first segment* is the oldest one whose
//! records may be missing; no head is in a segment behind the *last*. The checksum is that of the last part, length
//! included, seeded with that of the part before it, and so on; that of the first part is seeded with the header's.
//!
//! A file is written while others append. Each region is copied under its lock, so it has all records up to some
//! position behind the first segment's start. A replay from there adds the others, and changes nothing where a record
//! is known: the head of its chain is not older.

use alluvium_base::checksum::checksum64;
use alluvium_base::{Corruption, KeyspaceId, SegmentId};
use alluvium_index::chain_region::ChainRegion;
use alluvium_io::{AlignedBuffer, File, OpenMode, Storage};
use alluvium_model::ChainedSpec;

use super::directory::{Directory, REGION_BITS, REGIONS, filter_bytes};
use super::sample::LiveSample;
use crate::error::{Error, IoContext, Result};
use crate::table::OutputOptions;

const MAGIC: [u8; 8] = *b"ALVMDIR\0";
const MAJOR: u16 = 1;
const MINOR: u16 = 0;
pub(super) const HEADER_BYTES: usize = 48;
pub(super) const HEADER_CHECKED_BYTES: usize = 40;
/// Bytes of the length in front of a part.
pub(super) const LEN_BYTES: usize = 4;
const CHECKSUM_BYTES: usize = 8;
/// Files end on a multiple of this, and are read and written at multiples of it.
const BLOCK_BYTES: usize = 4096;
/// Bytes that are read at a time, unless a part takes more.
const READ_BYTES: usize = 1 << 20;

/// Which directory a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DirectoryFile {
    pub number: u64,
    pub keyspace: KeyspaceId,
    /// The oldest segment whose records may be missing.
    pub from: SegmentId,
}

impl DirectoryFile {
    fn header(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&MAJOR.to_le_bytes());
        bytes[10..12].copy_from_slice(&MINOR.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.keyspace.0.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.number.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.from.0.to_le_bytes());
        bytes[32..36].copy_from_slice(&(REGIONS as u32).to_le_bytes());
        let checksum = checksum64(&bytes[..HEADER_CHECKED_BYTES], 0);
        bytes[HEADER_CHECKED_BYTES..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Writes `directory`, with the sample of its keyspace, to a new file; returns the bytes written. The content
    /// survives a power cut, but not the name.
    pub fn write(
        &self,
        storage: &dyn Storage,
        name: &str,
        (directory, sample): (&Directory, &LiveSample),
        options: OutputOptions,
    ) -> Result<u64> {
        let file = storage.open(name, OpenMode::Create).context(|| format!("creating {name}"))?;
        let needed = options.leave_bytes + directory.memory_bytes();
        file.check_available(0, needed).context(|| format!("writing {name}"))?;
        let header = self.header();
        let write_bytes = options.write_bytes.next_multiple_of(BLOCK_BYTES);
        let mut output = Output { file: &*file, pending: header.to_vec(), at: 0, write_bytes, checksum: 0 };
        output.checksum = checksum_in(&header);
        let mut part = Vec::new();
        for region in 0..REGIONS as usize {
            part.clear();
            directory.region(region).write_to(&mut part);
            output.put(&part)?;
        }
        part.clear();
        // Read last, so that no head is behind it.
        part.extend_from_slice(&directory.last_segment().0.to_le_bytes());
        sample.write_to(&mut part);
        output.put(&part)?;
        let bytes = output.finish()?;
        file.sync().context(|| format!("syncing {name}"))?;
        Ok(bytes)
    }

    /// Reads the directory. `spec` returns the plan of chains for a directory in which a key has one slot, or two.
    /// Returns `None` if the file's chains are of another kind.
    ///
    /// # Errors
    /// [`Corruption`] if the file is not sound.
    pub fn read(&self, file: &dyn File, spec: impl Fn(bool) -> ChainedSpec) -> Result<Option<Directory>> {
        let len = file.len().context(|| format!("measuring {}", file.name()))?;
        let mut input = Input { file, len, buffer: AlignedBuffer::new(), start: 0, at: 0, checksum: 0 };
        let found: [u8; HEADER_BYTES] =
            input.take(HEADER_BYTES)?.try_into().expect("as long as it was asked");
        self.check_header(&found, file.name())?;
        input.checksum = checksum_in(&found);
        let (mut regions, mut chosen) = (Vec::with_capacity(REGIONS as usize), None);
        for _ in 0..REGIONS {
            let at = input.at;
            let part = input.part()?;
            let unsound = |found: String| Corruption::new(file.name(), at, "a region of a directory", found);
            let shape = ChainRegion::shape_in(part).ok_or_else(|| unsound("none".to_owned()))?;
            let spec = *chosen.get_or_insert_with(|| spec(shape.filter_bytes > 0));
            if shape.filter_bytes != filter_bytes(&spec) {
                return Ok(None);
            }
            let (region, len) = ChainRegion::read_from(part, shape, REGION_BITS)
                .map_err(|corruption| unsound(corruption.to_string()))?;
            if len != part.len() {
                return Err(unsound(format!("{} bytes, of which it takes {len}", part.len())).into());
            }
            regions.push(region);
        }
        let at = input.at;
        let unsound = || Corruption::new(file.name(), at, "the last part of a directory", "another");
        let (last, sample) = input.part()?.split_first_chunk().ok_or_else(unsound)?;
        let last = SegmentId(u64::from_le_bytes(*last));
        let sample = LiveSample::read_from(sample).ok_or_else(unsound)?;
        input.check()?;
        Ok(chosen.map(|spec| Directory::of_regions(self.keyspace, spec, regions, last, sample)))
    }

    /// # Errors
    /// [`Corruption`] if the bytes are not the header of this directory; [`Error::NewerFormat`].
    fn check_header(&self, found: &[u8; HEADER_BYTES], name: &str) -> Result<()> {
        let expected = self.header();
        if found[..8] != MAGIC {
            return Err(Corruption::new(name, 0, "the header of a directory", "other bytes").into());
        }
        if checksum_in(found) != checksum64(&found[..HEADER_CHECKED_BYTES], 0) {
            return Err(Corruption::new(name, 40, "the header's checksum", "another one").into());
        }
        let major = u16::from_le_bytes([found[8], found[9]]);
        if major > MAJOR {
            return Err(Error::NewerFormat { file: name.to_owned(), found: major, supported: MAJOR });
        }
        if found[12..HEADER_CHECKED_BYTES] != expected[12..HEADER_CHECKED_BYTES] {
            let expected = "this keyspace, number, segment and number of regions";
            return Err(Corruption::new(name, 12, expected, format!("{:02x?}", &found[12..40])).into());
        }
        Ok(())
    }
}

fn checksum_in(header: &[u8; HEADER_BYTES]) -> u64 {
    u64::from_le_bytes(header[HEADER_CHECKED_BYTES..].try_into().expect("eight bytes"))
}

/// The parts of a file that is being written.
struct Output<'f> {
    file: &'f dyn File,
    pending: Vec<u8>,
    /// Where they belong.
    at: u64,
    write_bytes: usize,
    checksum: u64,
}

impl Output<'_> {
    fn put(&mut self, part: &[u8]) -> Result<()> {
        let start = self.pending.len();
        self.pending.extend_from_slice(&(part.len() as u32).to_le_bytes());
        self.pending.extend_from_slice(part);
        self.checksum = checksum64(&self.pending[start..], self.checksum);
        self.write(self.write_bytes)
    }

    /// Writes what is pending as long as there is this number of bytes.
    fn write(&mut self, bytes: usize) -> Result<()> {
        let mut written = 0;
        while self.pending.len() - written >= bytes && written < self.pending.len() {
            let piece = AlignedBuffer::from(&self.pending[written..written + bytes]);
            let context = || format!("writing {}", self.file.name());
            self.file.write_at(&piece, self.at).context(context)?;
            written += bytes;
            self.at += bytes as u64;
        }
        self.pending.drain(..written);
        Ok(())
    }

    fn finish(mut self) -> Result<u64> {
        self.pending.extend_from_slice(&self.checksum.to_le_bytes());
        self.pending.resize(self.pending.len().next_multiple_of(BLOCK_BYTES), 0);
        self.write(self.pending.len())?;
        Ok(self.at)
    }
}

/// The bytes of a file, one part after the other.
struct Input<'f> {
    file: &'f dyn File,
    len: u64,
    /// What is present, from offset `start` on.
    buffer: AlignedBuffer,
    start: u64,
    at: u64,
    checksum: u64,
}

impl Input<'_> {
    fn take(&mut self, len: usize) -> Result<&[u8]> {
        let end = self.at + len as u64;
        if end > self.len {
            let expected = format!("{len} bytes of a directory");
            return Err(Corruption::new(self.file.name(), self.at, expected, "its end").into());
        }
        if end > self.start + self.buffer.len() as u64 {
            self.start = self.at / BLOCK_BYTES as u64 * BLOCK_BYTES as u64;
            let needed = (end - self.start) as usize;
            let wanted = (self.len - self.start).min(needed.max(READ_BYTES) as u64) as usize;
            self.buffer.resize_unspecified(wanted.next_multiple_of(BLOCK_BYTES));
            let context = || format!("reading {}", self.file.name());
            let read = self.file.read_at(&mut self.buffer, self.start).context(context)?;
            self.buffer.truncate(read);
            if read < needed {
                let expected = format!("{len} bytes of a directory");
                return Err(Corruption::new(self.file.name(), self.at, expected, "its end").into());
            }
        }
        let from = (self.at - self.start) as usize;
        self.at = end;
        Ok(&self.buffer[from..from + len])
    }

    /// The next part, without its length.
    fn part(&mut self) -> Result<&[u8]> {
        let len = self.take(LEN_BYTES)?.try_into().expect("as long as it was asked");
        let len = u32::from_le_bytes(len) as usize;
        self.at -= LEN_BYTES as u64;
        let seed = self.checksum;
        self.checksum = checksum64(self.take(LEN_BYTES + len)?, seed);
        let end = (self.at - self.start) as usize;
        Ok(&self.buffer[end - len..end])
    }

    /// Checks the checksum of all parts.
    fn check(&mut self) -> Result<()> {
        let (at, expected) = (self.at, self.checksum);
        let stored = self.take(CHECKSUM_BYTES)?.try_into().expect("as long as it was asked");
        let stored = u64::from_le_bytes(stored);
        if stored == expected {
            return Ok(());
        }
        let (expected, found) = (format!("the checksum {expected:#x}"), format!("{stored:#x}"));
        Err(Corruption::new(self.file.name(), at, expected, found).into())
    }
}
