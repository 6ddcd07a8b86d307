//! What the figures of flushes share: random writes of values to memory, plain, with a checksum, or flushed.
//!
//! The checksum is that of our items, XXH3, where the thesis has CRC-32. Its processor has only CLFLUSH, which takes
//! lines out of the cache and one after another; newer ones have CLWB, which the caches use. Rates are per second of
//! processor time.

use alluvium_base::checksum::checksum32;
use alluvium_bench::BenchError;
use alluvium_bench::process::thread_cpu_time;
use alluvium_bench::random::Random;
use alluvium_cache::FlushedMemory;

use super::Scale;

/// What is done with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Plain,
    Checksum,
    /// Flushes that leave the line in the processor's cache and overlap, where the processor has them: CLWB.
    Flush,
    /// The flushes of the thesis's processor: CLFLUSH, one after another.
    OrderedFlush,
}

/// Bytes that are written at a point, and number of turns, the fastest of which counts.
const BYTES: usize = 64 << 20;
const TURNS: usize = 3;
/// Bytes of memory by simulated key.
const MEMORY_PER_KEY: u64 = 108;

/// Memory that is written to.
pub struct Writes {
    memory: FlushedMemory,
    bytes: usize,
    written: usize,
    seed: u64,
}

impl Writes {
    /// Bytes of the largest working set.
    pub fn bytes_max(scale: &Scale) -> u64 {
        scale.simulated_keys_max * MEMORY_PER_KEY
    }

    /// A working set of `bytes`, all of which was written once.
    pub fn new(scale: &Scale, bytes: usize) -> Result<Self, BenchError> {
        let mut memory = FlushedMemory::new(bytes)?;
        const PAGE_BYTES: usize = 4 << 10;
        (0..bytes / PAGE_BYTES).for_each(|page| memory.write(page * PAGE_BYTES, &[1; PAGE_BYTES]));
        let written = BYTES.min(Self::bytes_max(scale) as usize);
        Ok(Self { memory, bytes, written, seed: scale.seed })
    }

    /// Values of `value_bytes` written a second.
    pub fn per_s(&mut self, way: Way, value_bytes: usize) -> f64 {
        let value = vec![7; value_bytes];
        let places = (self.bytes / value_bytes) as u64;
        let count = (self.written / value_bytes).max(1);
        let mut best = 0.0_f64;
        for turn in 0..TURNS {
            let mut random = Random::new(self.seed, turn as u64);
            let mut sum = 0;
            let started = thread_cpu_time();
            for _ in 0..count {
                let at = random.below(places) as usize * value_bytes;
                if way == Way::Checksum {
                    sum ^= checksum32(&value, at as u64);
                }
                self.memory.write(at, &value);
                match way {
                    Way::Plain | Way::Checksum => {}
                    Way::Flush => self.memory.flush(at, value_bytes),
                    Way::OrderedFlush => self.memory.flush_plainly(at, value_bytes),
                }
            }
            std::hint::black_box(sum);
            best = best.max(count as f64 / (thread_cpu_time() - started).as_secs_f64().max(1e-9));
        }
        best
    }
}
