//! [`Spill`]: the items of a bulk ingest on their way into tables, parted by hash, in temporary files.
//!
//! What takes more memory than a buffer for each part goes to a file for each part, in chunks that hold whole items.
//! Nothing of it survives a crash: the next opening removes the files.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use alluvium_base::checksum::checksum64;
use alluvium_base::{Corruption, KeyHash};
use alluvium_io::{AlignedBuffer, File, OpenMode, Operation, Pipeline, ReadRequest, Storage};

use crate::error::{IoContext, Result};

/// Log2 of the parts of a spill.
const PART_BITS: u32 = 8;
/// Bytes of a chunk, and so of a part's buffer: all parts together hold up to 32 MiB in memory.
const CHUNK_BYTES: usize = 128 << 10;
const PAGE_BYTES: usize = 4096;
/// Items gather in so much for each part before they go to its buffer: together that fits in the processor's cache,
/// while appending to the buffers themselves would miss cache and page table with every item.
const STAGE_BYTES: usize = 2 << 10;
/// Chunks on their way to the device.
const IN_FLIGHT_MAX: usize = 8;
/// Most bytes of one read.
const READ_BYTES_MAX: usize = 1 << 20;

/// Items on their way into tables, still coming.
pub(crate) struct Spill {
    spilled: Spilled,
    /// The parts' stages, one after the other.
    stages: Vec<u8>,
    /// How far each stage is filled.
    staged: Vec<usize>,
    pipeline: Box<dyn Pipeline>,
    spare: Vec<AlignedBuffer>,
}

/// Items on their way into tables. Its files go with it.
pub(crate) struct Spilled {
    storage: Arc<dyn Storage>,
    /// Tells the files of this spill from those of others.
    number: u64,
    /// Leading bits that all hashes share, and how many these are.
    prefix: u64,
    prefix_bits: u32,
    parts: Vec<Part>,
}

/// Items whose hashes share their leading bits, in the order in which they came.
#[derive(Default)]
struct Part {
    file: Option<Arc<dyn File>>,
    is_removed: AtomicBool,
    chunks: Vec<Chunk>,
    buffer: AlignedBuffer,
    items: u64,
    bytes: u64,
    /// The first hash, and whether all others are the same.
    first: Option<KeyHash>,
    alike: bool,
}

/// What a chunk of the file holds; the rest of it is unspecified.
#[derive(Clone, Copy)]
struct Chunk {
    used: usize,
    checksum: u64,
}

/// The name of a spill's file.
fn file_name(number: u64, part: usize) -> String {
    format!("spill-{number:08}-{part:03}")
}

/// Whether a file of this name is of a spill: without an owner after a crash.
pub(crate) fn is_spill_file_name(name: &str) -> bool {
    name.starts_with("spill-")
}

impl Spill {
    /// For all hashes. `number` is used for no other spill of this directory.
    pub fn new(storage: Arc<dyn Storage>, number: u64) -> Self {
        Self::within(storage, number, 0, 0)
    }

    /// For hashes that start with `prefix`, of `prefix_bits` bits.
    fn within(storage: Arc<dyn Storage>, number: u64, prefix: u64, prefix_bits: u32) -> Self {
        let pipeline = storage.pipeline(IN_FLIGHT_MAX);
        let parts = (0..1 << PART_BITS).map(|_| Part::default()).collect();
        let spilled = Spilled { storage, number, prefix, prefix_bits, parts };
        let stages = vec![0; STAGE_BYTES << PART_BITS];
        Self { spilled, stages, staged: vec![0; 1 << PART_BITS], pipeline, spare: Vec::new() }
    }

    /// Memory of buffers.
    pub fn memory_bytes(&self) -> u64 {
        let buffers = self.spilled.parts.iter().map(|part| part.buffer.capacity()).sum::<usize>();
        (buffers + IN_FLIGHT_MAX * CHUNK_BYTES) as u64
    }

