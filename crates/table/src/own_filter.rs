//! [`OwnFilter`]: a filter for one section alone.

use alluvium_base::{Corruption, KeyHash};
use alluvium_index::hash_filter::HashFilter;
use alluvium_index::static_filter::StaticFilter;

/// Rejects keys that are not in the section.
#[derive(Debug)]
pub(crate) enum OwnFilter {
    /// Tags in a cuckoo table, which also name the slots in which a key may be.
    Tags(HashFilter),
    /// A ribbon of all the section's hashes: fewer bits, but no positions.
    Static(StaticFilter),
}

impl OwnFilter {
    /// The filter that [`to_bytes`](Self::to_bytes) wrote.
    pub fn from_bytes(bytes: &[u8], is_static: bool) -> Result<Self, Corruption> {
        match is_static {
            true => StaticFilter::from_bytes(bytes).map(Self::Static),
            false => HashFilter::from_bytes(bytes).map(Self::Tags),
        }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Tags(filter) => filter.to_bytes(),
            Self::Static(filter) => filter.to_bytes(),
        }
    }

    pub fn is_static(&self) -> bool {
        matches!(self, Self::Static(_))
    }

    /// Bits per hash in the filter, in addition to its position.
    pub fn bits(&self) -> u8 {
        let bits = match self {
            Self::Tags(filter) => filter.tag_bits(),
            Self::Static(filter) => filter.width(),
        };
        bits as u8
    }

    /// Whether the section may have a key of this hash.
    #[inline]
    pub fn may_contain(&self, hash: KeyHash) -> bool {
        match self {
            Self::Tags(filter) => filter.may_contain(hash),
            Self::Static(filter) => filter.may_contain(hash),
        }
    }

    /// Starts loading what a lookup of the hash reads first.
    #[inline]
    pub fn prefetch(&self, hash: KeyHash) {
        match self {
            Self::Tags(filter) => filter.prefetch(hash),
            Self::Static(filter) => filter.prefetch(hash),
        }
    }

    /// The filter of tags, if it is one.
    #[inline]
    pub fn tags(&self) -> Option<&HashFilter> {
        match self {
            Self::Tags(filter) => Some(filter),
            Self::Static(_) => None,
        }
    }

    pub fn memory_bytes(&self) -> u64 {
        match self {
            Self::Tags(filter) => filter.memory_bytes() as u64,
            Self::Static(filter) => filter.memory_bytes(),
        }
    }
}
