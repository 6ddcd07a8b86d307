//! The index of a section, made from its blocks of which one may be damaged.

use alluvium_base::Corruption;
use alluvium_index::hash_filter::HashFilter;

use crate::directory::{IndexKind, SectionEntry};
use crate::index::SectionIndex;
use crate::own_filter::OwnFilter;

impl SectionIndex {
    /// Whether `bytes` is a sound filter of the section, or empty if the section has none.
    pub(super) fn is_filter(entry: &SectionEntry, bytes: &[u8]) -> bool {
        bytes.is_empty() && entry.filter.len == 0
            || bytes.is_empty() && entry.index_kind != IndexKind::SlotFences
            || OwnFilter::from_bytes(bytes, entry).is_ok()
    }

    /// Like [`SectionIndex::decode`], with `None` for a damaged filter of the section's own. If that was a filter of
    /// tags in hash layout, it had `slots` slots.
    pub(super) fn decode_around(
        entry: &SectionEntry,
        filter: Option<&[u8]>,
        pages: &[u8],
        slots: u32,
    ) -> Result<Self, Corruption> {
        let index = Self::decode(entry, filter.unwrap_or_default(), pages)?;
        let needs_slots = filter.is_none() && entry.index_kind == IndexKind::SlotFences;
        Ok(if needs_slots { index.lacking_filter(slots) } else { index })
    }

    /// The occupied slots of a filter of tags, ascending, or `None` if the bytes are not such a filter.
    pub(super) fn occupied_slots(filter: &[u8]) -> Option<Vec<u32>> {
        HashFilter::from_bytes(filter).ok().map(|tags| tags.occupied().collect())
    }
}
