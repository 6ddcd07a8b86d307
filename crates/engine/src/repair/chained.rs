//! Segments from before the log's start that stay, because chained keyspaces have records in them.
//!
//! A sound manifest names them. Without one, a segment with linked records of a keyspace is needed if it is younger
//! than all tables of the keyspace: what is in chains is always younger than what is below them, and a segment that
//! became a run gave the run its number.
//!
//! If the log is rewritten as runs, so are these segments, since runs are below chains, and the log's items are
//! younger.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use alluvium_base::{KeyspaceId, SegmentId};

use super::Repair;
use super::log::Part;
use super::segments::{Found, scan};
use crate::blob::Reference;
use crate::error::Result;
use crate::item::{EncodedItem, Link};
use crate::log::salvage::starts_with_record;
use crate::manifest::{ChainedSegment, DatabaseState, KeyspaceState, read_all};

/// A segment that stays.
pub(super) struct ChainedFound {
    pub found: Found,
    /// Where its content ends, if that is known.
    pub end: Option<u64>,
    /// The keyspaces whose linked records count.
    keyspaces: BTreeSet<KeyspaceId>,
}

/// The segments that chained keyspaces need.
#[derive(Default)]
pub(super) struct ChainedSegments {
    pub present: BTreeMap<SegmentId, ChainedFound>,
    missing: BTreeSet<SegmentId>,
}

/// The youngest segment whose records are in tables of a keyspace: older ones do not count any more.
pub(super) type YoungestInTables = BTreeMap<KeyspaceId, SegmentId>;

impl ChainedSegments {
    pub fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        self.present.iter().map(|(&id, ChainedFound { found, end, keyspaces })| Part {
            id,
            segment: found,
            known_end: *end,
            required: end.unwrap_or(0),
            only: Some(keyspaces),
        })
    }
}

impl Repair {
    /// The segments that the manifest names, among those `older` than the log, and in files whose header is damaged.
    pub fn chained_segments(
        &self,
        state: &DatabaseState,
        mut older: BTreeMap<SegmentId, Found>,
        unknown: Vec<String>,
    ) -> ChainedSegments {
        let mut needed: BTreeMap<SegmentId, (ChainedSegment, BTreeSet<KeyspaceId>)> = BTreeMap::new();
        for (&keyspace, KeyspaceState { chained, .. }) in &state.keyspaces {
            for (&id, &segment) in chained {
                needed.entry(id).or_insert_with(|| (segment, BTreeSet::new())).1.insert(keyspace);
            }
        }
        let mut segments = ChainedSegments::default();
        for (id, (ChainedSegment { seed, bytes }, keyspaces)) in needed {
            let with_header = older.remove(&id).filter(|found| found.seed == seed);
            let headless = || {
                let has_it = |name: &&String| {
                    starts_with_record(seed, &read_all(&*self.storage, name).unwrap_or_default())
                };
                let name = unknown.iter().find(has_it)?.clone();
                Some(Found { name, seed, is_sound: false })
            };
            match with_header.or_else(headless) {
                Some(found) => {
                    let end = Some(bytes);
                    segments.present.insert(id, ChainedFound { found, end, keyspaces });
                }
                None => drop(segments.missing.insert(id)),
            }
        }
        segments
    }

    /// The segments that are needed by what is in them.
    pub fn chained_segments_by_records(
        &self,
        state: &DatabaseState,
        older: BTreeMap<SegmentId, Found>,
        in_tables: &YoungestInTables,
    ) -> Result<ChainedSegments> {
        let mut segments = ChainedSegments::default();
        for (id, found) in older {
            let bytes = self.read_segment(&found, None)?;
            let mut keyspaces = BTreeSet::new();
            scan(&found, &bytes, 0, |keyspace, start| {
                let is_cleared = || state.keyspaces.get(&keyspace).is_some_and(|owner| owner.log_start > id);
                let is_older = in_tables.get(&keyspace).is_some_and(|&youngest| id <= youngest);
                if !is_older && is_linked(&bytes[start..]) && !is_cleared() {
                    keyspaces.insert(keyspace);
                }
            });
            if !keyspaces.is_empty() {
                segments.present.insert(id, ChainedFound { found, end: None, keyspaces });
            }
        }
        Ok(segments)
    }

    /// Reports the segments that should exist and do not. Returns whether there are any.
    pub fn count_missing_chained(&mut self, segments: &ChainedSegments) -> bool {
        for id in &segments.missing {
            self.report.problem(format!("segment {id} of the log, which is a part of the store, is missing"));
        }
        self.report.segments_lost += segments.missing.len() as u64;
        self.report.items_lost_is_minimum |= !segments.missing.is_empty();
        !segments.missing.is_empty()
    }

    /// Counts the references to blob files of the segments, which stay as they are: in each, those of the newest item
    /// of each key.
    pub fn count_chained_references(&mut self, segments: &ChainedSegments) -> Result<()> {
        for ChainedFound { found, end, keyspaces } in segments.present.values() {
            let bytes = self.read_segment(found, *end)?;
            let mut newest: BTreeMap<KeyspaceId, HashMap<&[u8], usize>> = BTreeMap::new();
            scan(found, &bytes, 0, |keyspace, start| {
                let encoded = EncodedItem::decode(&bytes[start..]);
                if let Some(encoded) = encoded.filter(|_| keyspaces.contains(&keyspace))
                    && Link::of(encoded.bytes).is_some()
                {
                    newest.entry(keyspace).or_default().insert(encoded.item.key, start);
                }
            });
            for (keyspace, newest) in newest {
                for start in newest.into_values() {
                    let Some(encoded) = EncodedItem::decode(&bytes[start..]) else { continue };
                    for reference in Reference::all_of(&encoded.item) {
                        let files = self.chained_references.entry(keyspace).or_default();
                        *files.entry(reference.file).or_default() += reference.stored_bytes();
                    }
                }
            }
        }
        Ok(())
    }
}

fn is_linked(bytes: &[u8]) -> bool {
    EncodedItem::decode(bytes).is_some_and(|encoded| Link::of(encoded.bytes).is_some())
}
