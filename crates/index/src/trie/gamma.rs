//! Splits of large subtries: folded difference from the mean in an exponential Golomb code.
//!
//! The thesis (§3.1.4) uses Elias-gamma above `h_max`. Differences from the mean have the size of the standard
//! deviation, `sqrt(n) / 2`, so we send that many low bits as they are and only the rest in Elias-gamma: an exponential
//! Golomb code whose order follows from `n`. Order 0 would be the thesis' code; the order saves 0.02 bit/key.

/// The most keys of one bucket, so that a code fits in the 64 bits that a reader sees at once.
pub(super) const BUCKET_KEYS_MAX: u64 = u32::MAX as u64;

#[inline]
fn order(n: u64) -> u32 {
    n.ilog2() / 2 - 1
}

/// Code, from the lowest bit up, and length of the split of `n` keys, above 64, into `left` and the rest.
pub(super) fn code(n: u64, left: u64) -> (u64, u32) {
    let mean = n / 2;
    let folded = if left >= mean { (left - mean) * 2 } else { (mean - left) * 2 - 1 };
    let order = order(n);
    let head = (folded >> order) + 1;
    let extra = head.ilog2();
    let low = folded & ((1 << order) - 1);
    let head_low = head & ((1 << extra) - 1);
    ((1 << extra) | head_low << (extra + 1) | low << (2 * extra + 1), 2 * extra + 1 + order)
}

/// The split of `n` keys, above 64, at the lowest bit of `bits`, and the code's length. `None` when no split of `n`
/// keys has this code.
#[inline]
pub(super) fn decode(n: u64, bits: u64) -> Option<(u64, u32)> {
    let extra = bits.trailing_zeros();
    if extra > 24 {
        return None;
    }
    let order = order(n);
    let head = (1 << extra) | (bits >> (extra + 1)) & ((1 << extra) - 1);
    let low = (bits >> (2 * extra + 1)) & ((1 << order) - 1);
    let folded = (head - 1) << order | low;
    let mean = n / 2;
    let left = if folded.is_multiple_of(2) { mean + folded / 2 } else { mean.checked_sub(folded / 2 + 1)? };
    (left < n).then_some((left, 2 * extra + 1 + order))
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
                let (code, length) = code(n, left);
                prop_assert!(length <= 64);
                for junk in [0, u64::MAX.checked_shl(length).unwrap_or(0)] {
                    prop_assert_eq!(decode(n, code | junk), Some((left, length)));
                }
            }
        }

        #[test]
        fn arbitrary_bits_give_a_split_or_none(n in 65..=BUCKET_KEYS_MAX, bits: u64) {
            if let Some((left, length)) = decode(n, bits) {
                prop_assert!(left < n && length > 0);
            }
        }
    }
}
