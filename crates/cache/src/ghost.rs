//! Fingerprints of keys that were evicted on probation: S3-FIFO's ghost queue (Yang et al., SOSP 2023) as a table.
//!
//! ```text
//!  line of 16: [ fingerprint:16 | time:16 ] ...     time in ticks of the probation log; an entry fades by itself
//! ```
//!
//! A key stays for as long as the probation log takes to evict a given number of bytes, so nothing needs to be removed;
//! in a full line the oldest entry makes room. One thread at a time uses it. It answers wrongly "was here" once in some
//! four thousand questions, which costs a place in the main log.

use std::io;

use alluvium_base::KeyHash;

use crate::memory::{Array, Element};
use crate::sync::{AtomicU32, Ordering};

const WAYS: usize = 16;
/// An age is told up to this many ticks, a quarter of the 16-bit circle, so that faded entries don't come back soon.
const TICKS_MAX: u64 = 1 << 14;

#[derive(Debug)]
#[repr(C, align(64))]
struct Line([AtomicU32; WAYS]);

// SAFETY: sixteen atomic integers without drop glue, for which zeros are a value: no fingerprint. The alignment is 64.
unsafe impl Element for Line {
    #[cfg(any(not(target_os = "linux"), miri, loom))]
    fn blank() -> Self {
        Self(std::array::from_fn(|_| AtomicU32::new(0)))
    }
}

/// A set of keys with a limited memory.
#[derive(Debug)]
pub(crate) struct Ghost {
    lines: Array<Line>,
    /// Words that the probation log evicts in one tick.
    words_per_tick: u64,
}

impl Ghost {
    /// A set for about `entries` keys, each remembered while `words` words are evicted.
    ///
    /// # Errors
    /// What the system says when it refuses.
    pub fn new(entries: usize, words: u64) -> io::Result<Self> {
        Ok(Self {
            lines: Array::new(Self::lines(entries))?,
            words_per_tick: words.div_ceil(TICKS_MAX).max(1),
        })
    }

    fn lines(entries: usize) -> usize {
        entries.div_ceil(WAYS).max(1)
    }

    /// Bytes of a set for `entries` keys.
    pub fn mapped_bytes(entries: usize) -> usize {
        Array::<Line>::mapped_bytes(Self::lines(entries))
    }

    /// Remembers a key evicted when `evicted` words had been evicted in all.
    #[inline]
    pub fn insert(&self, hash: KeyHash, evicted: u64) {
        let (line, fingerprint) = self.place(hash);
        let now = self.time(evicted);
        let oldest = line
            .0
            .iter()
            .max_by_key(|entry| match entry.load(Ordering::Relaxed) {
                0 => u16::MAX,
                entry => now.wrapping_sub(entry as u16),
            })
            .expect("a line has entries");
        oldest.store(u32::from(fingerprint) << 16 | u32::from(now), Ordering::Relaxed);
    }

    /// Whether the key is remembered; it is forgotten by this question.
    #[inline]
    pub fn take(&self, hash: KeyHash, evicted: u64) -> bool {
        let (line, fingerprint) = self.place(hash);
        let now = self.time(evicted);
        for entry in &line.0 {
            let stored = entry.load(Ordering::Relaxed);
            if stored >> 16 == u32::from(fingerprint) {
                entry.store(0, Ordering::Relaxed);
                return u64::from(now.wrapping_sub(stored as u16)) <= TICKS_MAX;
            }
        }
        false
    }

    /// Gives the memory back; all keys are forgotten.
    pub fn release(&self) {
        self.lines.release();
    }

    #[inline(always)]
    fn line(&self, hash: KeyHash) -> usize {
        ((u128::from(hash.low()) * self.lines.len() as u128) >> 64) as usize
    }

    #[inline(always)]
    fn place(&self, hash: KeyHash) -> (&Line, u16) {
        (&self.lines[self.line(hash)], (hash.low() as u16).max(1))
    }

    #[inline(always)]
    fn time(&self, evicted: u64) -> u16 {
        (evicted / self.words_per_tick) as u16
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn hash(number: u64) -> KeyHash {
        KeyHash::from_halves(0, number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    #[test]
    fn a_key_is_remembered_for_its_time_and_taken_once() {
        let ghost = Ghost::new(1000, 1 << 20).unwrap();
        ghost.insert(hash(1), 5);
        ghost.insert(hash(2), 5);
        assert!(!ghost.take(hash(3), 6));
        assert!(ghost.take(hash(1), 1 << 19));
        assert!(!ghost.take(hash(1), 1 << 19));
        assert!(!ghost.take(hash(2), 2 << 20));
    }

    #[test]
    fn a_full_line_forgets_its_oldest_key() {
        let ghost = Ghost::new(16, 1 << 20).unwrap();
        for number in 0..17 {
            ghost.insert(hash(number + 1), number * 1000);
        }
        assert!(!ghost.take(hash(1), 17_000));
        assert!((1..17).all(|number| ghost.take(hash(number + 1), 17_000)));
    }
}
