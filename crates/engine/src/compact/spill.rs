//! [`Spill`]: the items of a bulk ingest, divided by hash, in temporary files, before they are written to tables.
//!
//! A part that exceeds its buffer is written to a file of its own, in chunks that contain whole items. Nothing of it
//! survives a crash: the next opening removes the files.

use std::sync::Arc;

use alluvium_base::checksum::checksum64;
use alluvium_base::{HashRange, KeyHash};
use alluvium_io::{AlignedBuffer, OpenMode, Operation, Pipeline, Storage};

use super::spilled::{CHUNK_TRAILER_BYTES, Spilled};
use crate::error::{IoContext, Result};
use crate::file_names::spill_file_name;

/// Log2 of the maximum number of parts of a spill.
const PART_BITS_MAX: u32 = 8;
/// Maximum bytes of a chunk, and of a part's buffer: all parts together hold up to 32 MiB in memory.
const CHUNK_BYTES_MAX: usize = 128 << 10;
/// Minimum bytes of a chunk: if memory is short there are fewer parts instead of smaller chunks.
const CHUNK_BYTES_MIN: usize = 16 << 10;
/// Bytes that each part gathers before they are moved to its buffer. All stages together fit in the processor's cache,
/// while appending each item to a buffer directly would miss cache and page table each time.
const STAGE_BYTES: usize = 2 << 10;
/// Chunks being written to the device at a time.
pub(super) const IN_FLIGHT_MAX: usize = 8;

/// Number of parts of a spill, and the size of their chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpillShape {
    /// Log2 of the number of parts.
    pub part_bits: u32,
    pub chunk_bytes: usize,
    /// Whether memory is short: then nothing is held in memory once all items have arrived.
    pub is_bounded: bool,
    /// Bytes of the device that must be available before each write, so that the log has room.
    pub leave_bytes: u64,
}

impl SpillShape {
    /// As many parts as fit in `memory_bytes`; `u64::MAX` means no bound.
    fn within(memory_bytes: u64) -> Self {
        let is_bounded = memory_bytes < u64::MAX;
        let chunk_bytes = |part_bits: u32| {
            let parts = 1 << part_bits;
            let chunks = memory_bytes.saturating_sub(parts * STAGE_BYTES as u64);
            let bytes = chunks / (parts + IN_FLIGHT_MAX as u64);
            // A power of two: buffers of other sizes are rounded up to one.
            bytes.checked_ilog2().map_or(0, |log2| 1 << log2).min(CHUNK_BYTES_MAX as u64) as usize
        };
        let fits = |&part_bits: &u32| chunk_bytes(part_bits) >= CHUNK_BYTES_MIN;
        let part_bits = (1..=PART_BITS_MAX).rev().find(fits).unwrap_or(1);
        Self {
            part_bits,
            chunk_bytes: chunk_bytes(part_bits).max(CHUNK_BYTES_MIN),
            is_bounded,
            leave_bytes: 0,
        }
    }

    pub fn parts(self) -> usize {
        1 << self.part_bits
    }
}

/// Items of a bulk ingest while they arrive.
pub(crate) struct Spill {
    spilled: Spilled,
    /// The stages of all parts, one after the other.
    stages: Vec<u8>,
    /// Bytes used of each stage.
    staged: Vec<usize>,
    pipeline: Box<dyn Pipeline>,
    spare: Vec<AlignedBuffer>,
}

impl Spill {
    /// A spill for hashes within `bounds`, in some `memory_bytes`; `u64::MAX` means no bound. `number` must not be used
    /// for another spill of this directory.
    pub fn new(storage: Arc<dyn Storage>, number: u64, memory_bytes: u64, bounds: HashRange) -> Self {
        Self::into_parts(Spilled::empty(storage, number, SpillShape::within(memory_bytes), bounds))
    }

    /// Leaves at least `bytes` of the device available.
    pub fn leaving(mut self, bytes: u64) -> Self {
        self.spilled.shape.leave_bytes = bytes;
        self
    }

