//! Walks down a subtrie in pre-order to the page of a key.

use super::bits::BitReader;
use super::decoder::{Part, split};
use super::huffman::{HUFFMAN_KEYS_MAX, SplitCodes};
use super::pages::NumberedPages;
use super::waiting::Waiting;

/// The page of the part's key, or of some key of the part; `pages` is positioned before the part's first key.
#[inline(always)]
pub(super) fn find_page(codes: &SplitCodes, part: Part<'_>, mut pages: impl NumberedPages) -> u64 {
    let Part { mut reader, mut count, mut key, .. } = part;
    while !pages.holds(count) {
        let Some((left, length)) = next_split(codes, &mut reader, count) else {
            break;
        };
        reader.take(length);
        let right = key.next_bit();
        if left == 0 {
            continue;
        }
        if !right {
            count = left;
            continue;
        }
        count -= left;
        if skip(codes, &mut reader, left, &mut pages).is_none() {
            break;
        }
    }
    pages.page()
}

#[inline(always)]
fn next_split(codes: &SplitCodes, reader: &mut BitReader<'_>, count: u64) -> Option<(u64, u32)> {
    if count <= HUFFMAN_KEYS_MAX {
        Some(codes.decode(count, reader.bits()?))
    } else {
        split(codes, count, reader.refill()?)
    }
}

/// Moves `reader` and `pages` over a subtrie of `size` keys. `None` if the bits end before.
#[inline(always)]
fn skip(
    codes: &SplitCodes,
    reader: &mut BitReader<'_>,
    mut size: u64,
    pages: &mut impl NumberedPages,
) -> Option<()> {
    let mut waiting = Waiting::new();
    loop {
        if pages.holds(size) {
            pages.advance(size);
            match waiting.pop() {
                Some(next) => size = next,
                None => return Some(()),
            }
            continue;
        }
        let (left, length) = next_split(codes, reader, size)?;
        reader.take(length);
        if left != 0 {
            waiting.push(size - left);
            size = left;
        }
    }
}
