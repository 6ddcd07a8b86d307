//! The files of the log, and the records in them that are sound.

use std::collections::BTreeMap;

use alluvium_base::{KeyspaceId, SegmentId};
use alluvium_io::OpenMode;

use super::Repair;
use crate::error::{IoContext, Result};
use crate::item::EncodedItem;
use crate::log::identity::Identities;
use crate::log::record::Record;
use crate::log::salvage::{Piece, Pieces};
use crate::log::segment::BLOCK;
use crate::log::{SegmentHeader, segment};
use crate::manifest::{DatabaseState, read_all};

/// The files of the log.
pub(super) struct SegmentFiles {
    /// Segments of the log.
    pub log: BTreeMap<SegmentId, Found>,
    /// Segments from before the log's start.
    pub older: BTreeMap<SegmentId, Found>,
    /// Names of files whose header is damaged, with another segment or none.
    pub unknown: Vec<String>,
}

/// A log file that contains a segment.
pub(super) struct Found {
    pub name: String,
    pub seed: u64,
    /// Whether the header is undamaged.
    pub is_sound: bool,
}

/// Counts of a segment's records.
#[derive(Default)]
pub(super) struct Scan {
    pub records: u64,
    pub gaps: u64,
    pub gap_bytes: u64,
}

impl Repair {
    pub fn log_files(&self) -> Result<Vec<String>> {
        let names = self.storage.list().context(|| "listing the database directory".to_owned())?;
        Ok(names.into_iter().filter(|name| segment::is_file_name(name)).collect())
    }

    /// All files with segments, including those with damaged headers.
    pub fn find_segments(&self, state: &DatabaseState, manifest: u64) -> Result<SegmentFiles> {
        let mut found = BTreeMap::new();
        let mut older = BTreeMap::new();
        let mut unknown = Vec::new();
        let mut headless = Vec::new();
        for name in self.log_files()? {
            let block = self.read_start(&name);
            if SegmentHeader::is_released(&block) {
                continue;
            }
            match SegmentHeader::parse(&name, &block)? {
                Some(SegmentHeader { id, seed, .. }) if id >= state.log_start => {
                    found.insert(id, Found { name, seed, is_sound: true });
                }
                Some(SegmentHeader { id, seed, .. }) => {
                    older.insert(id, Found { name, seed, is_sound: true });
                }
                None => headless.push(name),
            }
        }
        found.retain(|id, _| state.log_ends.get(id) != Some(&0));
        let last = [found.keys().next_back(), state.log_ends.keys().next_back()].into_iter().flatten().max();
        let newest = last.copied().unwrap_or_default().max(state.next_segment);
        let identities = Identities { seed: state.seed, manifest, log_start: state.log_start, newest };
        for name in headless {
            let bytes = read_all(&*self.storage, &name).unwrap_or_default();
            match identities.find(&bytes, &found) {
                Some((id, seed)) => drop(found.insert(id, Found { name, seed, is_sound: false })),
                None => unknown.push(name),
            }
        }
        Ok(SegmentFiles { log: found, older, unknown })
    }

    /// The first bytes of a log file; empty if it cannot be read.
    fn read_start(&self, name: &str) -> Vec<u8> {
        let mut block = vec![0; BLOCK as usize];
        let read = self.storage.open(name, OpenMode::Read).and_then(|file| file.read_at(&mut block, 0));
        block.truncate(read.unwrap_or(0));
        block
    }

    pub fn read_segment(&self, segment: &Found, known_end: Option<u64>) -> Result<Vec<u8>> {
        let mut bytes = read_all(&*self.storage, &segment.name)?;
        if let Some(end) = known_end {
            bytes.truncate(usize::try_from(end).unwrap_or(usize::MAX));
        }
        Ok(bytes)
    }
}

/// Calls `visit` with the keyspace and the position of every item of a segment's sound records.
///
/// The segment must be complete up to `required`, or end with a seal if that is `u64::MAX`.
pub(super) fn scan(
    segment: &Found,
    bytes: &[u8],
    required: u64,
    mut visit: impl FnMut(KeyspaceId, usize),
) -> Scan {
    let mut scan = Scan::default();
    let mut is_sealed = false;
    let mut pieces = Pieces::new(segment.seed, bytes, BLOCK as usize);
    for piece in &mut pieces {
        match piece {
            Piece::Gap { bytes } => {
                scan.gaps += 1;
                scan.gap_bytes += bytes as u64;
            }
            Piece::Record { record, start } => {
                scan.records += 1;
                match record {
                    Record::Item { keyspace, item_start, .. } => visit(keyspace, start + item_start),
                    Record::Batch(items) => {
                        items.for_each(|(keyspace, _, item_start)| visit(keyspace, start + item_start));
                    }
                    Record::Mark(_) | Record::Unlogged { .. } | Record::Slots { .. } => scan.records -= 1,
                    Record::Seal { .. } => {
                        scan.records -= 1;
                        is_sealed = true;
                    }
                }
            }
        }
    }
    let end = pieces.position() as u64;
    if end < required && !is_sealed {
        scan.gaps += 1;
        // The length of a segment that lacks its seal is unknown.
        scan.gap_bytes += if required == u64::MAX { 0 } else { required - end };
    }
    scan
}

/// Keyspace and position of every item of a segment's sound records that refers to a blob file.
pub(super) fn references(segment: &Found, bytes: &[u8], known_end: Option<u64>) -> Vec<(KeyspaceId, usize)> {
    let mut references = Vec::new();
    scan(segment, bytes, known_end.unwrap_or(0), |keyspace, start| {
        if EncodedItem::decode(&bytes[start..]).is_some_and(|encoded| encoded.item.is_reference()) {
            references.push((keyspace, start));
        }
    });
    references
}

pub(super) fn starts_with_record(seed: u64, bytes: &[u8]) -> bool {
    let first = Pieces::new(seed, bytes, BLOCK as usize).next();
    matches!(first, Some(Piece::Record { record: Record::Item { .. } | Record::Batch(_), .. }))
}
