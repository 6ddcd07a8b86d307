//! The numbers with which a cache or store may be configured: the only place that checks them.
//!
//! Sizes are computed only from numbers within these bounds, so no product or sum of them overflows.

use crate::error::BuildError;

/// Maximum memory of one cache or store, or of all that share a limit: 16 TiB.
pub(crate) const MEMORY_BYTES_MAX: usize = 1 << 44;

/// Maximum partitions of one cache or store, or of all that share a limit. Each has some ten memory mappings, of which
/// Linux allows a process 65,530 by default.
pub(crate) const PARTITIONS_MAX: usize = 1 << 12;

/// Where the search for a partition's minimum memory starts.
const SHARE_BYTES_MIN: usize = 16 << 10;

/// Numbers that a builder was given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    pub memory_limit: usize,
    /// Caches or stores that share the limit.
    pub owners: usize,
    /// Partitions of each.
    pub partitions: usize,
    /// Bytes of key and value of an item, on average.
    pub payload: usize,
    /// The same for the largest item.
    pub payload_max: usize,
    /// Maximum bytes that a partition can use.
    pub partition_bytes_max: usize,
}

impl Numbers {
    /// The result of `make` for the bytes of each partition; `make` returns `None` if they are too few.
    ///
    /// # Errors
    /// [`BuildError`]: the number that is out of its bounds.
    pub fn share_out<T>(&self, make: impl Fn(usize) -> Option<T>) -> Result<T, BuildError> {
        let partitions = self.owners.saturating_mul(self.partitions);
        if partitions == 0 {
            return Err(BuildError::NoPartitions);
        }
        if partitions > PARTITIONS_MAX {
            return Err(BuildError::TooManyPartitions { partitions, partitions_max: PARTITIONS_MAX });
        }
        let memory_max = self.partition_bytes_max.saturating_mul(partitions).min(MEMORY_BYTES_MAX);
        if self.memory_limit > memory_max {
            return Err(BuildError::MemoryTooLarge { memory_limit: self.memory_limit, memory_max });
        }
        if self.payload > self.payload_max {
            return Err(BuildError::PayloadTooLarge {
                payload_bytes: self.payload,
                payload_bytes_max: self.payload_max,
            });
        }
        let share = self.memory_limit / partitions;
        if let Some(made) = make(share) {
            return Ok(made);
        }
        let mut enough = SHARE_BYTES_MIN;
        while make(enough).is_none() && enough < MEMORY_BYTES_MAX {
            enough *= 2;
        }
        Err(BuildError::MemoryTooSmall {
            memory_limit: self.memory_limit,
            memory_min: enough.saturating_mul(partitions),
        })
    }
}

/// Whether `items` items of `payload` bytes need more memory than a cache or store may have.
pub(crate) fn are_too_many(items: usize, payload: usize) -> bool {
    items > MEMORY_BYTES_MAX / payload.max(1)
}
