//! Finds out which segment is in a log file whose header is damaged.

use std::collections::BTreeMap;

use alluvium_base::SegmentId;

use alluvium_base::checksum::checksum64;

use super::salvage::starts_with_record;

/// The header is assumed to be from one of this many most recent sessions.
const SESSIONS_TRIED: u64 = 64;
/// How many segment numbers are tried, counted from the log's start.
const SEGMENTS_TRIED: u64 = 64;

/// What is known about the segments of a database.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identities {
    /// The database's seed.
    pub seed: u64,
    /// The number of the newest manifest: each session begins with a new one.
    pub manifest: u64,
    /// Segments below this are no longer in use.
    pub log_start: SegmentId,
    /// A number not far below that of the newest segment.
    pub newest: SegmentId,
}

impl Identities {
    /// Number and seed of the segment in a file with these bytes; never one of those that are `taken`.
    ///
    /// Seeds derived from numbers come first. The first record is sound under the right seed only, so a seed that fits
    /// proves its number. What the header still says comes after them.
    pub fn find<T>(&self, bytes: &[u8], taken: &BTreeMap<SegmentId, T>) -> Option<(SegmentId, u64)> {
        let is_it = |&(id, seed): &(SegmentId, u64)| {
            self.range().contains(&id.0) && !taken.contains_key(&id) && starts_with_record(seed, bytes)
        };
        self.likely().chain(stored(bytes)).map(|(id, seed)| (SegmentId(id), seed)).find(is_it)
    }

    fn range(&self) -> std::ops::RangeInclusive<u64> {
        let last = self.newest.max(self.log_start).0.saturating_add(SEGMENTS_TRIED);
        self.log_start.0..=last
    }

    /// A seed derives from the database's seed, the session and the segment's number.
    fn likely(&self) -> impl Iterator<Item = (u64, u64)> {
        let Self { seed, manifest, .. } = *self;
        let ids = self.range();
        let sessions = (0..=manifest).rev().take(SESSIONS_TRIED as usize);
        sessions.flat_map(move |session| {
            let session_seed = checksum64(&session.to_le_bytes(), seed);
            let ids = ids.clone().take(2 * SEGMENTS_TRIED as usize);
            ids.map(move |id| (id, checksum64(&id.to_le_bytes(), session_seed)))
        })
    }
}

/// Number and seed as a damaged header states them: the damage may be in another field.
fn stored(bytes: &[u8]) -> Option<(u64, u64)> {
    let field = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    Some((field(16)?, field(24)?)).filter(|&(id, seed)| id > 0 && seed > 0)
}
