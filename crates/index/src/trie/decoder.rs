//! Walking one bucket down to a key.

use super::bits::{Backward, BitSource, Forward};
use super::encoder::QUARTERS_KEYS_MIN;
use super::golomb;
use super::huffman::{HUFFMAN_KEYS_MAX, SplitCodes};
use super::pages::{PageCursor, PageMap};

/// The bits of a key that a walk consumes: place within the bucket, low half of the hash, then `fill` for ever.
#[derive(Clone, Copy)]
pub(super) struct WalkKey {
    bits: u128,
    fill: u128,
}

impl WalkKey {
    pub(super) fn new(place: u64, low: u64) -> Self {
        Self { bits: u128::from(place) << 64 | u128::from(low), fill: 0 }
    }

    #[inline]
    fn next_bit(&mut self) -> bool {
        let bit = self.bits >> 127 != 0;
        self.bits = self.bits << 1 | self.fill;
        bit
    }

    /// The bit after the next `skipped`, at most 64.
    #[inline]
    fn bit_after(self, skipped: u32) -> bool {
        (self.bits << skipped) >> 127 != 0
    }

    fn mirrored(self) -> Self {
        Self { bits: !self.bits, fill: self.fill ^ 1 }
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

/// The page of `key` in `bucket`, or that of some key of the bucket when the key is absent or the bits are wrong. See
/// [`encode_bucket`](super::encoder::encode_bucket) for where the parts lie; `bits_mean` is as there.
#[inline]
pub(super) fn find_page(
    bucket: Bucket<'_>,
    mut key: WalkKey,
    pages: impl PageMap,
    bits_mean: impl Fn(u64) -> u64,
) -> u64 {
    let codes = SplitCodes::shared();
    let Bucket { words, start, end, first, count } = bucket;
    let (forward, backward) = (Forward { words, start, end }, Backward { words, start, end });
    if count < QUARTERS_KEYS_MIN {
        return find_in_half(
            codes,
            forward,
            backward,
            count,
            key,
            || pages.after(first),
            || pages.before(first + count),
        );
    }
    let Some((left, right, mut position)) = first_split(codes, forward, count, &mut key) else {
        return pages.after(first).page();
    };
    let middle =
        golomb::decode_half(left, bits_mean(left), forward.peek(position)).and_then(|(bits, length)| {
            position += u64::from(length);
            (start + position).checked_add(bits).filter(|middle| *middle <= end)
        });
    let Some(middle) = middle else {
        return pages.after(first).page();
    };
    let middle_rank = first + left;
    if right {
        let (outer, inner) = (Backward { words, start: middle, end }, Forward { words, start: middle, end });
        let (outer_pages, inner_pages) = (|| pages.before(first + count), || pages.after(middle_rank));
        find_in_half(codes, outer, inner, count - left, key.mirrored(), outer_pages, inner_pages)
    } else {
        let (start, end) = (start + position, middle);
        let (outer, inner) = (Forward { words, start, end }, Backward { words, start, end });
        find_in_half(codes, outer, inner, left, key, || pages.after(first), || pages.before(middle_rank))
    }
}

/// The page of `key` among `count` keys, of which `outer` has the first split and then the left part, and `inner` has
/// the right part mirrored.
#[inline]
fn find_in_half<Outer: PageCursor, Inner: PageCursor>(
    codes: &SplitCodes,
    outer: impl BitSource,
    inner: impl BitSource,
    count: u64,
    mut key: WalkKey,
    outer_pages: impl FnOnce() -> Outer,
    inner_pages: impl FnOnce() -> Inner,
) -> u64 {
    match first_split(codes, outer, count, &mut key) {
        None => outer_pages().page(),
        Some((left, false, position)) => Part { codes, bits: outer }.find(position, left, key, outer_pages()),
        Some((left, true, _)) => {
            Part { codes, bits: inner }.find(0, count - left, key.mirrored(), inner_pages())
        }
    }
}

/// The first split of `count` keys that tells keys apart: keys on the left, whether `key` is on the right, and the
/// position after. `None` for one key, for keys of one page,
/// which have no bits, and when the bits end before.
#[inline]
fn first_split(
    codes: &SplitCodes,
    bits: impl BitSource,
    count: u64,
    key: &mut WalkKey,
) -> Option<(u64, bool, u64)> {
    let mut position = 0;
    while count > 1 && position < bits.len() {
        let (left, length) = split(codes, count, bits.peek(position))?;
        position += u64::from(length);
        let right = key.next_bit();
        if left != 0 {
            return Some((left, right, position));
        }
    }
    None
}

/// Part of a bucket in pre-order.
struct Part<'codes, Bits> {
    codes: &'codes SplitCodes,
    bits: Bits,
}

impl<Bits: BitSource> Part<'_, Bits> {
    /// The page of `key` among the `count` keys of the subtrie at `position`; `pages` stands in front of the first.
    fn find<Pages: PageCursor>(
        &self,
        mut position: u64,
        mut count: u64,
        mut key: WalkKey,
        mut pages: Pages,
    ) -> u64 {
        while !pages.holds(count) && position <= self.bits.len() {
            let bits = self.bits.peek(position);
            if Pages::EVERY_KEY && count == 2 && bits != 0 {
                // A zero for every bit that the two keys share, then a one.
                pages.advance(u64::from(key.bit_after(bits.trailing_zeros())));
                break;
            }
            let Some((left, length)) = split(self.codes, count, bits) else {
                break;
            };
            position += u64::from(length);
            let right = key.next_bit();
            if left == 0 {
                continue;
            }
            if !right {
                count = left;
                continue;
            }
            count -= left;
            let after = if Pages::EVERY_KEY {
                pages.advance(left);
                if left > 1 && count > 1 { self.skip(position, left) } else { Some(position) }
            } else {
                self.skip_in_pages(position, left, &mut pages)
            };
            let Some(after) = after else {
                break;
            };
            position = after;
        }
        pages.page()
    }