    /// Adds an item, which counts instead of earlier ones of its key. Returns whether a chunk went to a file.
    #[inline]
    pub fn push(&mut self, hash: KeyHash, encoded: &[u8]) -> Result<bool> {
        let shift = 64 - self.spilled.prefix_bits - PART_BITS;
        let number = (hash.high() >> shift) as usize & ((1 << PART_BITS) - 1);
        let part = &mut self.spilled.parts[number];
        part.items += 1;
        part.bytes += encoded.len() as u64;
        part.alike = *part.first.get_or_insert(hash) == hash && (part.alike || part.items == 1);
        let mut wrote = false;
        if self.staged[number] + encoded.len() > STAGE_BYTES {
            wrote = self.unstage(number)?;
            if encoded.len() > STAGE_BYTES {
                return Ok(self.append(number, encoded)? || wrote);
            }
        }
        let start = number * STAGE_BYTES + self.staged[number];
        self.stages[start..start + encoded.len()].copy_from_slice(encoded);
        self.staged[number] += encoded.len();
        Ok(wrote)
    }

    /// Moves a part's stage to its buffer.
    fn unstage(&mut self, number: usize) -> Result<bool> {
        let start = number * STAGE_BYTES;
        let stages = std::mem::take(&mut self.stages);
        let outcome = self.append(number, &stages[start..start + self.staged[number]]);
        self.stages = stages;
        self.staged[number] = 0;
        outcome
    }

    /// Appends whole items to a part's buffer.
    fn append(&mut self, number: usize, items: &[u8]) -> Result<bool> {
        debug_assert!(items.len() <= CHUNK_BYTES);
        let full = self.spilled.parts[number].buffer.len() + items.len() > CHUNK_BYTES;
        if full {
            self.write_chunk(number)?;
        }
        let buffer = &mut self.spilled.parts[number].buffer;
        if buffer.capacity() < CHUNK_BYTES && !items.is_empty() {
            *buffer = AlignedBuffer::with_capacity(CHUNK_BYTES);
        }
        buffer.extend_from_slice(items);
        Ok(full)
    }

    /// Starts writing what a part's buffer holds.
    #[cold]
    fn write_chunk(&mut self, number: usize) -> Result<()> {
        let next = if self.pipeline.pending() < IN_FLIGHT_MAX {
            self.spare.pop().unwrap_or_else(|| AlignedBuffer::with_capacity(CHUNK_BYTES))
        } else {
            self.wait()?.expect("operations are pending")
        };
        let part = &mut self.spilled.parts[number];
        let name = file_name(self.spilled.number, number);
        let file = match &part.file {
            Some(file) => file.clone(),
            None => {
                let file = self
                    .spilled
                    .storage
                    .open(&name, OpenMode::Create)
                    .context(|| format!("creating {name}"))?;
                part.file.insert(file).clone()
            }
        };
        let mut full = std::mem::replace(&mut part.buffer, next);
        part.buffer.clear();
        let offset = (part.chunks.len() * CHUNK_BYTES) as u64;
        part.chunks.push(Chunk { used: full.len(), checksum: checksum64(&full, offset) });
        full.pad_to(PAGE_BYTES);
        self.pipeline.submit(Operation::Write, &*file, offset, full, 0);
        Ok(())
    }

    /// The buffer of a write that is done; `None` when none is under way.
    fn wait(&mut self) -> Result<Option<AlignedBuffer>> {
        let Some(written) = self.pipeline.wait() else { return Ok(None) };
        written.result.context(|| "writing items that are to be ingested".to_owned())?;
        Ok(Some(written.buffer))
    }

    /// Waits for what is under way to the files; what fits in the buffers stays there.
    pub fn finish(mut self) -> Result<Spilled> {
        for number in 0..1 << PART_BITS {
            self.unstage(number)?;
        }
        while self.wait()?.is_some() {}
        Ok(self.spilled)
    }
}

impl Spilled {
    /// A spill for the items of one part of this one, finer by 256.
    pub fn finer(&self, part: usize, number: u64) -> Spill {
        let prefix = self.prefix << PART_BITS | part as u64;
        Spill::within(self.storage.clone(), number, prefix, self.prefix_bits + PART_BITS)
    }

