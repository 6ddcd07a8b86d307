//! Encoding one bucket.
//!
//! ```text
//! encode(T):  nothing                                              if T lies in one page (dense: |T| <= 1)
//!             code(|T|, |left|) encode(left) encode(right)         otherwise
//! ```
//!
//! What the code below changes: a run of bits that all keys share is found at once; subtries of two or three keys are
//! written without a call; and the parts of a bucket lie so that less has to be skipped (see [`encode_bucket`]).

use super::bits::BitWriter;
use super::golomb;
use super::huffman::{HUFFMAN_KEYS_MAX, SplitCodes};
use super::key_bits::KeyBits;
use super::pages::{PageCursor, PageMap};

/// Keys from which on a bucket says where its middle lies.
pub(super) const QUARTERS_KEYS_MIN: u64 = 128;

/// Memory that encoding a bucket needs, kept between buckets.
#[derive(Debug)]
pub(super) struct Scratch<Key> {
    half: Vec<Key>,
    quarter: Vec<Key>,
    left: HalfBits,
    right: HalfBits,
}

/// The two quarters of a half: the one that is read from the bucket's end inwards, with the half's own split, and the
/// one that is read from the bucket's middle outwards.
#[derive(Debug, Default)]
struct HalfBits {
    outer: BitWriter,
    inner: BitWriter,
}

impl<Key> Default for Scratch<Key> {
    fn default() -> Self {
        Self { half: Vec::new(), quarter: Vec::new(), left: HalfBits::default(), right: HalfBits::default() }
    }
}

impl<Key> Scratch<Key> {
    /// Bytes held now.
    pub(super) fn memory_bytes(&self) -> u64 {
        let writers = [&self.left.outer, &self.left.inner, &self.right.outer, &self.right.inner];
        ((self.half.capacity() + self.quarter.capacity()) * size_of::<Key>()) as u64
            + writers.into_iter().map(BitWriter::memory_bytes).sum::<u64>()
    }
}

/// Writes a bucket, whose first key has rank `rank`.
///
/// A part that is written *mirrored* is the trie of its complemented keys in reverse order, with its bits in reverse
/// order too: it is read from its end. Mirroring twice gives the part as it was.
///
/// - Below 128 keys: the first split, the left half, the right half mirrored.
/// - From 128 keys on: the first split, the bits up to the middle; the left half's first split and left quarter, its
///   right quarter mirrored; here is the middle; then the right half as the mirror image of the left half: its left
///   quarter, its right quarter mirrored, its first split at the very end.
///
/// So every half or quarter starts at a known place, and a reader skips one quarter of what it would in pre-order, for
/// no space (halves) or 0.03 bit/key (quarters). A bucket or half that lies in one page has no bits, by which a reader
/// knows it. `bits_mean` gives the usual length of the left half by its number of keys.
pub(super) fn encode_bucket<Key: KeyBits>(
    keys: &[Key],
    rank: u64,
    pages: impl PageMap,
    bits_mean: impl Fn(u64) -> u64,
    scratch: &mut Scratch<Key>,
    out: &mut BitWriter,
) {
    let codes = SplitCodes::shared();
    if pages.after(rank).holds(keys.len() as u64) {
        return;
    }
    let Some((left, depth)) = put_node(codes, keys, 0, out) else {
        return;
    };
    let (left, right) = keys.split_at(left);
    let (middle, end) = (rank + left.len() as u64, rank + keys.len() as u64);
    mirror(right, &mut scratch.half);
    if (keys.len() as u64) < QUARTERS_KEYS_MIN {
        Encoder { codes, pages: pages.after(rank), out }.subtrie(left, depth);
        let out_mirrored = &mut scratch.right.outer;
        Encoder { codes, pages: pages.before(end), out: out_mirrored }.subtrie(&scratch.half, depth);
        out.append_reversed(&mut scratch.right.outer);
        return;
    }
    put_half(
        codes,
        left,
        depth,
        (pages.after(rank), pages.before(middle)),
        &mut scratch.quarter,
        &mut scratch.left,
    );
    let right = (pages.before(end), pages.after(middle));
    put_half(codes, &scratch.half, depth, right, &mut scratch.quarter, &mut scratch.right);
    let bits = scratch.left.outer.len() + scratch.left.inner.len();
    let (code, length) = golomb::half_code(left.len() as u64, bits_mean(left.len() as u64), bits);
    out.put(code, length);
    out.append(&mut scratch.left.outer);
    out.append_reversed(&mut scratch.left.inner);
    out.append(&mut scratch.right.inner);
    out.append_reversed(&mut scratch.right.outer);
}

