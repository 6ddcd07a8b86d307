//! The parts of index blocks.

use alluvium_base::Corruption;
use alluvium_index::three_level::ThreeLevelIndex;

use crate::directory::SectionEntry;

/// The two parts of an index block: the bytes whose number is stored in front, and the rest.
pub(super) fn split_index<'a>(bytes: &'a [u8], what: &str) -> Result<(&'a [u8], &'a [u8]), Corruption> {
    let parts = bytes
        .split_first_chunk::<8>()
        .and_then(|(length, rest)| rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?));
    let expected = || format!("{what} of the length in front of it");
    parts.ok_or_else(|| Corruption::new("index", 0, expected(), format!("{} bytes", bytes.len())))
}

/// Decodes the three-level index of a section, and checks that it does not lead beyond the section's pages.
pub(super) fn three_level(entry: &SectionEntry, bytes: &[u8]) -> Result<ThreeLevelIndex, Corruption> {
    let index = ThreeLevelIndex::from_bytes(bytes)?;
    let last = index.last_page();
    if last.is_none_or(|last| last >= u64::from(entry.page_count)) {
        let expected = format!("an index of {} pages", entry.page_count);
        return Err(Corruption::new("index", 0, expected, format!("{last:?} as the last page")));
    }
    Ok(index)
}