    /// Bytes in files.
    pub fn file_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.chunks.len() * CHUNK_BYTES).sum::<usize>() as u64
    }

    /// Number of parts.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// First and last leading hash bits of a part.
    pub fn range(&self, part: usize) -> (u64, u64) {
        let bits = self.prefix_bits + PART_BITS;
        crate::level::shard_range(bits, self.prefix << PART_BITS | part as u64)
    }

    /// Items of a part.
    pub fn items(&self, part: usize) -> u64 {
        self.parts[part].items
    }

    /// Encoded bytes of a part's items.
    pub fn bytes(&self, part: usize) -> u64 {
        self.parts[part].bytes
    }

    /// Whether a finer spill would part the items of this part: they have more than one hash.
    pub fn can_split(&self, part: usize) -> bool {
        self.prefix_bits + 2 * PART_BITS <= 64 && !self.parts[part].alike
    }

    /// The items of a part, in the order in which they came, in the memory of `bytes`.
    ///
    /// # Errors
    /// A corruption when the file does not hold what was written to it.
    pub fn read(&self, part: usize, bytes: AlignedBuffer) -> Result<SpilledItems> {
        self.read_chunks(part, 0..self.parts[part].chunks.len(), bytes)
    }

    /// Calls `visit` with the items of a part, in the order in which they came, many at a time: for parts that may be
    /// larger than memory.
    ///
    /// # Errors
    /// Those of [`Spilled::read`] and of `visit`.
    pub fn for_each(&self, part: usize, mut visit: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let count = self.parts[part].chunks.len();
        let mut memory = AlignedBuffer::default();
        for first in (0..count.max(1)).step_by(READ_BYTES_MAX / CHUNK_BYTES) {
            let window = first..count.min(first + READ_BYTES_MAX / CHUNK_BYTES);
            let SpilledItems { bytes, chunks } = self.read_chunks(part, window, memory)?;
            chunks.into_iter().try_for_each(|chunk| visit(&bytes[chunk]))?;
            memory = bytes;
        }
        Ok(())
    }

    /// Some chunks of a part's file; behind the last of them what stayed in memory.
    fn read_chunks(
        &self,
        part: usize,
        window: Range<usize>,
        mut bytes: AlignedBuffer,
    ) -> Result<SpilledItems> {
        let Part { file, chunks, buffer, .. } = &self.parts[part];
        let (first, is_last) = ((window.start * CHUNK_BYTES) as u64, window.end == chunks.len());
        let wanted = &chunks[window];
        let padded = |chunk: &Chunk| chunk.used.next_multiple_of(PAGE_BYTES);
        let written = wanted.len().saturating_sub(1) * CHUNK_BYTES + wanted.last().map_or(0, padded);
        bytes.clear();
        bytes.reserve(written + buffer.len());
        bytes.resize_unspecified(written);
        if let Some(file) = file {
            self.fill(file, first, &mut bytes)?;
        }
        let mut ranges = Vec::with_capacity(wanted.len() + 1);
        for (number, chunk) in wanted.iter().enumerate() {
            let start = number * CHUNK_BYTES;
            let (range, offset) = (start..start + chunk.used, first + start as u64);
            let found = checksum64(&bytes[range.clone()], offset);
            if found != chunk.checksum {
                let expected = format!("checksum {:016x}", chunk.checksum);
                let name = file_name(self.number, part);
                return Err(Corruption::new(&name, offset, expected, format!("{found:016x}")).into());
            }
            ranges.push(range);
        }
        if is_last {
            bytes.extend_from_slice(buffer);
            ranges.push(written..bytes.len());
        }
        Ok(SpilledItems { chunks: ranges, bytes })
    }

    /// Fills `bytes` from `first` of a part's file, by reads in flight together.
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

    /// Gives a part's space back: its items are where they belong.
    pub fn remove(&self, part: usize) -> Result<()> {
        let Part { file, is_removed, .. } = &self.parts[part];
        let Some(file) = file else { return Ok(()) };
        is_removed.store(true, Ordering::Relaxed);
        self.storage.remove(file.name()).context(|| format!("removing {}", file.name()))
    }
}

