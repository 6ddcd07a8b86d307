//! [`Spilled`]: items of a bulk ingest that have all arrived, by part.

use std::ops::Range;
use std::sync::Arc;

use alluvium_base::checksum::checksum64;
use alluvium_base::{Corruption, HashRange, KeyHash};
use alluvium_io::sync::atomic::{AtomicBool, Ordering};
use alluvium_io::{AlignedBuffer, File, ReadRequest, Storage};

use super::mass::cell;
use super::spill::{IN_FLIGHT_MAX, Spill, SpillShape};
use crate::error::{IoContext, Result};

/// Maximum bytes of one read.
const READ_BYTES_MAX: usize = 1 << 20;
/// Bytes of a part that are read at once, unless memory is short: the product of a read and the number in flight.
const WINDOW_BYTES_MAX: usize = 8 * READ_BYTES_MAX;
/// The number of bytes that items take in a chunk, and their checksum, both at the chunk's end.
pub(super) const CHUNK_TRAILER_BYTES: usize = 16;

/// Items of a bulk ingest before they are written to tables. Its files are removed when it is dropped.
pub(crate) struct Spilled {
    pub(super) storage: Arc<dyn Storage>,
    /// Distinguishes the files of this spill from those of others.
    pub(super) number: u64,
    /// The hashes that may occur.
    bounds: HashRange,
    /// Leading bits that all hashes share, followed by zeros, and their number.
    prefix: u128,
    prefix_bits: u32,
    pub(super) shape: SpillShape,
    pub(super) parts: Vec<Part>,
}

/// Items whose hashes share their leading bits, in the order in which they arrived.
#[derive(Default)]
pub(super) struct Part {
    pub file: Option<Arc<dyn File>>,
    is_removed: AtomicBool,
    /// Number of chunks in the file.
    pub chunks: u64,
    /// Items that are not in the file.
    pub buffer: AlignedBuffer,
    items: u64,
    bytes: u64,
    /// The lowest and the highest hash.
    range: Option<HashRange>,
}

impl Part {
    /// Counts an item of `bytes` bytes.
    #[inline]
    pub fn count(&mut self, hash: KeyHash, bytes: u64) {
        self.items += 1;
        self.bytes += bytes;
        let HashRange { low, high } = self.range.unwrap_or(HashRange::new(hash.0, hash.0));
        self.range = Some(HashRange::new(low.min(hash.0), high.max(hash.0)));
    }
}

impl Spilled {
    /// An empty spill for hashes within `bounds`.
    pub(super) fn empty(
        storage: Arc<dyn Storage>,
        number: u64,
        shape: SpillShape,
        bounds: HashRange,
    ) -> Self {
        let shared = (bounds.low ^ bounds.high).leading_zeros().min(128 - shape.part_bits);
        Self::within(storage, number, shape, bounds, (bounds.low, shared))
    }

    /// An empty spill for hashes within `bounds` that share their first `prefix_bits` bits with `prefix`.
    fn within(
        storage: Arc<dyn Storage>,
        number: u64,
        shape: SpillShape,
        bounds: HashRange,
        (prefix, prefix_bits): (u128, u32),
    ) -> Self {
        let parts = (0..shape.parts()).map(|_| Part::default()).collect();
        let prefix = cell(prefix, 128 - prefix_bits).low;
        Self { storage, number, bounds, prefix, prefix_bits, shape, parts }
    }

    /// A spill for the items of one part of this one, finer by as many parts as this one has. It divides by the first
    /// bits in which the hashes differ. If one prefix has all items, these may be far behind the bits of the part.
    pub fn finer(&self, part: usize, number: u64) -> Spill {
        let HashRange { low, high } = self.parts[part].range.unwrap_or(HashRange::new(0, 0));
        let shared = (low ^ high).leading_zeros().min(128 - self.shape.part_bits);
        let storage = self.storage.clone();
        Spill::into_parts(Self::within(storage, number, self.shape, self.range(part), (low, shared)))
    }

    /// The part of this hash.
    #[inline]
    pub(super) fn part_of(&self, hash: KeyHash) -> usize {
        let bits = self.shape.part_bits;
        (hash.0 >> (128 - self.prefix_bits - bits)) as usize & ((1 << bits) - 1)
    }

