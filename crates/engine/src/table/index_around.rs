//! A section's index made of blocks of which one may be damaged.

use alluvium_base::Corruption;

use super::directory::{IndexKind, SectionEntry};
use super::index::SectionIndex;
use super::own_filter::OwnFilter;

impl SectionIndex {
    /// Whether `bytes` are a sound filter of the section's, or it has none.
    pub(super) fn is_filter(entry: &SectionEntry, bytes: &[u8]) -> bool {
        bytes.is_empty() && entry.filter.len == 0
            || bytes.is_empty() && entry.index_kind != IndexKind::SlotFences
            || OwnFilter::from_bytes(bytes, entry.filter_is_static).is_ok()
    }

    /// Like [`SectionIndex::decode`], of a section whose own filter is `None` where it is damaged: if it was one of
    /// tags in hash layout, it had `slots`.
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

    /// The occupied slots of a filter of tags, ascending; `None` of bytes that are none.
    pub(super) fn occupied_slots(filter: &[u8]) -> Option<Vec<u32>> {
        match OwnFilter::from_bytes(filter, false) {
            Ok(OwnFilter::Tags(tags)) => Some(tags.occupied().collect()),
            _ => None,
        }
    }
}
