//! Keys and values between slices and the words of a ring.
//!
//! Words are stored and loaded one by one, relaxed: see `memory::ring`. Bytes of an item that don't begin at a word
//! are put together from two.

use crate::memory::{Ring, UNIT_BYTES};
use crate::sync::Ordering;

use super::header::Header;
use super::view::Metadata;

/// Puts parts one behind another into words.
struct Packer<'a, W> {
    words: W,
    /// The word being filled, as a little-endian number, and how many of its bytes are filled.
    pending: u64,
    filled: usize,
    marker: std::marker::PhantomData<&'a ()>,
}

impl<'a, W: Iterator<Item = &'a crate::sync::AtomicU64>> Packer<'a, W> {
    fn new(words: W) -> Self {
        Self { words, pending: 0, filled: 0, marker: std::marker::PhantomData }
    }

    #[inline(always)]
    fn store(&mut self, word: u64) {
        if let Some(target) = self.words.next() {
            target.store(word.to_le(), Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn push(&mut self, bytes: &[u8]) {
        let (chunks, rest) = bytes.as_chunks::<UNIT_BYTES>();
        if self.filled == 0 {
            for &chunk in chunks {
                self.store(u64::from_le_bytes(chunk));
            }
        } else {
            let shift = 8 * self.filled as u32;
            for &chunk in chunks {
                let word = u64::from_le_bytes(chunk);
                self.store(self.pending | word << shift);
                self.pending = word >> (64 - shift);
            }
        }
        for &byte in rest {
            self.pending |= u64::from(byte) << (8 * self.filled);
            self.filled += 1;
            if self.filled == UNIT_BYTES {
                self.store(self.pending);
                (self.pending, self.filled) = (0, 0);
            }
        }
    }

    #[inline(always)]
    fn finish(mut self) {
        if self.filled > 0 {
            let pending = self.pending;
            self.store(pending);
        }
    }
}

/// Writes an item to word `unit` on. Unused words at its end stay as they are.
#[inline(always)]
pub(crate) fn write_item(
    ring: &Ring,
    unit: usize,
    header: Header,
    metadata: Metadata,
    key: &[u8],
    value: &[u8],
) {
    let mut packer = Packer::new(ring.run(unit, header.words()));
    packer.store(header.0);
    if header.has_expiry() {
        packer.store(metadata.expires_at_ms);
    }
    if header.has_flags() {
        packer.store(u64::from(metadata.flags));
    }
    packer.push(key);
    packer.push(value);
    packer.finish();
}

/// Whether the bytes from word `unit` of the ring on are `key`.
///
/// Inline are only the shortest keys: of the general comparison the compiler prepares thirty instructions' worth ahead
/// of the loop over candidates.
#[inline(always)]
pub(crate) fn is_key(ring: &Ring, unit: usize, key: &[u8]) -> bool {
    let load = |word: usize| u64::from_le(ring.word(unit + word).load(Ordering::Relaxed));
    match key.as_chunks::<UNIT_BYTES>() {
        ([one], []) => load(0) == u64::from_le_bytes(*one),
        ([one, two], []) => load(0) == u64::from_le_bytes(*one) && load(1) == u64::from_le_bytes(*two),
        _ => is_any_key(ring, unit, key),
    }
}

#[inline(never)]
fn is_any_key(ring: &Ring, unit: usize, key: &[u8]) -> bool {
    let (chunks, rest) = key.as_chunks::<UNIT_BYTES>();
    let mut words = ring.run(unit, key.len().div_ceil(UNIT_BYTES));
    let mut load = || words.next().map_or(0, |word| u64::from_le(word.load(Ordering::Relaxed)));
    let mut difference = 0;
    for &chunk in chunks {
        difference |= load() ^ u64::from_le_bytes(chunk);
    }
    if !rest.is_empty() {
        let mut last = [0; UNIT_BYTES];
        last[..rest.len()].copy_from_slice(rest);
        let mask = (1 << (8 * rest.len())) - 1;
        difference |= (load() ^ u64::from_le_bytes(last)) & mask;
    }
    difference == 0
}

/// Copies the bytes from byte `start` of the ring on to `out`.
#[inline(always)]
pub(crate) fn copy_out(ring: &Ring, start: usize, out: &mut [u8]) {
    if !start.is_multiple_of(UNIT_BYTES) || !out.len().is_multiple_of(UNIT_BYTES) {
        return copy_any(ring, start, out);
    }
    let (chunks, _) = out.as_chunks_mut::<UNIT_BYTES>();
    let words = ring.run(start / UNIT_BYTES, chunks.len());
    for (chunk, word) in chunks.iter_mut().zip(words) {
        *chunk = u64::from_le(word.load(Ordering::Relaxed)).to_le_bytes();
    }
}

/// The general case of [`copy_out`], not inline for the reason that [`is_key`] gives.
#[inline(never)]
fn copy_any(ring: &Ring, start: usize, out: &mut [u8]) {
    let shift = 8 * (start % UNIT_BYTES) as u32;
    let count = (start % UNIT_BYTES + out.len()).div_ceil(UNIT_BYTES);
    let mut words =
        ring.run(start / UNIT_BYTES, count).map(|word| u64::from_le(word.load(Ordering::Relaxed)));
    let (chunks, rest) = out.as_chunks_mut::<UNIT_BYTES>();
    if shift == 0 {
        for (chunk, word) in chunks.iter_mut().zip(&mut words) {
            *chunk = word.to_le_bytes();
        }
        if let Some(word) = words.next() {
            rest.copy_from_slice(&word.to_le_bytes()[..rest.len()]);
        }
        return;
    }
    let mut low = words.next().unwrap_or(0) >> shift;
    for chunk in chunks {
        let word = words.next().unwrap_or(0);
        *chunk = (low | word << (64 - shift)).to_le_bytes();
        low = word >> shift;
    }
    if !rest.is_empty() {
        let word = words.next().unwrap_or(0);
        rest.copy_from_slice(&(low | word << (64 - shift)).to_le_bytes()[..rest.len()]);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_of_all_lengths_come_back_also_across_the_end() {
        let ring = Ring::new(4096, 4096).unwrap();
        let bytes: Vec<u8> = (0..=255).cycle().take(600).collect();
        for unit in [0, 17, 500, 511] {
            for key_len in 0..40 {
                for value_len in [0, 1, 7, 8, 9, 31, 64, 255, 500] {
                    let (key, value) = (&bytes[1..1 + key_len], &bytes[3..3 + value_len]);
                    let header =
                        Header::new(key_len, value_len, key_len % 2 == 1, value_len % 2 == 1).unwrap();
                    let metadata = Metadata { expires_at_ms: 9, flags: 7 };
                    write_item(&ring, unit, header, metadata, key, value);
                    assert!(is_key(&ring, unit + header.fixed_words(), key));
                    let mut out = vec![0; value_len];
                    copy_out(&ring, unit * UNIT_BYTES + header.value_start(), &mut out);
                    assert_eq!(out, value, "unit {unit}, key of {key_len}, value of {value_len}");
                    if key_len > 0 {
                        let mut other = key.to_vec();
                        other[key_len - 1] ^= 0x80;
                        assert!(!is_key(&ring, unit + header.fixed_words(), &other));
                    }
                }
            }
        }
    }
}