    /// Bytes in files.
    pub fn file_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.chunks).sum::<u64>() * self.shape.chunk_bytes as u64
    }

    /// Number of parts.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// The parts that may have items, at least one.
    pub fn bounded_parts(&self) -> Range<usize> {
        let within = cell(self.prefix, 128 - self.prefix_bits).clip(self.bounds);
        let HashRange { low, high } = within.unwrap_or(self.bounds);
        self.part_of(KeyHash(low))..self.part_of(KeyHash(high)) + 1
    }

    /// The hashes of a part that may have items. Together these parts cover all hashes that may occur.
    pub fn range(&self, part: usize) -> HashRange {
        let rest_bits = 128 - self.prefix_bits - self.shape.part_bits;
        let start = |part: usize| self.prefix | (part as u128) << rest_bits;
        let bounded = self.bounded_parts();
        let first = if part == bounded.start { self.bounds.low } else { start(part) };
        let last = if part + 1 == bounded.end { self.bounds.high } else { start(part + 1) - 1 };
        HashRange::new(first, last)
    }

    /// The hashes of adjacent parts, at least one.
    pub fn range_of(&self, parts: &Range<usize>) -> HashRange {
        HashRange::new(self.range(parts.start).low, self.range(parts.end - 1).high)
    }

    /// Items of a part.
    pub fn items(&self, part: usize) -> u64 {
        self.parts[part].items
    }

    /// Encoded bytes of a part's items.
    pub fn bytes(&self, part: usize) -> u64 {
        self.parts[part].bytes
    }

    /// Whether a finer spill would divide the items of this part: they have more than one hash.
    pub fn can_split(&self, part: usize) -> bool {
        self.parts[part].range.is_some_and(|range| range.low < range.high)
    }

    /// Calls `visit` with the items of a part, in the order in which they arrived, many at a time. Reads into `room`:
    /// up to 8 MiB, or eight chunks if memory is short.
    ///
    /// # Errors
    /// A corruption if the file does not contain what was written to it, and the errors of `visit`.
    pub fn for_each(
        &self,
        part: usize,
        room: &mut AlignedBuffer,
        mut visit: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let Part { file, chunks, buffer, .. } = &self.parts[part];
        let chunk_bytes = self.shape.chunk_bytes;
        let window_bytes = if self.shape.is_bounded { IN_FLIGHT_MAX * chunk_bytes } else { WINDOW_BYTES_MAX };
        if let Some(file) = file {
            let end = chunks * chunk_bytes as u64;
            for first in (0..end).step_by(window_bytes / chunk_bytes * chunk_bytes) {
                room.clear();
                room.resize_unspecified(window_bytes.min((end - first) as usize));
                self.fill(file, first, room)?;
                for (chunk, offset) in room.chunks(chunk_bytes).zip((first..).step_by(chunk_bytes)) {
                    visit(content(chunk, file.name(), offset)?)?;
                }
            }
        }
        visit(buffer)
    }

    /// Fills `bytes` from position `first` of a part's file, by reads in flight together.
    fn fill(&self, file: &Arc<dyn File>, first: u64, bytes: &mut [u8]) -> Result<()> {
        let read = |(number, buffer)| {
            let offset = first + (number * READ_BYTES_MAX) as u64;
            ReadRequest { file: &**file, offset, buffer, result: Ok(0) }
        };
        let mut requests: Vec<ReadRequest<'_>> =
            bytes.chunks_mut(READ_BYTES_MAX).enumerate().map(read).collect();
        self.storage.read_batch(&mut requests);
        for request in requests {
            let read = request.result.context(|| format!("reading {}", file.name()))?;
            if read < request.buffer.len() {
                let expected = format!("{} bytes", request.buffer.len());
                let found = format!("{read}, then the end");
                return Err(Corruption::new(file.name(), request.offset, expected, found).into());
            }
        }
        Ok(())
    }

    /// Gives a part's space back: its items have been written to tables.
    pub fn remove(&self, part: usize) -> Result<()> {
        let Part { file, is_removed, .. } = &self.parts[part];
        let Some(file) = file else { return Ok(()) };
        is_removed.store(true, Ordering::Relaxed);
        self.storage.remove(file.name()).context(|| format!("removing {}", file.name()))
    }
}

/// The items of a chunk at `offset` of the file `name`.
fn content<'a>(chunk: &'a [u8], name: &str, offset: u64) -> Result<&'a [u8]> {
    let (content, trailer) = chunk.split_at(chunk.len() - CHUNK_TRAILER_BYTES);
    let (used, checksum) = trailer.split_at(CHUNK_TRAILER_BYTES / 2);
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("half a trailer"));
    let (used, checksum) = (number(used), number(checksum));
    let items = usize::try_from(used).ok().and_then(|used| content.get(..used)).ok_or_else(|| {
        Corruption::new(name, offset, format!("at most {} bytes of items", content.len()), format!("{used}"))
    })?;
    let found = checksum64(items, offset);
    if found == checksum {
        return Ok(items);
    }
    let expected = format!("checksum {checksum:016x}");
    Err(Corruption::new(name, offset, expected, format!("{found:016x}")).into())
}

impl Drop for Spilled {
    fn drop(&mut self) {
        for part in &self.parts {
            if let Some(file) = &part.file
                && !part.is_removed.load(Ordering::Relaxed)
            {
                // A file that cannot be removed is found at the next opening.
                let _ = self.storage.remove(file.name());
            }
        }
    }
}
