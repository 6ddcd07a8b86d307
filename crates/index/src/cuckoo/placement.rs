//! Where a key may be stored: its tag and its two buckets.
//!
//! Part of the format: tables of items in slot order and their stored filters depend on these functions, which must
//! never change.

use alluvium_base::KeyHash;

/// Ways of a bucket.
pub(crate) const WAYS: u32 = 4;

/// Bits of a tag.
pub(crate) const TAG_BITS: u32 = 15;

/// Maximum number of buckets: slot numbers and their count fit in 32 bits.
pub(crate) const BUCKETS_MAX: u32 = (1 << 30) - 1;

/// 2^32 divided by the golden ratio: consecutive tags spread evenly over all buckets.
const TAG_SPREAD: u32 = 0x9e37_79b1;

/// The tag of a key and the two buckets that may hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placement {
    /// 1..=32767; 0 marks an empty slot and is not the tag of any key.
    pub tag: u16,
    /// The primary and the alternative bucket; they are equal for about one key in `bucket_count`.
    pub buckets: [u32; 2],
}

impl Placement {
    /// The placement of a key in a table of `bucket_count` buckets.
    ///
    /// The tag is cut from bits 0..15 of the low half of the hash, the bucket from bits 32..64.
    #[inline(always)]
    pub fn of(hash: KeyHash, bucket_count: u32) -> Self {
        Self::with_tag_bits(hash, bucket_count, TAG_BITS)
    }

    /// The placement by a tag of fewer bits, which selects the alternative bucket: two keys that share the tag and one
    /// bucket share both buckets.
    #[inline(always)]
    pub fn with_tag_bits(hash: KeyHash, bucket_count: u32, tag_bits: u32) -> Self {
        let low = hash.low();
        let tag = (low & ((1 << tag_bits) - 1)).max(1) as u16;
        let primary = scale((low >> 32) as u32, bucket_count);
        Self { tag, buckets: [primary, alternative(primary, tag, bucket_count)] }
    }
}

/// The other bucket of an entry with `tag` in `bucket`; its own inverse.
#[inline(always)]
pub(crate) fn alternative(bucket: u32, tag: u16, bucket_count: u32) -> u32 {
    let sum = scale(u32::from(tag).wrapping_mul(TAG_SPREAD), bucket_count);
    let difference = sum.wrapping_sub(bucket);
    if sum >= bucket { difference } else { difference.wrapping_add(bucket_count) }
}

/// Maps 32 uniform bits to `0..count` without a division (multiply-shift).
#[inline(always)]
fn scale(bits: u32, count: u32) -> u32 {
    ((u64::from(bits) * u64::from(count)) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_alternative_of_the_alternative_is_the_bucket(
            low: u64,
            bucket_count in prop_oneof![1u32..40, 1..=BUCKETS_MAX],
        ) {
            let placement = Placement::of(KeyHash::from_halves(0, low), bucket_count);
            let [primary, other] = placement.buckets;
            prop_assert!((1..=32767).contains(&placement.tag));
            prop_assert!(primary < bucket_count && other < bucket_count);
            prop_assert_eq!(alternative(other, placement.tag, bucket_count), primary);
        }
    }

    #[test]
    fn placements_are_frozen_because_they_are_on_disk() {
        let placement = |low, count| Placement::of(KeyHash::from_halves(9, low), count);
        assert_eq!(placement(0, 1000), Placement { tag: 1, buckets: [0, 618] });
        assert_eq!(placement(u64::MAX, 1000), Placement { tag: 32767, buckets: [999, 120] });
        assert_eq!(placement(0x554b_9a0a_d9ae_69b1, 4312), Placement { tag: 27057, buckets: [1436, 3503] });
    }
}
