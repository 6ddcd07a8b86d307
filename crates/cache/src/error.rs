//! Errors of this crate.

use std::fmt;
use std::io;

/// An item that no partition can hold. Nothing was changed.
///
/// A smaller item, more memory per partition or a larger [`item_bytes_max`](crate::Builder::item_bytes_max) can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// Maximum bytes of an item, including its key and up to 24 bytes of overhead. Keys have at most 64 KiB.
    pub item_bytes_max: usize,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "the item is too large: key, value and 24 bytes may take {} bytes, a key 64 KiB",
            self.item_bytes_max
        )
    }
}

impl std::error::Error for TooLarge {}

/// Why no writer can be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimError {
    /// This partition already has a writer. It can be taken again once that writer is dropped.
    Taken {
        /// The first such partition.
        partition: usize,
    },
    /// The range is empty or names partitions that do not exist.
    NoSuchPartition {
        /// Number of partitions.
        partitions: usize,
    },
}

impl fmt::Display for ClaimError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken { partition } => {
                write!(out, "partition {partition} has a writer: drop that one before taking another")
            }
            Self::NoSuchPartition { partitions } => {
                write!(out, "there are {partitions} partitions: give a range of them that is not empty")
            }
        }
    }
}

impl std::error::Error for ClaimError {}

/// A key that belongs to a partition that this writer does not cover. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherPartition {
    /// The key's partition, whose writer can write it.
    pub partition: usize,
}

impl fmt::Display for OtherPartition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the key belongs to partition {}: use the writer of that partition", self.partition)
    }
}

impl std::error::Error for OtherPartition {}

/// Why a writer refuses a write. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteError<E> {
    /// The key belongs to another writer.
    OtherPartition(OtherPartition),
    /// The error that a cache or store that writes by itself would return.
    Refused(E),
}

impl<E> From<E> for WriteError<E> {
    fn from(error: E) -> Self {
        Self::Refused(error)
    }
}

impl<E: fmt::Display> fmt::Display for WriteError<E> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherPartition(error) => error.fmt(out),
            Self::Refused(error) => error.fmt(out),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for WriteError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::OtherPartition(error) => Some(error),
            Self::Refused(error) => Some(error),
        }
    }
}

/// A cache or store that cannot be created or resized.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// The memory is too small for the number of partitions, or an item of the mean size would be larger than a quarter
    /// of a partition; at least `memory_min` is needed.
    MemoryTooSmall {
        /// The limit that was given.
        memory_limit: usize,
        /// The smallest limit that suffices.
        memory_min: usize,
    },
    /// No cache or store can use that much memory. No number means "no limit": give what the process may use.
    MemoryTooLarge {
        /// The limit that was given.
        memory_limit: usize,
        /// The largest limit: 16 TiB, and for a store also 32 GiB per partition.
        memory_max: usize,
    },
    /// There must be at least one partition.
    NoPartitions,
    /// Too many partitions, summed over all caches or stores that share the limit.
    TooManyPartitions {
        /// The number that was given, `usize::MAX` if it overflows.
        partitions: usize,
        /// The largest number.
        partitions_max: usize,
    },
    /// Items would on average be larger than the largest item allowed.
    PayloadTooLarge {
        /// Bytes of key and value on average, as given.
        payload_bytes: usize,
        /// The largest mean; greater with a larger [`item_bytes_max`](crate::Builder::item_bytes_max), up to 128 MiB.
        payload_bytes_max: usize,
    },
    /// The system refuses the memory.
    System(io::Error),
}

impl fmt::Display for BuildError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MemoryTooSmall { memory_limit, memory_min } => write!(
                out,
                "a memory limit of {memory_limit} bytes is too small for partitions and items: give {memory_min} or \
                 more"
            ),
            Self::MemoryTooLarge { memory_limit, memory_max } => {
                write!(out, "a memory limit of {memory_limit} bytes is too large: give {memory_max} or less")
            }
            Self::NoPartitions => write!(out, "a cache needs at least one partition"),
            Self::TooManyPartitions { partitions, partitions_max } => {
                write!(out, "{partitions} partitions are too many: give {partitions_max} or fewer")
            }
            Self::PayloadTooLarge { payload_bytes, payload_bytes_max } => write!(
                out,
                "items of {payload_bytes} bytes of key and value on average are larger than the largest, of \
                 {payload_bytes_max}: give fewer, or allow for larger items"
            ),
            Self::System(error) => write!(out, "the system refuses the memory of the cache: {error}"),
        }
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System(error) => Some(error),
            Self::MemoryTooSmall { .. }
            | Self::MemoryTooLarge { .. }
            | Self::NoPartitions
            | Self::TooManyPartitions { .. }
            | Self::PayloadTooLarge { .. } => None,
        }
    }
}

impl From<io::Error> for BuildError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}
