//! Replays the log: its segments become frozen log stores again, to be converted like any others.
//!
//! The log is one sequence of records over the segments. It ends at the first record that is not sound. What follows
//! was never acknowledged as durable, since every sync includes everything before it. The exception is a mark further
//! on that says that the log was durable beyond that position: then the log is damaged, and is not replayed for
//! writing.
//!
//! If an earlier recovery found an end, the manifest says so, and the sequence continues in the next segment.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_base::{Corruption, KeyspaceId, SegmentId};
use alluvium_io::{AlignedBuffer, File, Storage};

use super::content::{Content, read_content};
use super::index::index;
use super::segments::{SegmentFile, SegmentFiles, damaged};
use crate::blob::{BlobFiles, ReferenceCounts};
use crate::error::{IoContext, Result};
use crate::log::Recycler;
use crate::log::{LogStore, Position, Segment};
use crate::manifest::DatabaseState;

/// Bytes written at a time.
const WRITE_BYTES: usize = 1 << 20;

/// The content of the log.
#[derive(Debug, Default)]
pub(super) struct Replayed {
    /// Old to young.
    pub segments: Vec<Arc<Segment>>,
    /// By keyspace, old to young.
    pub stores: BTreeMap<KeyspaceId, Vec<Arc<LogStore>>>,
    /// Files of segments before the log's start, old to young.
    pub converted: Vec<SegmentFile>,
    /// References of the log stores to blob files.
    pub references: ReferenceCounts,
    /// The damage to the log and to the blob files that were being written. Always empty unless the database is opened
    /// for reading.
    pub damage: Vec<Corruption>,
}

/// Replays the log after its last converted position; records in `state` where it ends. Files without any part of it go
/// to the recycler. Changes nothing in any file; if `sync`, what is replayed survives a power cut.
pub(super) fn replay(
    storage: &dyn Storage,
    recycler: &Arc<Recycler>,
    state: &mut DatabaseState,
    manifest: u64,
    blobs: &BlobFiles,
    (check, sync): (bool, bool),
) -> Result<Replayed> {
    let (files, converted) = SegmentFiles::find(storage, recycler, state, manifest)?;
    let mut replayed = Replayed { converted, ..Replayed::default() };
    let mut stale = Vec::new();
    let mut id = state.log_start;
    // The end of the log, and the segment and content there that should have continued.
    let (end, found): (Position, Option<(&SegmentFile, Content)>) = loop {
        let segment = files.0.get(&id).filter(|segment| segment.has_header);
        match (segment, state.log_ends.get(&id).copied()) {
            // An earlier recovery skipped this number; a file that still has it is stale.
            (_, Some(0)) => stale.extend(files.0.get(&id).map(|segment| (id, segment.file.clone()))),
            (Some(segment), known_end) => {
                let file = &segment.file;
                let content = read_content(&**file, segment.header.seed, known_end, check, blobs)?;
                let end = content.bytes.len() as u64;
                if let Some(known_end) = known_end.filter(|&known_end| known_end != end) {
                    let expected = format!("as all are up to offset {known_end}");
                    return Err(damaged(content.corruption(&**file, &expected)));
                }
                if sync && known_end.is_none() {
                    make_durable(&**file, &content.bytes)?;
                }
                let replay = Segment::recovered(file.clone(), segment.header, &content.bytes, recycler)?;
                index(&replay, state, &mut replayed, check)?;
                replayed.segments.push(replay);
                if !content.sealed && known_end.is_none() {
                    break (Position { segment: id, offset: end }, Some((segment, content)));
                }
            }
            (None, Some(known_end)) => {
                return Err(damaged(files.headless(id, &format!("which has {known_end} bytes"))));
            }
            (None, None) => break (Position { segment: id, offset: 0 }, None),
        }
        id = id.next();
    };
    let proven = files.proven(storage, state, end)?.max(synced(state));
    if proven > end {
        let Position { segment, offset } = proven;
        let expected = format!("since the log was synced up to offset {offset} of segment {segment}");
        return Err(damaged(match found {
            Some((file, content)) => content.corruption(&*file.file, &expected),
            None => files.headless(id, &expected),
        }));
    }
    if let Some((_, content)) = found {
        state.log_ends.insert(id, content.bytes.len() as u64);
        id = id.next();
    }
    // The log has ended: segments with higher numbers contain nothing that was acknowledged as durable. The next
    // segment gets a number above theirs, and the numbers in between are skipped from now on.
    let SegmentFiles(mut unused) = files;
    unused.retain(|&number, _| number >= id);
    let above = unused.keys().next_back().map_or(SegmentId(0), |last| last.next());
    stale.extend(unused.into_iter().map(|(id, segment)| (id, segment.file)));
    stale.into_iter().for_each(|(id, file)| recycler.add_unreleased(id, file));
    state.next_segment = state.next_segment.max(id).max(above);
    for passed in id.until(state.next_segment) {
        state.log_ends.insert(passed, 0);
    }
    Ok(replayed)
}

/// How far the log was synced at least, by what the manifest says.
pub(super) fn synced(state: &DatabaseState) -> Position {
    let (segment, offset) = state.synced();
    Position { segment, offset }
}

/// Makes the content of a segment survive a power cut. A process that was killed may have left it in the system's
/// memory only. If a sync had failed before, the system would not write it either (see `File::sync`), so it is written
/// again.
fn make_durable(file: &dyn File, content: &[u8]) -> Result<()> {
    for (index, piece) in content.chunks(WRITE_BYTES).enumerate() {
        let written = file.write_at(&AlignedBuffer::from(piece), (index * WRITE_BYTES) as u64);
        written.context(|| format!("writing {} again", file.name()))?;
    }
    file.sync().context(|| format!("syncing {}", file.name()))
}
