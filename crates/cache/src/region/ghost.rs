//! Fingerprints of keys that were evicted on probation: S3-FIFO's ghost queue (Yang et al., SOSP 2023) as a table.
//!
//! ```text
//!  line: [ fingerprint:16 ×32 ]      the youngest first; one cache line
//! ```
//!
//! Each line is a queue of its own: a new fingerprint pushes the oldest out. Since keys spread evenly over lines, a key
//! is remembered for about as many evictions as the table has entries, give or take a fifth. This costs two bytes per
//! key and needs no clocks. One thread at a time uses it. One in two thousand queries wrongly finds a key, which costs
//! a place in the main log.

use std::io;

use alluvium_base::KeyHash;
use alluvium_index::prefetch_element;

use crate::memory::{Array, Element};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

const WORDS: usize = 8;
const PER_WORD: usize = 4;
const FINGERPRINT_BITS: u32 = 16;

/// Keys that a line remembers.
const WAYS: usize = WORDS * PER_WORD;

#[derive(Debug)]
#[repr(C, align(64))]
struct Line([AtomicU64; WORDS]);

// SAFETY: eight atomic integers without drop glue, for which zeros are a valid value: no fingerprint. The alignment is
// 64.
unsafe impl Element for Line {
    #[cfg(any(not(target_os = "linux"), miri, loom))]
    fn blank() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

/// A set of keys with limited memory.
#[derive(Debug)]
pub(crate) struct Ghost {
    lines: Array<Line>,
    /// Whether it has ever remembered a key. Until then lookups skip the table, since reading it would make its memory
    /// resident.
    is_used: AtomicU32,
}

impl Ghost {
    /// A set for about `entries` keys.
    ///
    /// # Errors
    /// The system's error if it refuses the memory.
    pub fn new(entries: usize) -> io::Result<Self> {
        Ok(Self { lines: Array::new(Self::lines(entries))?, is_used: AtomicU32::new(0) })
    }

    fn lines(entries: usize) -> usize {
        entries.div_ceil(WAYS).max(1)
    }

    /// Bytes of a set for `entries` keys.
    pub fn mapped_bytes(entries: usize) -> usize {
        Array::<Line>::mapped_bytes(Self::lines(entries))
    }

    /// Remembers a key.
    #[inline]
    pub fn insert(&self, hash: KeyHash) {
        self.is_used.store(1, Ordering::Relaxed);
        let (line, mut pushed) = self.place(hash);
        for word in &line.0 {
            let before = word.load(Ordering::Relaxed);
            word.store(before << FINGERPRINT_BITS | pushed, Ordering::Relaxed);
            pushed = before >> (u64::BITS - FINGERPRINT_BITS);
        }
    }

    /// Whether the key is remembered.
    #[inline]
    pub fn has(&self, hash: KeyHash) -> bool {
        self.find(hash).is_some()
    }

    /// Whether the key is remembered. Forgets it.
    #[inline]
    pub fn take(&self, hash: KeyHash) -> bool {
        let found = self.find(hash);
        if let Some((word, shift)) = found {
            word.store(word.load(Ordering::Relaxed) & !(u64::from(u16::MAX) << shift), Ordering::Relaxed);
        }
        found.is_some()
    }

    /// The word with the key's fingerprint, and the number of bits below the fingerprint.
    #[inline]
    fn find(&self, hash: KeyHash) -> Option<(&AtomicU64, u32)> {
        if self.is_used.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let (line, fingerprint) = self.place(hash);
        line.0.iter().find_map(|word| {
            let stored = word.load(Ordering::Relaxed);
            let mut shifts = (0..PER_WORD as u32).map(|at| at * FINGERPRINT_BITS);
            let shift = shifts.find(|shift| stored >> shift & u64::from(u16::MAX) == fingerprint)?;
            Some((word, shift))
        })
    }

    /// Starts loading the key's line.
    #[inline(always)]
    pub fn prefetch(&self, hash: KeyHash) {
        prefetch_element(&self.lines, self.line(hash));
    }

    /// Returns the memory to the system; all keys are forgotten.
    pub fn release(&self) {
        self.lines.retire();
    }

    #[inline(always)]
    fn line(&self, hash: KeyHash) -> usize {
        ((u128::from(hash.low()) * self.lines.len() as u128) >> 64) as usize
    }

    #[inline(always)]
    fn place(&self, hash: KeyHash) -> (&Line, u64) {
        (&self.lines[self.line(hash)], (hash.low() & u64::from(u16::MAX)).max(1))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn hash(number: u64) -> KeyHash {
        KeyHash::from_halves(0, number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    #[test]
    fn a_key_is_remembered_and_taken_once() {
        let ghost = Ghost::new(1000).unwrap();
        ghost.insert(hash(1));
        assert!(!ghost.has(hash(3)) && !ghost.take(hash(3)));
        assert!(ghost.has(hash(1)) && ghost.take(hash(1)));
        assert!(!ghost.take(hash(1)));
    }

    #[test]
    fn a_full_line_forgets_its_oldest_key() {
        let ghost = Ghost::new(WAYS).unwrap();
        for number in 0..=WAYS as u64 {
            ghost.insert(hash(number + 1));
        }
        assert!(!ghost.take(hash(1)));
        assert!((1..=WAYS as u64).all(|number| ghost.take(hash(number + 1))));
    }
}
