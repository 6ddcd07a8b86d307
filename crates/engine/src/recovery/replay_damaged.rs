//! Replays a damaged log for readers: every sound record of the part that was durable is used, and a list says what is
//! missing. A repair keeps the same records.

use std::sync::Arc;

use alluvium_base::{Corruption, SegmentId};
use alluvium_io::Storage;

use super::content::unsound_blob;
use super::index::index_damaged;
use super::replay::{Replayed, synced};
use super::segments::{SegmentFile, SegmentFiles};
use crate::blob::BlobFiles;
use crate::error::Result;
use crate::log::Recycler;
use crate::log::salvage::{Piece, Pieces};
use crate::log::segment::BLOCK;
use crate::log::{Position, Segment, record::Record};
use crate::manifest::{DatabaseState, read_all};

/// Replays the sound records of a damaged log. Behind the position up to which it was durable, the usual rule applies:
/// the log ends at the first unsound record.
pub(super) fn replay_damaged(
    storage: &dyn Storage,
    recycler: &Arc<Recycler>,
    state: &mut DatabaseState,
    manifest: u64,
    blobs: &BlobFiles,
) -> Result<Replayed> {
    let (files, _) = SegmentFiles::find(storage, recycler, state, manifest)?;
    let start = Position { segment: state.log_start, offset: 0 };
    let proven = files.proven(storage, state, start)?.max(synced(state));
    let known = state.log_ends.iter().rev().find(|(_, end)| **end > 0).map_or(SegmentId(0), |(&id, _)| id);
    let mut replayed = Replayed::default();
    let mut id = state.log_start;
    loop {
        let known_end = state.log_ends.get(&id).copied();
        match files.0.get(&id) {
            _ if known_end == Some(0) => {}
            Some(segment) => {
                let required = match known_end {
                    Some(end) => end,
                    None if id == proven.segment => proven.offset,
                    None if id < proven.segment => u64::MAX,
                    None => 0,
                };
                let bytes = read_all(storage, segment.file.name())?;
                let mut part = Part { segment, bytes: &bytes, required, known_end, blobs };
                let (end, sealed) = part.read(&mut replayed.damage)?;
                if !segment.has_header {
                    let expected = format!("which is durable up to {proven:?}");
                    replayed.damage.push(files.headless(id, &expected));
                }
                let replay =
                    Segment::recovered(segment.file.clone(), segment.header, &bytes[..end], recycler)?;
                index_damaged(&replay, state, &mut replayed)?;
                replayed.segments.push(replay);
                if !sealed && known_end.is_none() && id >= proven.segment.max(known) {
                    break;
                }
            }
            None if known_end.is_some() || id <= proven.segment || id < known => {
                replayed.damage.push(files.headless(id, "behind which the log continues"));
            }
            None => break,
        }
        id = id.next();
    }
    state.next_segment = files
        .0
        .keys()
        .next_back()
        .map_or(SegmentId(0), |last| last.next())
        .max(state.next_segment)
        .max(id.next());
    Ok(replayed)
}

/// A segment with damaged parts.
struct Part<'a> {
    segment: &'a SegmentFile,
    bytes: &'a [u8],
    /// Everything in front of this must be sound.
    required: u64,
    known_end: Option<u64>,
    blobs: &'a BlobFiles,
}

impl Part<'_> {
    /// Where the valid records end, and whether with a seal. Notes what is unsound before that.
    fn read(&mut self, damage: &mut Vec<Corruption>) -> Result<(usize, bool)> {
        let Self { segment, required, known_end, blobs, .. } = *self;
        let limit = known_end.map_or(self.bytes.len(), |end| self.bytes.len().min(end as usize));
        let bytes = &self.bytes[..limit];
        let name = segment.file.name();
        let mut end = limit.min(BLOCK as usize);
        let mut pieces = Pieces::new(segment.header.seed, bytes, BLOCK as usize);
        while let Some(piece) = pieces.next() {
            let must_be_sound = (end as u64) < required;
            match piece {
                Piece::Gap { bytes } if must_be_sound => {
                    let found = format!("{bytes} unsound bytes");
                    damage.push(Corruption::new(name, end as u64, "sound records", found));
                }
                Piece::Gap { .. } => return Ok((end, false)),
                Piece::Record { record, .. } => {
                    if matches!(record, Record::Seal { .. }) {
                        return Ok((pieces.position(), true));
                    }
                    if let Some(corruption) = unsound_blob(&record, blobs)? {
                        if !must_be_sound {
                            return Ok((end, false));
                        }
                        damage.push(corruption);
                    }
                }
            }
            end = pieces.position();
        }
        let missing = known_end.unwrap_or(if required == u64::MAX { u64::MAX } else { required });
        if (end as u64) < missing {
            damage.push(Corruption::new(name, end as u64, "sound records up to the segment's end", "none"));
        }
        Ok((end, false))
    }
}
