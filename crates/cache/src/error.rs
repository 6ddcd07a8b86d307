//! What can go wrong.

use std::fmt;
use std::io;

/// An item that no partition can hold. Nothing was changed.
///
/// A smaller item, more memory per partition or a larger
/// [`item_bytes_max`](crate::Builder::item_bytes_max) help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// Bytes that an item may take, its key and up to 24 bytes of its own included. Keys have at most 64 KiB.
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

/// Why no writer is given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimError {
    /// This partition has a writer already. It can be taken again once that was dropped.
    Taken {
        /// The first such partition.
        partition: usize,
    },
    /// The range names no partitions, or some that there are not.
    NoSuchPartition {
        /// How many there are.
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

/// A key that belongs to a partition that its writer doesn't have. Nothing was changed.
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
    /// The key is another writer's.
    OtherPartition(OtherPartition),
    /// What a cache or store that writes itself would say.
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

/// A cache that can't be made or resized.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// The memory is too little for the number of partitions, or for an item of the mean size to be a quarter of one at
    /// most; at least `memory_min` is needed.
    MemoryTooSmall {
        /// What was given.
        memory_limit: usize,
        /// What would do.
        memory_min: usize,
    },
    /// No cache or store makes use of so much memory. There is no figure for "no limit": give what the process may
    /// have.
    MemoryTooLarge {
        /// What was given.
        memory_limit: usize,
        /// What would do: 16 TiB, and of a store 32 GiB for each partition.
        memory_max: usize,
    },
    /// There must be at least one partition.
    NoPartitions,
    /// Too many partitions, of all caches or stores that share the limit.
    TooManyPartitions {
        /// What was given, `usize::MAX` if that is no number.
        partitions: usize,
        /// What would do.
        partitions_max: usize,
    },
    /// Items would on average be larger than the largest may be.
    PayloadTooLarge {
        /// Bytes of key and value on average, as given.
        payload_bytes: usize,
        /// What would do; more with a larger [`item_bytes_max`](crate::Builder::item_bytes_max), up to 128 MiB.
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
