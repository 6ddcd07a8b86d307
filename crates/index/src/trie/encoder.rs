//! Encodes one bucket.
//!
//! ```text
//! encode(T):  nothing                                              if T is within one page (dense: |T| <= 1)
//!             code(|T|, |left|) encode(left) encode(right)         otherwise
//! ```
//!
//! The code below differs from this: a run of bits that all keys share is found at once; subtries of two or three keys
//! are written at once; and the parts of a bucket are ordered so that less has to be skipped (see [`encode_bucket`]).

use super::bits::BitWriter;
use super::golomb;
use super::huffman::{HUFFMAN_KEYS_MAX, SplitCodes};
use super::key_bits::KeyBits;
use super::pages::{PageCursor, PageMap};
use crate::processor::{Processor, Work, specialized};

/// Memory for encoding a bucket, reused between buckets.
#[derive(Debug)]
pub(super) struct Scratch<Key> {
    /// One for each level of regions within regions.
    levels: Vec<Level<Key>>,
    /// Pending parts of a part that is written in pre-order.
    waiting: Vec<Waiting>,
}

/// What a region holds until it is written.
#[derive(Debug)]
struct Level<Key> {
    /// Its right half, mirrored.
    mirrored: Vec<Key>,
    left: BitWriter,
    right: BitWriter,
}

impl<Key> Default for Scratch<Key> {
    fn default() -> Self {
        Self { levels: Vec::new(), waiting: Vec::new() }
    }
}

impl<Key> Scratch<Key> {
    /// Bytes held now.
    pub(super) fn memory_bytes(&self) -> u64 {
        let level = |level: &Level<Key>| {
            (level.mirrored.capacity() * size_of::<Key>()) as u64
                + level.left.memory_bytes()
                + level.right.memory_bytes()
        };
        self.levels.iter().map(level).sum::<u64>() + (self.levels.capacity() * size_of::<Level<Key>>()) as u64
    }
}

/// Writes a bucket, whose first key has rank `rank`.
///
/// A bucket is a *region*: a subtrie whose first and last bit a reader knows. A region is its first split that
/// separates keys, its left half, and its right half *mirrored*: the trie of its complemented keys in reverse order,
/// with its bits in reverse order too, so that it is read from the region's end. Mirroring twice restores the part.
/// From `region_keys_min` keys on the halves are regions themselves, and the length of the left one in bits is written
/// after the split; below, they are in pre-order.
///
/// So a reader gets to a part of about a quarter of `region_keys_min` keys without skipping anything, for 6 to 8 bits a
/// region that say where its halves meet. A region within one page has no bits. `bits_mean` gives the usual length of
/// a left half by its number of keys.
pub(super) fn encode_bucket<Key: KeyBits>(
    keys: &[Key],
    rank: u64,
    pages: impl PageMap,
    lengths: &impl Lengths,
    scratch: &mut Scratch<Key>,
    out: &mut BitWriter,
) {
    let regions = Regions { codes: SplitCodes::shared(), pages, lengths };
    regions.put(keys, 0, Ranks { rank, downwards: false }, scratch, out);
}

/// Determines the size and usual length of regions.
pub(super) trait Lengths {
    /// Number of keys from which on the halves of a region are regions.
    fn region_keys_min(&self) -> u64;

    /// Bits that `keys` keys take on average.
    fn bits_mean(&self, keys: u64) -> u64;
}

/// The keys of a region by rank: from `rank` upwards, or from the one before it downwards.
#[derive(Clone, Copy)]
struct Ranks {
    rank: u64,
    downwards: bool,
}

struct Regions<'lengths, Pages, L> {
    codes: &'static SplitCodes,
    pages: Pages,
    lengths: &'lengths L,
}

impl<Pages: PageMap, L: Lengths> Regions<'_, Pages, L> {
    /// Writes the region of `keys`, which share their first `depth` bits.
    fn put<Key: KeyBits>(
        &self,
        keys: &[Key],
        depth: u32,
        ranks: Ranks,
        scratch: &mut Scratch<Key>,
        out: &mut BitWriter,
    ) {
        let Ranks { rank, downwards } = ranks;
        if self.pages.walk(rank, downwards).holds(keys.len() as u64) {
            return;
        }
        let Some((left, depth)) = put_node(self.codes, keys, depth, out) else {
            return;
        };
        let (left, right) = keys.split_at(left);
        let count = keys.len() as u64;
        let end = if downwards { rank - count } else { rank + count };
        let right_ranks = Ranks { rank: end, downwards: !downwards };
        let mut level = scratch.levels.pop().unwrap_or_else(|| Level {
            mirrored: Vec::new(),
            left: BitWriter::default(),
            right: BitWriter::default(),
        });
        mirror(right, &mut level.mirrored);
        if count < self.lengths.region_keys_min() {
            self.put_part(left, depth, ranks, &mut scratch.waiting, out);
            self.put_part(&level.mirrored, depth, right_ranks, &mut scratch.waiting, &mut level.right);
        } else {
            self.put(left, depth, ranks, scratch, &mut level.left);
            self.put(&level.mirrored, depth, right_ranks, scratch, &mut level.right);
            let left_keys = left.len() as u64;
            let (code, length) =
                golomb::half_code(left_keys, self.lengths.bits_mean(left_keys), level.left.len());
            out.put(code, length);
            out.append(&mut level.left);
        }
        out.append_reversed(&mut level.right);
        scratch.levels.push(level);
    }

    fn put_part<Key: KeyBits>(
        &self,
        keys: &[Key],
        depth: u32,
        ranks: Ranks,
        waiting: &mut Vec<Waiting>,
        out: &mut BitWriter,
    ) {
        if !keys.is_empty() {
            let pages = self.pages.walk(ranks.rank, ranks.downwards);
            specialized(Subtrie { codes: self.codes, keys, depth, pages, waiting, out });
        }
    }
}

