//! Walks one bucket down to a key.

use super::bits::{BitReader, Frame, SHOWN, select};
use super::dense::find_rank;
use super::encoder::Lengths;
use super::golomb;
use super::huffman::{HUFFMAN_KEYS_MAX, SplitCodes};
use super::pages::{NumberedPages, PageMap};
use super::sparse::find_page;

/// The bits of a key that a walk consumes: place within the bucket, low half of the hash, then `fill` forever.
#[derive(Clone, Copy)]
pub(super) struct WalkKey {
    bits: u128,
    fill: u128,
}

impl WalkKey {
    pub(super) fn new(place: u64, low: u64) -> Self {
        Self { bits: u128::from(place) << 64 | u128::from(low), fill: 0 }
    }

    #[inline(always)]
    pub(super) fn next_bit(&mut self) -> bool {
        let bit = self.bits >> 127 != 0;
        self.bits = self.bits << 1 | self.fill;
        bit
    }

    /// The bit after the next `skipped`, at most 63.
    #[inline(always)]
    pub(super) fn bit_after(self, skipped: u32) -> bool {
        ((self.bits >> 64) as u64) << (skipped & 63) >> 63 != 0
    }

    /// All bits inverted if `turned`.
    #[inline(always)]
    fn mirrored(self, turned: bool) -> Self {
        let mask = u128::from(turned).wrapping_neg();
        Self { bits: self.bits ^ mask, fill: self.fill ^ (mask & 1) }
    }
}

/// One bucket in bits `start..end` of `words`: `count` keys, at least one, from rank `first` on.
#[derive(Clone, Copy)]
pub(super) struct Bucket<'words> {
    pub(super) words: &'words [u64],
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) first: u64,
    pub(super) count: u64,
}

/// A subtrie that starts at a known position of a frame.
pub(super) struct Part<'words> {
    pub(super) reader: BitReader<'words>,
    /// Number of keys; the lowest has rank `rank`.
    pub(super) count: u64,
    pub(super) rank: u64,
    /// The wanted key's bits below the subtrie's root.
    pub(super) key: WalkKey,
}

/// The rank of `key` in `bucket`, or that of some key of the bucket if the key is absent or the bits are wrong.
#[inline(always)]
pub(super) fn rank_in(bucket: Bucket<'_>, key: WalkKey, lengths: &impl Lengths) -> u64 {
    let codes = SplitCodes::shared();
    match find_part(codes, bucket, key, lengths) {
        Ok(part) => find_rank(codes, part),
        Err(rank) => rank,
    }
}

/// The page of `key` in `bucket`, or that of some key of the bucket if the key is absent or the bits are wrong.
#[inline(always)]
pub(super) fn page_in<Pages>(bucket: Bucket<'_>, key: WalkKey, pages: Pages, lengths: &impl Lengths) -> u64
where
    Pages: PageMap,
    Pages::Cursor: NumberedPages,
{
    let codes = SplitCodes::shared();
    match find_part(codes, bucket, key, lengths) {
        Ok(part) => {
            let downwards = part.reader.frame().downwards;
            let rank = select(downwards, part.rank + part.count, part.rank);
            find_page(codes, part, pages.walk(rank, downwards))
        }
        Err(rank) => pages.walk(rank, false).page(),
    }
}

/// Descends the regions of `bucket` (see [`encode_bucket`](super::encoder::encode_bucket)) to the part of the last
/// region that holds `key`. If there is no such part, returns the rank of a key as the error: of the only key, of one
/// in the page that holds all keys, or of any if the bits end before.
///
/// The side of a key is unpredictable, so it decides no branch: both are computed.
#[inline(always)]
fn find_part<'words>(
    codes: &SplitCodes,
    bucket: Bucket<'words>,
    mut key: WalkKey,
    lengths: &impl Lengths,
) -> Result<Part<'words>, u64> {
    let Bucket { words, start, end, first: mut rank, mut count } = bucket;
    let mut frame = Frame { words, origin: start, length: end.saturating_sub(start), downwards: false };
    loop {
        if count < 2 || frame.length == 0 {
            return Err(rank);
        }
        let mut reader = BitReader::new(frame, 0);
        let left = loop {
            let Some((left, length)) = reader.refill().and_then(|bits| split(codes, count, bits)) else {
                return Err(rank);
            };
            reader.take(length);
            if left != 0 {
                break left;
            }
            key.next_bit();
        };
        let right = key.next_bit();
        let is_last = count < lengths.region_keys_min();
        let chosen = select(right, count - left, left);
        rank += select(right ^ frame.downwards, count - chosen, 0);
        count = chosen;
        if is_last {
            let position = reader.position();
            if position > frame.length {
                return Err(rank);
            }
            let second = frame.part(position, 0, true);
            let part = Frame {
                words,
                origin: select(right, second.origin, frame.origin),
                length: frame.length,
                downwards: frame.downwards ^ right,
            };
            let position = select(right, 0, position);
            return Ok(Part {
                reader: BitReader::new(part, position),
                count,
                rank,
                key: key.mirrored(right),
            });
        }
        let Some((left_bits, length)) = left_length(&mut reader, left, lengths) else {
            return Err(rank);
        };
        let position = reader.position() + u64::from(length);
        if position.checked_add(left_bits).is_none_or(|middle| middle > frame.length) {
            return Err(rank);
        }
        frame = frame.part(position, left_bits, right);
        key = key.mirrored(right);
    }
}

/// Number of bits of the left half, which has `left` keys, and the length of their code.
#[inline(always)]
fn left_length(reader: &mut BitReader<'_>, left: u64, lengths: &impl Lengths) -> Option<(u64, u32)> {
    let mean = lengths.bits_mean(left);
    match golomb::decode_half(left, mean, reader.bits()?) {
        Some((bits, length)) if length <= SHOWN => Some((bits, length)),
        // Crowded keys may have longer codes than a reader is guaranteed to show.
        _ => golomb::decode_half(left, mean, reader.refill()?),
    }
}

/// The split of `count` keys, 2 or more, in front of `bits`, and the length of its code.
#[inline(always)]
pub(super) fn split(codes: &SplitCodes, count: u64, bits: u64) -> Option<(u64, u32)> {
    if count <= HUFFMAN_KEYS_MAX {
        Some(codes.decode(count, bits))
    } else {
        golomb::decode_split(count, bits)
    }
}
