//! Copying between plain bytes and words that others store to meanwhile, word by word: what [`vectors`](super::vectors)
//! does faster, for processors and checkers without it.
//!
//! `word` is a ring's word by its number; numbers may exceed those of the ring where it wraps by itself.

use super::UNIT_BYTES;
use crate::sync::{AtomicU64, Ordering};

/// Copies the bytes from byte `start` on.
pub(super) fn copy_out<'a>(word: impl Fn(usize) -> &'a AtomicU64, start: usize, out: &mut [u8]) {
    each_part(start, out.len(), |unit, within, at, len| {
        let bytes = word(unit).load(Ordering::Relaxed).to_ne_bytes();
        out[at..at + len].copy_from_slice(&bytes[within..within + len]);
    });
}

/// Copies `bytes` to byte `start` on and what follows, as the only writer.
pub(super) fn copy_in<'a>(word: impl Fn(usize) -> &'a AtomicU64, start: usize, bytes: &[u8]) {
    each_part(start, bytes.len(), |unit, within, at, len| {
        let target = word(unit);
        let mut merged =
            if len == UNIT_BYTES { [0; UNIT_BYTES] } else { target.load(Ordering::Relaxed).to_ne_bytes() };
        merged[within..within + len].copy_from_slice(&bytes[at..at + len]);
        target.store(u64::from_ne_bytes(merged), Ordering::Relaxed);
    });
}

/// Whether the bytes from byte `start` on are `bytes`.
pub(super) fn is_equal<'a>(word: impl Fn(usize) -> &'a AtomicU64, start: usize, bytes: &[u8]) -> bool {
    let mut is_equal = true;
    each_part(start, bytes.len(), |unit, within, at, len| {
        let stored = word(unit).load(Ordering::Relaxed).to_ne_bytes();
        is_equal &= stored[within..within + len] == bytes[at..at + len];
    });
    is_equal
}

/// Calls `take` with each word that `len` bytes from `start` on touch: its number, the first of its bytes that count,
/// the number of that byte among all, and how many count.
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
