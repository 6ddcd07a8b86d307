//! Which parts of a key's hash mean what. They don't overlap (Lim's thesis, §5.3.3).

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

/// Number of the partition of a key among `partitions`, by the hash's high half.
#[inline(always)]
pub(crate) fn partition_of(hash: KeyHash, partitions: usize) -> usize {
    ((u128::from(hash.high()) * partitions as u128) >> 64) as usize
}

/// Which of `count` caches or stores that hash alike is for a key: by the middle of the hash's low half, which neither
/// the bucket (its first bits) nor the tag (its last) is taken from.
pub(crate) fn owner_of(hash: KeyHash, count: usize) -> usize {
    partition_of(KeyHash::from_halves(hash.low().rotate_left(32), 0), count)
}
