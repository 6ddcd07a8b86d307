//! Exponential Golomb codes: splits of large subtries, and the position of the middle of a bucket.
//!
//! The thesis (§3.1.4) writes splits above `h_max` keys in Elias-gamma, as the folded difference from the mean. Such
//! differences have the size of the standard deviation, `sqrt(n) / 2`, so we send that many low bits as they are and
//! only the rest in Elias-gamma: an exponential Golomb code whose order follows from `n`. Order 0 would be the thesis'
//! code; the order saves 0.02 bit/key.

/// Maximum number of keys of one bucket, so that a code fits in the 64 bits that a reader sees at once.
pub(super) const BUCKET_KEYS_MAX: u64 = u32::MAX as u64;

/// Zeros in front of the longest code's head.
const ZEROS_MAX: u32 = 23;

/// Code, from the lowest bit up, and length of `value` with `order` low bits as they are.
pub(crate) fn code(value: u64, order: u32) -> (u64, u32) {
    let head = (value >> order) + 1;
    let zeros = head.ilog2();
    assert!(zeros <= ZEROS_MAX, "{value} is beyond an exponential Golomb code of order {order}");
    let head_low = head & ((1 << zeros) - 1);
    let low = value & ((1 << order) - 1);
    ((1 << zeros) | head_low << (zeros + 1) | low << (2 * zeros + 1), 2 * zeros + 1 + order)
}

/// The value whose code of `order` is at the lowest bit of `bits`, and the code's length.
#[inline(always)]
pub(crate) fn decode(bits: u64, order: u32) -> Option<(u64, u32)> {
    let zeros = bits.trailing_zeros();
    if zeros > ZEROS_MAX {
        return None;
    }
    let head = (1 << zeros) | (bits >> (zeros + 1)) & ((1 << zeros) - 1);
    let low = (bits >> (2 * zeros + 1)) & ((1 << order) - 1);
    Some(((head - 1) << order | low, 2 * zeros + 1 + order))
}

/// Numbers by their distance from `mean`, near ones first: mean, one below, one above, two below and so on.
#[inline(always)]
pub(crate) fn fold(number: u64, mean: u64) -> u64 {
    if number >= mean { (number - mean) * 2 } else { (mean - number) * 2 - 1 }
}

/// The inverse of [`fold`], wrapping if there is none. Below or above is unpredictable, so there is no branch.
#[inline(always)]
pub(crate) fn unfold(folded: u64, mean: u64) -> u64 {
    mean.wrapping_add(folded >> 1 ^ (folded & 1).wrapping_neg())
}

#[inline(always)]
fn split_order(n: u64) -> u32 {
    n.ilog2() / 2 - 1
}

/// Code and length of the split of `n` keys, above 64, into `left` and the rest.
pub(super) fn split_code(n: u64, left: u64) -> (u64, u32) {
    code(fold(left, n / 2), split_order(n))
}

/// The split of `n` keys, above 64, in front of `bits`, and its length. `None` if no split of `n` keys has this code.
#[inline(always)]
pub(super) fn decode_split(n: u64, bits: u64) -> Option<(u64, u32)> {
    let (folded, length) = decode(bits, split_order(n))?;
    let left = unfold(folded, n / 2);
    (left < n).then_some((left, length))
}

/// The second order is for crowds of keys that share most of their bits, whose halves may take 192 bits a key.
#[inline(always)]
fn half_order(n: u64) -> u32 {
    let log2 = n.max(2).ilog2();
    (log2 / 2 + 1).max(log2.saturating_sub(13))
}

/// Code and length of `bits`, the length of the left half of a bucket, which has `n` keys and `mean` bits on average.
pub(crate) fn half_code(n: u64, mean: u64, bits: u64) -> (u64, u32) {
    code(fold(bits, mean), half_order(n))
}

/// The length that [`half_code`] wrote in front of `bits`, and the code's length. Wrong bits may give any number.
#[inline(always)]
pub(crate) fn decode_half(n: u64, mean: u64, bits: u64) -> Option<(u64, u32)> {
    let (folded, length) = decode(bits, half_order(n))?;
    Some((unfold(folded, mean), length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_split_comes_back(n in 65..=BUCKET_KEYS_MAX, shift in 0u32..26, part: u64) {
            let n = (n >> shift).max(65);
            for left in [part % n, 0, n - 1, n / 2] {
                let (code, length) = split_code(n, left);
                prop_assert!(length <= 64);
                for junk in [0, u64::MAX.checked_shl(length).unwrap_or(0)] {
                    prop_assert_eq!(decode_split(n, code | junk), Some((left, length)));
                }
            }
        }

        #[test]
        fn every_length_of_a_half_comes_back(n in 0..=BUCKET_KEYS_MAX, shift in 0u32..32, bits_per_key in 0u64..=192) {
            let n = n >> shift;
            for (mean, bits) in [(n * 2, n * bits_per_key), (n, n), (0, n)] {
                let (code, length) = half_code(n, mean, bits);
                prop_assert!(length <= 64);
                prop_assert_eq!(decode_half(n, mean, code), Some((bits, length)));
            }
        }

        #[test]
        fn arbitrary_bits_give_a_split_or_none(n in 65..=BUCKET_KEYS_MAX, bits: u64) {
            if let Some((left, length)) = decode_split(n, bits) {
                prop_assert!(left < n && length > 0 && length <= 64);
            }
            let _ = decode_half(n, n, bits);
        }
    }
}