    pub(super) fn into_parts(spilled: Spilled) -> Self {
        let pipeline = spilled.storage.pipeline(IN_FLIGHT_MAX);
        let parts = spilled.parts();
        Self {
            spilled,
            stages: vec![0; STAGE_BYTES * parts],
            staged: vec![0; parts],
            pipeline,
            spare: Vec::new(),
        }
    }

    /// Number of leading hash bits by which items are divided.
    #[cfg(any(test, feature = "simulation"))]
    pub fn part_bits(&self) -> u32 {
        self.spilled.shape.part_bits
    }

    /// Bytes of memory of the buffers.
    pub fn memory_bytes(&self) -> u64 {
        let buffers = self.spilled.parts.iter().map(|part| part.buffer.capacity()).sum::<usize>();
        (buffers + self.stages.len() + IN_FLIGHT_MAX * self.spilled.shape.chunk_bytes) as u64
    }

    /// Adds an item, which replaces earlier ones of its key. Returns whether a chunk was written to a file.
    #[inline]
    pub fn push(&mut self, hash: KeyHash, encoded: &[u8]) -> Result<bool> {
        let number = self.spilled.part_of(hash);
        self.spilled.parts[number].count(hash, encoded.len() as u64);
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
        let chunk_bytes = self.spilled.shape.chunk_bytes;
        let content_max = chunk_bytes - CHUNK_TRAILER_BYTES;
        debug_assert!(items.len() <= content_max);
        let full = self.spilled.parts[number].buffer.len() + items.len() > content_max;
        if full {
            self.write_chunk(number)?;
        }
        let buffer = &mut self.spilled.parts[number].buffer;
        if buffer.capacity() < chunk_bytes && !items.is_empty() {
            *buffer = AlignedBuffer::with_capacity(chunk_bytes);
        }
        buffer.extend_from_slice(items);
        Ok(full)
    }

    /// Starts to write the content of a part's buffer.
    #[cold]
    fn write_chunk(&mut self, number: usize) -> Result<()> {
        let chunk_bytes = self.spilled.shape.chunk_bytes;
        let next = if self.pipeline.pending() < IN_FLIGHT_MAX {
            self.spare.pop().unwrap_or_else(|| AlignedBuffer::with_capacity(chunk_bytes))
        } else {
            self.wait()?.expect("operations are pending")
        };
        let part = &mut self.spilled.parts[number];
        let name = spill_file_name(self.spilled.number, number);
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
        let offset = part.chunks * chunk_bytes as u64;
        let leave_bytes = self.spilled.shape.leave_bytes;
        if leave_bytes > 0 {
            file.check_available(offset, leave_bytes).context(|| format!("writing {name}"))?;
        }
        part.chunks += 1;
        let (used, checksum) = (full.len() as u64, checksum64(&full, offset));
        full.resize(chunk_bytes - CHUNK_TRAILER_BYTES);
        full.extend_from_slice(&used.to_le_bytes());
        full.extend_from_slice(&checksum.to_le_bytes());
        self.pipeline.submit(Operation::Write, &*file, offset, full, 0);
        Ok(())
    }

    /// The buffer of a completed write, or `None` if none is in progress.
    fn wait(&mut self) -> Result<Option<AlignedBuffer>> {
        let Some(written) = self.pipeline.wait() else { return Ok(None) };
        written.result.context(|| "writing items that are to be ingested".to_owned())?;
        Ok(Some(written.buffer))
    }

    /// Waits for all writes in progress. What fits in the buffers stays there, unless memory is short.
    pub fn finish(mut self) -> Result<Spilled> {
        for number in 0..self.spilled.parts() {
            self.unstage(number)?;
            if self.spilled.shape.is_bounded && !self.spilled.parts[number].buffer.is_empty() {
                self.write_chunk(number)?;
                self.spilled.parts[number].buffer = AlignedBuffer::default();
            }
        }
        while self.wait()?.is_some() {}
        Ok(self.spilled)
    }
}

#[cfg(test)]
mod tests {
    use alluvium_io::SimulatedStorage;
    use proptest::prelude::*;

    use super::*;

