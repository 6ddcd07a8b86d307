//! Walks down a subtrie in pre-order to the rank of a key.

use super::bits::{BitReader, select};
use super::decoder::{Part, WalkKey, split};
use super::huffman::{HUFFMAN_KEYS_MAX, SplitCodes};
use super::waiting::Waiting;

/// The rank of the part's key, or of some key of the part.
#[inline(always)]
pub(super) fn find_rank(codes: &SplitCodes, part: Part<'_>) -> u64 {
    let Part { mut reader, mut count, mut rank, mut key } = part;
    let downwards = reader.frame().downwards;
    if count >= HUFFMAN_KEYS_MAX && walk_far(codes, &mut reader, &mut count, &mut rank, &mut key).is_none() {
        return rank;
    }
    while count > 1 {
        let Some(bits) = reader.bits() else {
            break;
        };
        if count == 2 && bits << 24 != 0 {
            // A zero for every bit that the two keys share, then a one.
            return rank + u64::from(key.bit_after(bits.trailing_zeros()) ^ downwards);
        }
        let (left, length) = codes.decode(count, bits);
        reader.take_short(length);
        let right = key.next_bit();
        if left == 0 {
            continue;
        }
        let chosen = select(right, count - left, left);
        rank += select(right ^ downwards, count - chosen, 0);
        count = chosen;
        let skipped = select(right, left, 0);
        if skipped > 1 && count > 1 && skip(codes, &mut reader, skipped).is_none() {
            break;
        }
    }
    rank
}

/// Descends to a subtrie of less than 64 keys. `None` if the bits end before.
#[cold]
#[inline(never)]
fn walk_far(
    codes: &SplitCodes,
    reader: &mut BitReader<'_>,
    count: &mut u64,
    rank: &mut u64,
    key: &mut WalkKey,
) -> Option<()> {
    let downwards = reader.frame().downwards;
    while *count >= HUFFMAN_KEYS_MAX {
        let (left, length) = split(codes, *count, reader.refill()?)?;
        reader.take(length);
        let right = key.next_bit();
        if left == 0 {
            continue;
        }
        let chosen = if right { *count - left } else { left };
        if right ^ downwards {
            *rank += *count - chosen;
        }
        *count = chosen;
        if right {
            let mut waiting = Waiting::new();
            waiting.push(left);
            skip_far(codes, reader, 0, waiting)?;
        }
    }
    Some(())
}

/// Moves `reader` over a subtrie of `count` keys, below 64. `None` if the bits end before.
///
/// Decodes several codes in one step, by table. The remaining subtries are queued in one register: the size of each
/// in one byte, the next one lowest.
#[inline(always)]
fn skip(codes: &SplitCodes, reader: &mut BitReader<'_>, count: u64) -> Option<()> {
    /// Below this the register has room for the three subtries that a step may make of one.
    const NEAR_MAX: u64 = 1 << 48;

    let mut near = count;
    loop {
        let mut bits = reader.bits()?;
        // Four steps of at most 8 bits, which the reader always shows.
        for _ in 0..4 {
            let entry = codes.skip(near, bits);
            if entry == 0 || near >= NEAR_MAX {
                return skip_far(codes, reader, near, Waiting::new());
            }
            let length = entry & 15;
            bits >>= length;
            reader.take_short(length);
            near = near >> 8 << (entry >> 1 & 24) | u64::from(entry >> 8);
            if near == 0 {
                return Some(());
            }
        }
    }
}

/// [`skip`] for cases that a step can't handle: sizes in `near`, then those in `waiting`.
#[cold]
#[inline(never)]
fn skip_far(
    codes: &SplitCodes,
    reader: &mut BitReader<'_>,
    mut near: u64,
    mut waiting: Waiting,
) -> Option<()> {
    loop {
        let mut far = near.swap_bytes();
        while far != 0 {
            waiting.push(far & 0xff);
            far >>= 8;
        }
        let Some(size) = waiting.pop() else {
            return Some(());
        };
        near = 0;
        if size < 2 {
            continue;
        }
        let (left, length) = split(codes, size, reader.refill()?)?;
        reader.take(length);
        waiting.push(size - left);
        waiting.push(left);
    }
}