impl Drop for Spilled {
    fn drop(&mut self) {
        for part in &self.parts {
            if let Some(file) = &part.file
                && !part.is_removed.load(Ordering::Relaxed)
            {
                // One that can't be removed is found at the next opening.
                let _ = self.storage.remove(file.name());
            }
        }
    }
}

/// A part's items in memory: whole items in each of the chunks.
pub(crate) struct SpilledItems {
    pub bytes: AlignedBuffer,
    pub chunks: Vec<Range<usize>>,
}

#[cfg(test)]
mod tests {
    use alluvium_io::SimulatedStorage;

    use super::*;

    fn storage() -> Arc<dyn Storage> {
        Arc::new(SimulatedStorage::new(1))
    }

    /// Pushes items of `len` bytes with these leading hash bits, each told from others by its number.
    fn spill(storage: &Arc<dyn Storage>, hashes: &[u64], len: usize) -> Spilled {
        let mut spill = Spill::new(storage.clone(), 7);
        for (number, &hash) in hashes.iter().enumerate() {
            let mut item = vec![number as u8; len];
            item[..8].copy_from_slice(&(number as u64).to_le_bytes());
            spill.push(KeyHash::from_halves(hash, 0), &item).unwrap();
        }
        spill.finish().unwrap()
    }

    /// The numbers of a part's items.
    fn numbers(spilled: &Spilled, part: usize, len: usize) -> Vec<u64> {
        let SpilledItems { bytes, chunks } = spilled.read(part, AlignedBuffer::default()).unwrap();
        let number = |item: &[u8]| u64::from_le_bytes(item[..8].try_into().unwrap());
        let items = chunks.iter().flat_map(|chunk| bytes[chunk.clone()].chunks(len));
        let at_once: Vec<u64> = items.map(number).collect();
        let mut by_and_by = Vec::new();
        let visit = |items: &[u8]| {
            by_and_by.extend(items.chunks(len).map(number));
            Ok(())
        };
        spilled.for_each(part, visit).unwrap();
        assert_eq!(at_once, by_and_by);
        at_once
    }

    #[test]
    fn items_come_back_in_order_from_memory_and_from_files() {
        let storage = storage();
        // 30,000 items of 100 bytes in part 1 take 23 chunks; part 255 stays in memory.
        let hashes: Vec<u64> =
            (0..31_000).map(|number| if number % 31 == 0 { u64::MAX } else { 1 << 56 }).collect();
        let spilled = spill(&storage, &hashes, 100);
        assert_eq!(storage.list().unwrap(), ["spill-00000007-001"]);
        let of = |hash| (0..31_000_u64).filter(|&number| hashes[number as usize] == hash).collect::<Vec<_>>();
        assert_eq!(numbers(&spilled, 1, 100), of(1 << 56));
        assert_eq!(numbers(&spilled, 255, 100), of(u64::MAX));
        assert_eq!((spilled.items(0), spilled.items(1), spilled.bytes(255)), (0, 30_000, 100_000));
        assert_eq!(spilled.range(1), (1 << 56, (2 << 56) - 1));
        assert!(!spilled.can_split(1));
        drop(spilled);
        assert!(storage.list().unwrap().is_empty());
    }

    #[test]
    fn a_damaged_file_is_an_error() {
        let storage = storage();
        let spilled = spill(&storage, &[0; 2_000], 100);
        let file = storage.open("spill-00000007-000", OpenMode::Write).unwrap();
        file.write_at(b"x", 5_000).unwrap();
        let error = spilled.read(0, AlignedBuffer::default()).map(drop).unwrap_err();
        assert!(matches!(error, crate::Error::Corruption(_)), "{error}");
    }

    #[test]
    fn a_finer_spill_parts_by_the_next_bits() {
        let storage = storage();
        let spilled = spill(&storage, &[3 << 56, 3 << 56 | 5 << 48], 10);
        assert!(spilled.can_split(3));
        let finer = spilled.finer(3, 8).finish().unwrap();
        assert_eq!(finer.range(5), (3 << 56 | 5 << 48, (3 << 56 | 6 << 48) - 1));
    }
}