    /// The position after the subtrie of `count` keys at `position`, with `pages` moved over its keys; `None` when the
    /// bits end before.
    fn skip_in_pages(&self, mut position: u64, count: u64, pages: &mut impl PageCursor) -> Option<u64> {
        let mut waiting = Waiting::new();
        let mut size = count;
        loop {
            if pages.holds(size) {
                pages.advance(size);
                match waiting.pop() {
                    Some(next) => size = next,
                    None => return Some(position),
                }
                continue;
            }
            let (left, length) = split(self.codes, size, self.bits.peek(position))?;
            position += u64::from(length);
            if position > self.bits.len() {
                return None;
            }
            if left != 0 {
                waiting.push(size - left);
                size = left;
            }
        }
    }

    /// [`skip_in_pages`](Self::skip_in_pages) for a dense trie.
    #[inline]
    fn skip(&self, position: u64, count: u64) -> Option<u64> {
        if count < HUFFMAN_KEYS_MAX {
            let (position, near) = self.skip_near(position, count);
            if near == 0 {
                return (position <= self.bits.len()).then_some(position);
            }
            return self.skip_far(position, near, Waiting::new());
        }
        let mut waiting = Waiting::new();
        waiting.push(count);
        self.skip_far(position, 0, waiting)
    }

    /// Skips subtries below 64 keys, several codes a step, whose sizes are the bytes of `near`, the next one lowest.
    /// Ends with none left, or in front of a code that a step can't take, or with too many for one register.
    #[inline]
    fn skip_near(&self, mut position: u64, mut near: u64) -> (u64, u64) {
        /// Steps of at most 8 bits for which the 64 bits of one reading are enough.
        const STEPS: u32 = 8;
        /// Below this the register has room for the three subtries that a step may leave of one.
        const NEAR_MAX: u64 = 1 << 48;

        loop {
            let mut bits = self.bits.peek(position);
            let mut read = 0;
            for _ in 0..STEPS {
                let entry = self.codes.skip(near, bits);
                if entry == 0 || near >= NEAR_MAX {
                    return (position + u64::from(read), near);
                }
                let length = entry & 15;
                bits >>= length;
                read += length;
                near = near >> 8 << (entry >> 1 & 24) | u64::from(entry >> 8);
            }
            position += u64::from(read);
            if position > self.bits.len() {
                return (position, near);
            }
        }
    }

    /// [`skip`](Self::skip) for what [`skip_near`](Self::skip_near) can't: sizes in `near`, then those in `waiting`.
    #[inline(never)]
    fn skip_far(&self, mut position: u64, mut near: u64, mut waiting: Waiting) -> Option<u64> {
        loop {
            let mut far = near.swap_bytes();
            while far != 0 {
                waiting.push(far & 0xff);
                far >>= 8;
            }
            if position > self.bits.len() {
                return None;
            }
            let Some(size) = waiting.pop() else {
                return Some(position);
            };
            near = 0;
            if size < 2 {
                continue;
            }
            let (left, length) = split(self.codes, size, self.bits.peek(position))?;
            position += u64::from(length);
            waiting.push(size - left);
            if left < HUFFMAN_KEYS_MAX {
                (position, near) = self.skip_near(position, left);
            } else {
                waiting.push(left);
            }
        }
    }
}

/// The split of `count` keys, 2 or more, in front of `bits`, and the length of its code.
#[inline]
fn split(codes: &SplitCodes, count: u64, bits: u64) -> Option<(u64, u32)> {
    if count <= HUFFMAN_KEYS_MAX {
        Some(codes.decode(count, bits))
    } else {
        golomb::decode_split(count, bits)
    }
}

/// Sizes of subtries that wait to be skipped, the next one last. Bounded by the bits of the bucket, one a size.
struct Waiting {
    inline: [u32; INLINE],
    count: usize,
    overflow: Vec<u32>,
}

/// More than a uniform bucket needs.
const INLINE: usize = 24;

impl Waiting {
    #[inline]
    fn new() -> Self {
        Self { inline: [0; INLINE], count: 0, overflow: Vec::new() }
    }

    /// Adds a subtrie; none for size 0.
    #[inline]
    fn push(&mut self, size: u64) {
        if size == 0 {
            return;
        }
        match self.inline.get_mut(self.count) {
            Some(place) => {
                *place = size as u32;
                self.count += 1;
            }
            None => self.overflow.push(size as u32),
        }
    }

    #[inline]
    fn pop(&mut self) -> Option<u64> {
        if let Some(size) = self.overflow.pop() {
            return Some(u64::from(size));
        }
        self.count = self.count.checked_sub(1)?;
        self.inline.get(self.count).map(|size| u64::from(*size))
    }
}