fn mirror<Key: KeyBits>(keys: &[Key], out: &mut Vec<Key>) {
    out.clear();
    out.extend(keys.iter().rev().map(|key| key.mirrored()));
}

/// Writes the shared bits after the first `depth` and the first split of at least two keys; returns the number of keys
/// on the left and the depth below. With fewer keys, writes nothing and returns `None`.
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

/// Writes the subtrie of `keys`, which share their first `depth` bits, in pre-order.
struct Subtrie<'keys, Key, Pages> {
    codes: &'static SplitCodes,
    keys: &'keys [Key],
    depth: u32,
    pages: Pages,
    /// Parts that come after the current one, the next one last. Empty before and after; as deep as keys have bits.
    waiting: &'keys mut Vec<Waiting>,
    out: &'keys mut BitWriter,
}

/// Keys `start..end` of a part, which share their first `depth` bits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    start: u32,
    end: u32,
    depth: u32,
}

impl<Key: KeyBits, Pages: PageCursor> Work for Subtrie<'_, Key, Pages> {
    type Output = ();

    #[inline(always)]
    fn run(self, _processor: impl Processor) {
        let Self { codes, keys: all, mut depth, mut pages, waiting, out } = self;
        let (mut start, mut end) = (0, all.len());
        loop {
            let keys = &all[start..end];
            let count = keys.len();
            if pages.holds(count as u64) {
                pages.advance(count as u64);
            } else {
                let common = keys[0].common_bits(keys[count - 1]);
                if count == 2 {
                    put_pair(codes, out, common - depth);
                    pages.advance(1);
                    pages.advance(1);
                } else {
                    put_chain(codes, out, count as u64, common - depth);
                    depth = common + 1;
                    if Pages::EVERY_KEY && count == 3 {
                        let clear = keys[1].bit_is_clear(common);
                        put_split(codes, out, 3, 1 + u64::from(clear));
                        let pair = keys[1].common_bits(if clear { keys[0] } else { keys[2] });
                        put_pair(codes, out, pair - depth);
                    } else {
                        let left = if count <= 16 {
                            keys.iter().map(|key| usize::from(key.bit_is_clear(common))).sum()
                        } else {
                            keys.partition_point(|key| key.bit_is_clear(common))
                        };
                        put_split(codes, out, count as u64, left as u64);
                        let middle = start + left;
                        if !Pages::EVERY_KEY || left + 1 < count {
                            waiting.push(Waiting { start: middle as u32, end: end as u32, depth });
                        }
                        if !Pages::EVERY_KEY || left > 1 {
                            end = middle;
                            continue;
                        }
                    }
                }
            }
            let Some(next) = waiting.pop() else {
                return;
            };
            (start, end, depth) = (next.start as usize, next.end as usize, next.depth);
        }
    }
}

#[inline(always)]
fn put_split(codes: &SplitCodes, out: &mut BitWriter, count: u64, left: u64) {
    let (code, length) =
        if count <= HUFFMAN_KEYS_MAX { codes.code(count, left) } else { golomb::split_code(count, left) };
    out.put(code, length);
}

/// Writes two keys that share `bits` more bits.
#[inline(always)]
fn put_pair(codes: &SplitCodes, out: &mut BitWriter, bits: u32) {
    if bits < 32 {
        // A zero for every shared bit, then a one.
        out.put(1 << bits, bits + 1);
    } else {
        put_chain(codes, out, 2, bits);
        put_split(codes, out, 2, 1);
    }
}

/// Writes that all keys have the same bit, `bits` times.
#[inline(always)]
fn put_chain(codes: &SplitCodes, out: &mut BitWriter, count: u64, bits: u32) {
    for _ in 0..bits {
        put_split(codes, out, count, 0);
    }
}