/// Writes a half: its first split and left part to the outer bits, its right part, mirrored, to the inner ones. `pages`
/// are the walks from the half's two ends.
fn put_half<Key: KeyBits>(
    codes: &'static SplitCodes,
    keys: &[Key],
    depth: u32,
    pages: (impl PageCursor, impl PageCursor),
    scratch: &mut Vec<Key>,
    bits: &mut HalfBits,
) {
    if pages.0.holds(keys.len() as u64) {
        return;
    }
    let Some((left, depth)) = put_node(codes, keys, depth, &mut bits.outer) else {
        return;
    };
    Encoder { codes, pages: pages.0, out: &mut bits.outer }.subtrie(&keys[..left], depth);
    mirror(&keys[left..], scratch);
    Encoder { codes, pages: pages.1, out: &mut bits.inner }.subtrie(scratch, depth);
}

fn mirror<Key: KeyBits>(keys: &[Key], out: &mut Vec<Key>) {
    out.clear();
    out.extend(keys.iter().rev().map(|key| key.mirrored()));
}

/// Writes the shared bits after the first `depth` and the first split of at least two keys; gives the keys on the left
/// and the depth below. `None` without a trace when there are fewer keys.
fn put_node<Key: KeyBits>(
    codes: &SplitCodes,
    keys: &[Key],
    depth: u32,
    out: &mut BitWriter,
) -> Option<(usize, u32)> {
    let [first, .., last] = keys else {
        return None;
    };
    let common = first.common_bits(*last);
    put_chain(codes, out, keys.len() as u64, common - depth);
    let left = keys.partition_point(|key| key.bit_is_clear(common));
    put_split(codes, out, keys.len() as u64, left as u64);
    Some((left, common + 1))
}

struct Encoder<'out, Pages> {
    codes: &'static SplitCodes,
    pages: Pages,
    out: &'out mut BitWriter,
}

impl<Pages: PageCursor> Encoder<'_, Pages> {
    /// Writes the subtrie of `keys`, which share their first `depth` bits. Recursion is as deep as keys have bits.
    fn subtrie<Key: KeyBits>(&mut self, keys: &[Key], depth: u32) {
        let count = keys.len();
        if self.pages.holds(count as u64) {
            self.pages.advance(count as u64);
            return;
        }
        let common = keys[0].common_bits(keys[count - 1]);
        if count == 2 {
            put_pair(self.codes, self.out, common - depth);
            self.pages.advance(1);
            self.pages.advance(1);
            return;
        }
        put_chain(self.codes, self.out, count as u64, common - depth);
        if Pages::EVERY_KEY && count == 3 {
            let left = 1 + usize::from(keys[1].bit_is_clear(common));
            put_split(self.codes, self.out, 3, left as u64);
            let pair = if left == 1 { keys[1].common_bits(keys[2]) } else { keys[0].common_bits(keys[1]) };
            put_pair(self.codes, self.out, pair - common - 1);
            return;
        }
        let left = if count <= 16 {
            keys.iter().map(|key| usize::from(key.bit_is_clear(common))).sum()
        } else {
            keys.partition_point(|key| key.bit_is_clear(common))
        };
        put_split(self.codes, self.out, count as u64, left as u64);
        self.subtrie(&keys[..left], common + 1);
        self.subtrie(&keys[left..], common + 1);
    }
}

#[inline]
fn put_split(codes: &SplitCodes, out: &mut BitWriter, count: u64, left: u64) {
    let (code, length) =
        if count <= HUFFMAN_KEYS_MAX { codes.code(count, left) } else { golomb::split_code(count, left) };
    out.put(code, length);
}

/// Writes two keys that share `bits` more bits.
#[inline]
fn put_pair(codes: &SplitCodes, out: &mut BitWriter, bits: u32) {
    if bits < 32 {
        // A zero for every shared bit, then a one.
        out.put(1 << bits, bits + 1);
    } else {
        put_chain(codes, out, 2, bits);
        put_split(codes, out, 2, 1);
    }
}

/// Writes `bits` times that all keys have the same bit.
#[inline]
fn put_chain(codes: &SplitCodes, out: &mut BitWriter, count: u64, bits: u32) {
    for _ in 0..bits {
        put_split(codes, out, count, 0);
    }
}
