//! Encoding one bucket.
//!
//! ```text
//! encode(T):  nothing                                              if T lies in one page (dense: |T| <= 1)
//!             code(|T|, |left|) encode(left) encode(right)         otherwise
//! ```
//!
//! What the code below changes: a run of bits that all keys share is found at once; subtries of two keys are written
//! without a call; and in a dense trie the right half of a bucket is written mirrored (see [`dense_bucket`]).

use super::bits::BitWriter;
use super::gamma;
use super::huffman::{HUFFMAN_KEYS_MAX, SplitCodes};
use super::pages::{EveryKey, PageCursor};

/// The keys of a bucket: `places[i]` is the position of key `i` within the bucket as a fraction of 2^64 and decides the
/// order; keys of equal place are ordered by `lows`.
#[derive(Clone, Copy)]
pub(super) struct BucketKeys<'keys> {
    pub(super) places: &'keys [u64],
    pub(super) lows: &'keys [u64],
    /// Whether the keys are complemented and in reverse order.
    pub(super) mirrored: bool,
}

/// Memory that encoding a dense bucket needs, kept between buckets.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    places: Vec<u64>,
    lows: Vec<u64>,
    bits: BitWriter,
}

impl Scratch {
    /// Bytes held now.
    pub(super) fn memory_bytes(&self) -> u64 {
        ((self.places.capacity() + self.lows.capacity()) * size_of::<u64>()) as u64 + self.bits.memory_bytes()
    }
}

/// Writes a bucket of a dense trie.
///
/// The first split comes first, then the left half. The right half is written as the trie of its complemented keys in
/// reverse order, backwards from the bucket's end. A reader that turns right at the first split starts from the end
/// and need not skip the left half, which halves the bits that a lookup reads, for no space.
pub(super) fn dense_bucket(keys: BucketKeys<'_>, scratch: &mut Scratch, out: &mut BitWriter) {
    let count = keys.places.len();
    let (Some(first), Some(last)) = (keys.places.first(), keys.places.last()) else {
        return;
    };
    let codes = SplitCodes::shared();
    if first == last {
        // At least 128 bits in common with each other: not worth a mirror of its own type.
        if count > 1 {
            let wide = keys.wide(0, count);
            put_chain(codes, out, count as u64, 64);
            let common = wide[0].common_bits(wide[count - 1]);
            put_chain(codes, out, count as u64, common);
            let left = wide.partition_point(|key| key.bit_is_clear(common));
            put_split(codes, out, count as u64, left as u64);
            Encoder { codes, keys, pages: EveryKey, out: &mut *out }.subtrie(&wide[..left], 0, common + 1);
            let mirror: Vec<u128> = wide[left..].iter().rev().map(|key| !key).collect();
            Encoder { codes, keys, pages: EveryKey, out: &mut scratch.bits }.subtrie(&mirror, 0, common + 1);
            out.append_reversed(&mut scratch.bits);
        }
        return;
    }
    let common = first.common_bits(*last);
    put_chain(codes, out, count as u64, common);
    let left = keys.places.partition_point(|place| place.bit_is_clear(common));
    put_split(codes, out, count as u64, left as u64);
    Encoder { codes, keys, pages: EveryKey, out: &mut *out }.subtrie(&keys.places[..left], 0, common + 1);

    scratch.places.clear();
    scratch.places.extend(keys.places[left..].iter().rev().map(|place| !place));
    scratch.lows.clear();
    scratch.lows.extend(keys.lows[left..].iter().rev().map(|low| !low));
    let mirror = BucketKeys { places: &scratch.places, lows: &scratch.lows, mirrored: true };
    Encoder { codes, keys: mirror, pages: EveryKey, out: &mut scratch.bits }.subtrie(
        mirror.places,
        0,
        common + 1,
    );
    out.append_reversed(&mut scratch.bits);
}

/// Writes a bucket of a sparse trie; `pages` stands in front of its first key.
pub(super) fn sparse_bucket(keys: BucketKeys<'_>, pages: impl PageCursor, out: &mut BitWriter) {
    Encoder { codes: SplitCodes::shared(), keys, pages, out }.subtrie(keys.places, 0, 0);
}