    fn storage() -> Arc<dyn Storage> {
        Arc::new(SimulatedStorage::new(1))
    }

    /// Pushes items of `len` bytes with these leading hash bits. Each contains its number.
    fn spill(storage: &Arc<dyn Storage>, hashes: &[u64], len: usize, memory_bytes: u64) -> Spilled {
        let mut spill = Spill::new(storage.clone(), 7, memory_bytes, HashRange::ALL);
        for (number, &hash) in hashes.iter().enumerate() {
            let mut item = vec![number as u8; len];
            item[..8].copy_from_slice(&(number as u64).to_le_bytes());
            spill.push(KeyHash::from_halves(hash, 0), &item).unwrap();
            assert!(spill.memory_bytes() <= memory_bytes);
        }
        spill.finish().unwrap()
    }

    /// The numbers of a part's items.
    fn numbers(spilled: &Spilled, part: usize, len: usize) -> Result<Vec<u64>> {
        let number = |item: &[u8]| u64::from_le_bytes(item[..8].try_into().unwrap());
        let mut found = Vec::new();
        let visit = |items: &[u8]| {
            found.extend(items.chunks(len).map(number));
            Ok(())
        };
        spilled.for_each(part, &mut AlignedBuffer::default(), visit).map(|()| found)
    }

    #[test]
    fn items_come_back_in_order_from_memory_and_from_files() {
        let storage = storage();
        // 30,000 items of 100 bytes in part 1 take 23 chunks; part 255 stays in memory.
        let hashes: Vec<u64> =
            (0..31_000).map(|number| if number % 31 == 0 { u64::MAX } else { 1 << 56 }).collect();
        let spilled = spill(&storage, &hashes, 100, u64::MAX);
        assert_eq!(storage.list().unwrap(), ["spill-00000007-001"]);
        let of = |hash| (0..31_000_u64).filter(|&number| hashes[number as usize] == hash).collect::<Vec<_>>();
        assert_eq!(numbers(&spilled, 1, 100).unwrap(), of(1 << 56));
        assert_eq!(numbers(&spilled, 255, 100).unwrap(), of(u64::MAX));
        assert_eq!((spilled.items(0), spilled.items(1), spilled.bytes(255)), (0, 30_000, 100_000));
        assert_eq!(spilled.range(1), HashRange::new(1 << 120, (2 << 120) - 1));
        assert!(!spilled.can_split(1));
        drop(spilled);
        assert!(storage.list().unwrap().is_empty());
    }

    #[test]
    fn a_damaged_file_is_an_error() {
        let storage = storage();
        let spilled = spill(&storage, &[0; 2_000], 100, u64::MAX);
        let file = storage.open("spill-00000007-000", OpenMode::Write).unwrap();
        let trailer = CHUNK_BYTES_MAX as u64 - CHUNK_TRAILER_BYTES as u64;
        for offset in [5_000, trailer, trailer + 7, trailer + 8] {
            let mut before = [0];
            file.read_at(&mut before, offset).unwrap();
            file.write_at(&[!before[0]], offset).unwrap();
            let error = numbers(&spilled, 0, 100).unwrap_err();
            assert!(matches!(error, crate::Error::Corruption(_)), "{error}");
            file.write_at(&before, offset).unwrap();
        }
        assert_eq!(numbers(&spilled, 0, 100).unwrap().len(), 2_000);
    }

    #[test]
    fn a_finer_spill_parts_by_the_next_bits() {
        let storage = storage();
        let hashes = [3 << 56, 3 << 56 | 5 << 48];
        let spilled = spill(&storage, &hashes, 10, u64::MAX);
        assert!(spilled.can_split(3));
        let mut finer = spilled.finer(3, 8);
        for hash in hashes {
            finer.push(KeyHash::from_halves(hash, 0), b"an item").unwrap();
        }
        let finer = finer.finish().unwrap();
        let filled: Vec<usize> = (0..finer.parts()).filter(|&part| finer.items(part) > 0).collect();
        assert_eq!(filled.len(), 2);
        assert!(finer.range(filled[1]).contains((3 << 56 | 5 << 48) << 64));
        // Together they cover the part that they were made from.
        assert_eq!(finer.bounded_parts(), 0..finer.parts());
        assert_eq!(finer.range_of(&(0..finer.parts())), spilled.range(3));
        assert!((1..finer.parts()).all(|part| finer.range(part - 1).meets(finer.range(part))));
    }

