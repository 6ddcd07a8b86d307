//! Which bits of a key's hash choose what. The parts do not overlap (Lim's thesis, §5.3.3).

use alluvium_base::KeyHash;

/// Bucket and tag of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Number of the bucket.
    pub bucket: usize,
    /// Not 0.
    pub tag: u16,
}

impl Place {
    /// The place of a key among `buckets` buckets: the high bits of the hash's low half choose the bucket, its last 16
    /// bits are the tag.
    #[inline(always)]
    pub fn of(hash: KeyHash, buckets: usize) -> Self {
        let low = hash.low();
        Self { bucket: ((u128::from(low) * buckets as u128) >> 64) as usize, tag: (low as u16).max(1) }
    }
}

/// The smallest low half of a hash whose bucket among `buckets` is number `bucket`; `None` if `bucket` is one more than
/// the number of the last, since its hashes would exceed 64 bits.
pub(crate) fn first_hash(bucket: usize, buckets: usize) -> Option<u64> {
    u64::try_from(((bucket as u128) << u64::BITS).div_ceil(buckets as u128)).ok()
}

/// The partition of a key among `partitions`, chosen by the hash's high half.
#[inline(always)]
pub(crate) fn partition_of(hash: KeyHash, partitions: usize) -> usize {
    ((u128::from(hash.high()) * partitions as u128) >> 64) as usize
}

/// The owner of a key among `count` caches or stores with the same hash: chosen by the middle of the hash's low half,
/// which determines neither the bucket (chosen by the first bits) nor the tag (the last bits).
pub(crate) fn owner_of(hash: KeyHash, count: usize) -> usize {
    partition_of(KeyHash::from_halves(hash.low().rotate_left(32), 0), count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_hash_of_a_bucket_is_its_own_and_the_one_before_is_not() {
        for buckets in [1, 2, 3, 7, 1000, 65_536, 999_983] {
            assert_eq!(first_hash(0, buckets), Some(0));
            assert_eq!(first_hash(buckets, buckets), None);
            for bucket in
                [1, buckets / 2, buckets - 1].into_iter().filter(|&bucket| (1..buckets).contains(&bucket))
            {
                let first = first_hash(bucket, buckets).unwrap();
                let bucket_of = |low| Place::of(KeyHash::from_halves(0, low), buckets).bucket;
                assert_eq!((bucket_of(first), bucket_of(first - 1)), (bucket, bucket - 1));
            }
        }
    }
}
