//! The log's files: which segment each contains, and how far they prove that the log was durable.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_base::{Corruption, SegmentId};
use alluvium_io::{AlignedBuffer, File, OpenMode, Storage};

use crate::error::{Error, IoContext, Result};
use crate::log::Recycler;
use crate::log::identity::Identities;
use crate::log::salvage::{Piece, Pieces, proven_durable};
use crate::log::segment::BLOCK;
use crate::log::{FileUsers, Position, SegmentHeader, segment};
use crate::log_position::LogPosition;
use crate::manifest::{DatabaseState, read_all};

/// A log file with a segment that may be part of the log.
#[derive(Debug)]
pub(super) struct SegmentFile {
    pub file: Arc<dyn File>,
    pub header: SegmentHeader,
    /// Whether the header is as it was written. If not, the first record identified the segment.
    pub has_header: bool,
    /// Who needs the file, if the segment was converted.
    pub users: Arc<FileUsers>,
}

impl SegmentFile {
    fn new(file: Arc<dyn File>, header: SegmentHeader, has_header: bool) -> Self {
        Self { file, header, has_header, users: Arc::default() }
    }

    /// The end of the segment's sound records.
    pub fn end(&self, storage: &dyn Storage) -> Result<LogPosition> {
        let bytes = read_all(storage, self.file.name())?;
        let mut pieces = Pieces::new(self.header.seed, &bytes, BLOCK as usize);
        while let Some(Piece::Record { .. }) = pieces.next() {}
        Ok(self.header.position(pieces.position() as u64))
    }
}

/// The segments that the log may consist of, by number.
#[derive(Debug)]
pub(super) struct SegmentFiles(pub BTreeMap<SegmentId, SegmentFile>);

impl SegmentFiles {
    /// Opens all log files. Returns those of segments before the log's start too, old to young; those of no segment go
    /// to the recycler. `manifest` is the number of the current manifest.
    pub fn find(
        storage: &dyn Storage,
        recycler: &Arc<Recycler>,
        state: &DatabaseState,
        manifest: u64,
    ) -> Result<(Self, Vec<SegmentFile>)> {
        let mut found = BTreeMap::new();
        let mut headless = Vec::new();
        let mut converted = Vec::new();
        for name in storage.list().context(|| "listing the database directory".to_owned())? {
            if !segment::is_file_name(&name) {
                continue;
            }
            recycler.note_name(&name);
            let file = storage.open(&name, OpenMode::Write).context(|| format!("opening {name}"))?;
            let mut block = AlignedBuffer::zeroed(BLOCK as usize);
            let read = file.read_at(&mut block, 0).context(|| format!("reading {name}"))?;
            if SegmentHeader::is_released(&block[..read]) {
                recycler.add(file);
                continue;
            }
            match SegmentHeader::parse(&name, &block[..read])? {
                Some(header) if header.id >= state.log_start => {
                    found.insert(header.id, SegmentFile::new(file, header, true));
                }
                Some(header) => converted.push(SegmentFile::new(file, header, true)),
                None => headless.push((name, file)),
            }
        }
        let newest = found.keys().next_back().copied().unwrap_or_default().max(state.next_segment);
        let identities = Identities { seed: state.seed, manifest, log_start: state.log_start, newest };
        for (name, file) in headless {
            let bytes = read_all(storage, &name)?;
            match identities.find(&bytes, &found) {
                Some((id, seed)) => {
                    let header = SegmentHeader { id, seed, opening: 0, follows: None };
                    found.insert(id, SegmentFile::new(file, header, false));
                }
                None => recycler.add(file),
            }
        }
        converted.sort_by_key(|segment| (segment.header.opening, segment.header.id));
        Ok((Self(found), converted))
    }

    /// How far marks behind `from` prove that the log was durable. Segments whose end an earlier recovery found are
    /// skipped: their required content is known.
    ///
    /// Reads what is behind `from`: usually the end of one segment, and of other segments nothing in use.
    pub fn proven(&self, storage: &dyn Storage, state: &DatabaseState, from: Position) -> Result<Position> {
        let mut proven = Position::default();
        for (&id, segment) in self.0.range(from.segment..) {
            if state.log_ends.contains_key(&id) {
                continue;
            }
            let bytes = read_all(storage, segment.file.name())?;
            let start = if id == from.segment { from.offset.max(BLOCK) } else { BLOCK };
            let durable = proven_durable(id, segment.header.seed, &bytes, start as usize);
            proven = proven.max(durable.unwrap_or_default());
        }
        Ok(proven)
    }

    /// The error for segment `id` whose sound header is missing.
    pub fn headless(&self, id: SegmentId, expected: &str) -> Corruption {
        let expected = format!("the header of segment {id} of the log, {expected}");
        match self.0.get(&id) {
            Some(segment) => Corruption::new(segment.file.name(), 0, expected, "a damaged one"),
            None => Corruption::new("the log", 0, expected, "no file that holds the segment"),
        }
    }
}

/// The error that refuses an opening. A caller fills in the directory.
pub(super) fn damaged(corruption: Corruption) -> Error {
    Error::Damaged { corruption, directory: String::new() }
}