    #[test]
    fn one_prefix_is_parted_by_the_bits_behind_it() {
        let storage = storage();
        let mut spill = Spill::new(storage, 7, u64::MAX, HashRange::ALL);
        for suffix in 0..2_000u64 {
            spill.push(KeyHash::from_halves(9, suffix << 50), &suffix.to_le_bytes()).unwrap();
        }
        let spilled = spill.finish().unwrap();
        let part = (0..spilled.parts()).find(|&part| spilled.items(part) > 0).unwrap();
        let mut finer = spilled.finer(part, 8);
        for suffix in 0..2_000u64 {
            finer.push(KeyHash::from_halves(9, suffix << 50), &suffix.to_le_bytes()).unwrap();
        }
        let finer = finer.finish().unwrap();
        assert!((0..finer.parts()).all(|part| finer.items(part) <= 16));
    }

    #[test]
    fn in_little_memory_there_are_fewer_parts_and_nothing_stays() {
        let storage = storage();
        let hashes: Vec<u64> = (0..20_000_u64).map(|number| number << 60).collect();
        let spilled = spill(&storage, &hashes, 100, 512 << 10);
        assert_eq!(spilled.parts(), 16);
        for part in 0..16 {
            let expected: Vec<u64> = (0..20_000).filter(|number| number % 16 == part).collect();
            assert_eq!(numbers(&spilled, part as usize, 100).unwrap(), expected);
        }
        assert!(spilled.parts.iter().all(|part| part.buffer.capacity() == 0));
    }

    proptest! {
        /// The parts of a spill for any range cover the range without gaps, and so do the parts of one of them.
        #[test]
        fn parts_cover_the_bounds(ends: (u128, u128), shift in 0u32..127, share in 0usize..4) {
            let (low, high) = (ends.0.min(ends.1) >> shift, ends.0.max(ends.1) >> shift);
            let bounds = HashRange::new(low, high);
            let mut spill = Spill::new(storage(), 7, 1 << 20, bounds);
            let inner = low + (high - low) / 4 * share as u128;
            for hash in [low, high, inner, inner.min(high.saturating_sub(1)).max(low)] {
                spill.push(KeyHash(hash), b"an item").unwrap();
            }
            let spilled = spill.finish().unwrap();
            let check = |spilled: &Spilled, bounds: HashRange| {
                let parts = spilled.bounded_parts();
                assert_eq!(spilled.range_of(&parts), bounds);
                assert!(parts.clone().skip(1).all(|part| spilled.range(part - 1).meets(spilled.range(part))));
                assert!((0..spilled.parts()).all(|part| parts.contains(&part) || spilled.items(part) == 0));
            };
            check(&spilled, bounds);
            for part in spilled.bounded_parts().filter(|&part| spilled.can_split(part)) {
                check(&spilled.finer(part, 8).finish().unwrap(), spilled.range(part));
            }
        }
    }

    #[test]
    fn shapes_stay_within_their_memory() {
        for memory_bytes in [100_000, 512 << 10, 2 << 20, 5 << 20, 33 << 20, 1 << 40] {
            let SpillShape { part_bits, chunk_bytes, .. } = SpillShape::within(memory_bytes);
            let parts = 1 << part_bits;
            assert!(
                parts * STAGE_BYTES + (parts + IN_FLIGHT_MAX) * chunk_bytes
                    <= memory_bytes.max(1 << 18) as usize
            );
            assert!(chunk_bytes.is_power_of_two() && chunk_bytes <= CHUNK_BYTES_MAX);
        }
        let unbounded =
            SpillShape { part_bits: 8, chunk_bytes: CHUNK_BYTES_MAX, is_bounded: false, leave_bytes: 0 };
        assert_eq!(SpillShape::within(u64::MAX), unbounded);
    }
}
