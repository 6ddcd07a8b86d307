//! Bits of values: what the commands about them share. Bit 0 is the highest of the first byte.

use std::ops::Range;

use alluvium_protocol::integer;

use super::{Context, Failure};

/// The number of a bit that the argument at `at` gives: of `#n` the first bit of the n-th of fields that are
/// `field_bits` wide, if these are not 0.
pub(super) fn offset(context: &Context<'_>, at: usize, field_bits: u32) -> Result<u64, Failure> {
    let text = &context.arguments[at];
    let (digits, factor) = match text {
        [b'#', digits @ ..] if field_bits > 0 => (digits, i64::from(field_bits)),
        _ => (text, 1),
    };
    let bytes_max = context.shared.options.limits.bulk_bytes_max as u64;
    integer::parse(digits)
        .and_then(|number| number.checked_mul(factor))
        .and_then(|offset| u64::try_from(offset).ok())
        .filter(|offset| offset / 8 < bytes_max)
        .ok_or(Failure::Fixed("ERR bit offset is not an integer or out of range"))
}

pub(super) fn bit(value: &[u8], offset: u64) -> bool {
    let byte = usize::try_from(offset / 8).ok().and_then(|byte| value.get(byte));
    byte.is_some_and(|byte| byte >> (7 - offset % 8) & 1 == 1)
}

/// Sets a bit that the value has.
pub(super) fn set_bit(value: &mut [u8], offset: u64, is_set: bool) {
    let (byte, mask) = (&mut value[(offset / 8) as usize], 0x80 >> (offset % 8));
    *byte = if is_set { *byte | mask } else { *byte & !mask };
}

/// The value with zeros behind, so that it has the bit.
pub(super) fn extended(value: &[u8], offset: u64) -> Vec<u8> {
    let bytes = value.len().max((offset / 8) as usize + 1);
    let mut extended = Vec::with_capacity(bytes);
    extended.extend_from_slice(value);
    extended.resize(bytes, 0);
    extended
}

/// Whether the argument at `at`, `BYTE` if absent, is `BIT`.
pub(super) fn counts_bits(context: &Context<'_>, at: usize) -> Result<bool, Failure> {
    if context.is_word(at, "bit") {
        return Ok(true);
    }
    if context.arguments.get(at).is_none() || context.is_word(at, "byte") {
        Ok(false)
    } else {
        Err(Failure::SYNTAX)
    }
}

/// The bits of a value of `bytes` bytes from `start` to `end`, both included, in bytes or in bits, and from the end of
/// the value if negative. Empty if the end comes before the start.
pub(super) fn part(start: i64, end: i64, is_bits: bool, bytes: usize) -> Range<u64> {
    let unit = if is_bits { 1 } else { 8 };
    let total = bytes as i64 * (8 / unit);
    let from_front =
        |position: i64| if position < 0 { position.saturating_add(total).max(0) } else { position };
    let (start, end) = (from_front(start), from_front(end).min(total - 1));
    if start > end {
        return 0..0;
    }
    (start * unit) as u64..((end + 1) * unit) as u64
}

/// Number of bits that are set in a part that the value has.
pub(super) fn count(value: &[u8], part: Range<u64>) -> u64 {
    let Some((first, middle, last)) = split(value, part) else { return 0 };
    let (words, rest) = middle.as_chunks::<8>();
    let words: u32 = words.iter().map(|word| u64::from_ne_bytes(*word).count_ones()).sum();
    let rest: u32 = rest.iter().chain(&[first, last]).map(|byte| byte.count_ones()).sum();
    u64::from(words) + u64::from(rest)
}

/// A part as its whole bytes and the bits that it has of the bytes before and after them.
fn split(value: &[u8], part: Range<u64>) -> Option<(u8, &[u8], u8)> {
    let (start, end) = ((part.start / 8) as usize, (part.end / 8) as usize);
    let first_mask = 0xff_u8 >> (part.start % 8);
    let last_mask = !(0xff_u8 >> (part.end % 8));
    if part.is_empty() {
        None
    } else if start == end {
        Some((value[start] & first_mask & last_mask, &[], 0))
    } else {
        let last = if last_mask == 0 { 0 } else { value[end] & last_mask };
        Some((value[start] & first_mask, &value[start + 1..end], last))
    }
}

/// The first bit of a part that the value has that is set, or that is not.
pub(super) fn position(value: &[u8], part: Range<u64>, is_set: bool) -> Option<u64> {
    let other = if is_set { 0 } else { 0xff };
    let mut at = part.start;
    while at < part.end {
        if at.is_multiple_of(8) {
            // Whole bytes without such a bit are passed over.
            let whole = &value[(at / 8) as usize..(part.end / 8) as usize];
            at += 8 * whole.iter().take_while(|byte| **byte == other).count() as u64;
        }
        let byte_end = (at / 8 * 8 + 8).min(part.end);
        if let Some(found) = (at..byte_end).find(|at| bit(value, *at) == is_set) {
            return Some(found);
        }
        at = byte_end;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_are_counted_and_searched_bit_by_bit(
            value in proptest::collection::vec(prop_oneof![Just(0u8), Just(0xff), any::<u8>()], 0..40),
            start in -50i64..350,
            end in -350i64..350,
            is_bits: bool,
            is_set: bool,
        ) {
            let part = part(start, end, is_bits, value.len());
            prop_assert!(part.end <= 8 * value.len() as u64);
            let set = part.clone().filter(|at| bit(&value, *at)).count();
            prop_assert_eq!(count(&value, part.clone()), set as u64);
            let first = part.clone().find(|at| bit(&value, *at) == is_set);
            prop_assert_eq!(position(&value, part, is_set), first);
        }
    }
}