impl BucketKeys<'_> {
    /// The bits of keys `start..start + count`, all of one place, that follow the place: the low half of the hash, then
    /// for keys of one hash their number, so that all differ. Lookups continue with zeros and find the first.
    fn wide(&self, start: usize, count: usize) -> Vec<u128> {
        let lows = &self.lows[start..start + count];
        let mut wide = Vec::with_capacity(count);
        for group in lows.chunk_by(|a, b| a == b) {
            for index in 0..group.len() as u64 {
                let number = if self.mirrored { !(group.len() as u64 - 1 - index) } else { index };
                wide.push(u128::from(group[0]) << 64 | u128::from(number));
            }
        }
        wide
    }
}

/// Bits of a key, the highest first.
trait KeyBits: Copy {
    /// Number of leading bits that two keys share.
    fn common_bits(self, other: Self) -> u32;
    /// Whether the bit after the first `depth` is clear.
    fn bit_is_clear(self, depth: u32) -> bool;
    /// Whether equal keys can occur.
    const CAN_TIE: bool;
}

impl KeyBits for u64 {
    #[inline]
    fn common_bits(self, other: Self) -> u32 {
        (self ^ other).leading_zeros()
    }

    #[inline]
    fn bit_is_clear(self, depth: u32) -> bool {
        self >> (63 - depth) & 1 == 0
    }

    const CAN_TIE: bool = true;
}

impl KeyBits for u128 {
    #[inline]
    fn common_bits(self, other: Self) -> u32 {
        (self ^ other).leading_zeros()
    }

    #[inline]
    fn bit_is_clear(self, depth: u32) -> bool {
        self >> (127 - depth) & 1 == 0
    }

    const CAN_TIE: bool = false;
}

struct Encoder<'run, Pages> {
    codes: &'static SplitCodes,
    keys: BucketKeys<'run>,
    pages: Pages,
    out: &'run mut BitWriter,
}

impl<Pages: PageCursor> Encoder<'_, Pages> {
    /// Writes the subtrie of `keys`, which share their first `depth` bits; `start` is the number of the first one in
    /// the bucket. Recursion is as deep as keys have bits.
    fn subtrie<Key: KeyBits>(&mut self, keys: &[Key], start: usize, depth: u32) {
        let count = keys.len();
        if self.pages.holds(count as u64) {
            self.pages.advance(count as u64);
            return;
        }
        let common = keys[0].common_bits(keys[count - 1]);
        if Key::CAN_TIE && common == 64 {
            put_chain(self.codes, self.out, count as u64, 64 - depth);
            let wide = self.keys.wide(start, count);
            self.subtrie(&wide, start, 0);
            return;
        }
        if count == 2 {
            put_chain(self.codes, self.out, 2, common - depth);
            put_split(self.codes, self.out, 2, 1);
            self.pages.advance(1);
            self.pages.advance(1);
            return;
        }
        put_chain(self.codes, self.out, count as u64, common - depth);
        let left = if count <= 16 {
            keys.iter().map(|key| usize::from(key.bit_is_clear(common))).sum()
        } else {
            keys.partition_point(|key| key.bit_is_clear(common))
        };
        put_split(self.codes, self.out, count as u64, left as u64);
        self.subtrie(&keys[..left], start, common + 1);
        self.subtrie(&keys[left..], start + left, common + 1);
    }
}

#[inline]
fn put_split(codes: &SplitCodes, out: &mut BitWriter, count: u64, left: u64) {
    let (code, length) =
        if count <= HUFFMAN_KEYS_MAX { codes.code(count, left) } else { gamma::code(count, left) };
    out.put(code, length);
}

/// Writes `bits` times that all keys have the same bit.
#[inline]
fn put_chain(codes: &SplitCodes, out: &mut BitWriter, count: u64, bits: u32) {
    for _ in 0..bits {
        put_split(codes, out, count, 0);
    }
}
