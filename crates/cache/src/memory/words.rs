//! Copies between plain bytes and words to which others may store at the same time, word by word: what
//! [`vectors`](super::vectors) does faster, for processors and checkers that cannot use it.
//!
//! `word` returns a ring's word by number; numbers may exceed those of the ring if it wraps by itself.

use super::UNIT_BYTES;
use crate::sync::{AtomicU64, Ordering};

/// Copies bytes out, starting at byte `start`.
pub(super) fn copy_out<'a>(word: impl Fn(usize) -> &'a AtomicU64, start: usize, out: &mut [u8]) {
    each_part(start, out.len(), |unit, within, at, len| {
        let bytes = word(unit).load(Ordering::Relaxed).to_ne_bytes();
        out[at..at + len].copy_from_slice(&bytes[within..within + len]);
    });
}

/// Copies `bytes` to the words, starting at byte `start`, as the only writer.
pub(super) fn copy_in<'a>(word: impl Fn(usize) -> &'a AtomicU64, start: usize, bytes: &[u8]) {
    each_part(start, bytes.len(), |unit, within, at, len| {
        let target = word(unit);
        let mut merged =
            if len == UNIT_BYTES { [0; UNIT_BYTES] } else { target.load(Ordering::Relaxed).to_ne_bytes() };
        merged[within..within + len].copy_from_slice(&bytes[at..at + len]);
        target.store(u64::from_ne_bytes(merged), Ordering::Relaxed);
    });
}

/// Whether the bytes starting at byte `start` equal `bytes`.
pub(super) fn is_equal<'a>(word: impl Fn(usize) -> &'a AtomicU64, start: usize, bytes: &[u8]) -> bool {
    let mut is_equal = true;
    each_part(start, bytes.len(), |unit, within, at, len| {
        let stored = word(unit).load(Ordering::Relaxed).to_ne_bytes();
        is_equal &= stored[within..within + len] == bytes[at..at + len];
    });
    is_equal
}

/// Calls `take` for each word that `len` bytes from `start` touch: with its number, the first of its bytes in the
/// range, that byte's number within the range, and how many bytes of the word are in the range.
#[inline(always)]
fn each_part(start: usize, len: usize, mut take: impl FnMut(usize, usize, usize, usize)) {
    let mut at = 0;
    while at < len {
        let within = (start + at) % UNIT_BYTES;
        let part = (UNIT_BYTES - within).min(len - at);
        take((start + at) / UNIT_BYTES, within, at, part);
        at += part;
    }
}
