//! The machine's limit in the same run: reads one line of an index, then the line of an item that it names, and nothing
//! else.

use alluvium_index::prefetch_bytes;
use alluvium_io::AlignedBuffer;

use super::options::Case;
use crate::process::thread_cpu_time;
use crate::random::mix;

const LINE_BYTES: u64 = 64;
const BATCH_LEN: usize = 32;

/// Lookups per second of CPU time, one at a time and in batches with prefetching.
#[derive(Clone, Copy, Debug)]
pub struct RawRates {
    /// One after another, each waiting for its index line and its item line.
    pub single_per_s: f64,
    /// Thirty-two at a time.
    pub batch_per_s: f64,
}

/// Measures with as much memory as the case's index and items take.
pub fn measure(case: &Case, requests: usize) -> RawRates {
    let index_lines = (case.items * 12 / LINE_BYTES).max(1);
    let item_lines = (case.items * (8 + case.key_bytes + case.value_bytes) as u64 / LINE_BYTES).max(1);
    // Written once, so that the memory is resident.
    let mut index = AlignedBuffer::zeroed((index_lines * LINE_BYTES) as usize);
    let mut items = AlignedBuffer::zeroed((item_lines * LINE_BYTES) as usize);
    for memory in [&mut index, &mut items] {
        memory.iter_mut().step_by(LINE_BYTES as usize).for_each(|byte| *byte = 0);
    }
    let (index, items) = (&index[..], &items[..]);
    let word = |memory: &[u8], line: u64| memory[(line * LINE_BYTES) as usize];
    // The index line's content, which is always zero, is part of the item's address: the second access waits for the
    // first.
    let spread = |number: u64, lines: u64| ((u128::from(mix(number)) * u128::from(lines)) >> 64) as u64;
    let started = thread_cpu_time();
    let mut sum = 0;
    for number in 0..requests as u64 {
        // Each lookup waits for the previous one, like a caller that needs the value.
        let first = u64::from(word(index, spread(number ^ sum, index_lines)));
        sum += u64::from(word(items, spread(number ^ first ^ 1 << 40, item_lines)));
    }
    let single_per_s = requests as f64 / (thread_cpu_time() - started).as_secs_f64();
    let started = thread_cpu_time();
    for batch in 0..(requests / BATCH_LEN) as u64 {
        let numbers = || (0..BATCH_LEN as u64).map(|number| batch * BATCH_LEN as u64 + number);
        for number in numbers() {
            prefetch_bytes(index, (spread(number, index_lines) * LINE_BYTES) as usize, 1);
        }
        let mut lines = [0; BATCH_LEN];
        for (line, number) in lines.iter_mut().zip(numbers()) {
            let first = u64::from(word(index, spread(number, index_lines)));
            *line = spread(number ^ first ^ 1 << 40, item_lines);
            prefetch_bytes(items, (*line * LINE_BYTES) as usize, 1);
        }
        for line in lines {
            sum += u64::from(word(items, line));
        }
    }
    let batch_per_s = (requests / BATCH_LEN * BATCH_LEN) as f64 / (thread_cpu_time() - started).as_secs_f64();
    std::hint::black_box(sum);
    RawRates { single_per_s, batch_per_s }
}
