//! [`OwnFilter`]: a filter for one section alone.

use alluvium_base::{Corruption, KeyHash};
use alluvium_index::hash_filter::HashFilter;
use alluvium_index::static_filter::StaticFilter;
use alluvium_index::trie::Fragments;

use crate::directory::SectionEntry;

/// Rejects keys that are not in the section.
#[derive(Debug)]
pub(crate) enum OwnFilter {
    /// Tags in a cuckoo table, which also name the slots in which a key may be.
    Tags(HashFilter),
    /// A ribbon of all the section's hashes: fewer bits, but no positions.
    Static(StaticFilter),
    /// Bits of each hash by rank, which a dense trie tells.
    Fragments(Fragments),
}

impl OwnFilter {
    /// The filter that [`to_bytes`](Self::to_bytes) wrote for the section of this entry.
    pub fn from_bytes(bytes: &[u8], entry: &SectionEntry) -> Result<Self, Corruption> {
        if entry.filter_is_fragments {
            let fragments = Fragments::from_bytes(bytes)?;
            if fragments.len() != entry.totals.item_count {
                let expected = format!("fragments of {} items", entry.totals.item_count);
                return Err(Corruption::new("filter", 16, expected, format!("{} items", fragments.len())));
            }
            return Ok(Self::Fragments(fragments));
        }
        match entry.filter_is_static {
            true => StaticFilter::from_bytes(bytes).map(Self::Static),
            false => HashFilter::from_bytes(bytes).map(Self::Tags),
        }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Tags(filter) => filter.to_bytes(),
            Self::Static(filter) => filter.to_bytes(),
            Self::Fragments(fragments) => fragments.to_bytes(),
        }
    }

    pub fn is_static(&self) -> bool {
        matches!(self, Self::Static(_))
    }

    /// The fragments, if it consists of them.
    #[inline]
    pub fn fragments(&self) -> Option<&Fragments> {
        match self {
            Self::Fragments(fragments) => Some(fragments),
            Self::Tags(_) | Self::Static(_) => None,
        }
    }

    /// Bits per hash in the filter, in addition to its position.
    pub fn bits(&self) -> u8 {
        let bits = match self {
            Self::Tags(filter) => filter.tag_bits(),
            Self::Static(filter) => filter.width(),
            Self::Fragments(fragments) => fragments.bits(),
        };
        bits as u8
    }

    /// Whether the section may have a key of this hash. Fragments alone, without a rank, reject nothing.
    #[inline]
    pub fn may_contain(&self, hash: KeyHash) -> bool {
        match self {
            Self::Tags(filter) => filter.may_contain(hash),
            Self::Static(filter) => filter.may_contain(hash),
            Self::Fragments(_) => true,
        }
    }

    /// Starts loading what a lookup of the hash reads first.
    #[inline]
    pub fn prefetch(&self, hash: KeyHash) {
        match self {
            Self::Tags(filter) => filter.prefetch(hash),
            Self::Static(filter) => filter.prefetch(hash),
            Self::Fragments(_) => {}
        }
    }

    /// The filter of tags, if it is one.
    #[inline]
    pub fn tags(&self) -> Option<&HashFilter> {
        match self {
            Self::Tags(filter) => Some(filter),
            Self::Static(_) | Self::Fragments(_) => None,
        }
    }

    pub fn memory_bytes(&self) -> u64 {
        match self {
            Self::Tags(filter) => filter.memory_bytes() as u64,
            Self::Static(filter) => filter.memory_bytes(),
            Self::Fragments(fragments) => fragments.memory_bytes(),
        }
    }
}
