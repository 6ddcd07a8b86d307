//! [`LogSource`]: a segment of the log that is being read, in memory or on the device.

use std::cmp::Ordering;
use std::sync::{Arc, Weak};

use alluvium_base::{Corruption, SegmentId};
use alluvium_io::AlignedBuffer;

use crate::core::Shared;
use crate::error::{Error, IoContext, Result};
use crate::log::record::{self, Parsed, Record};
use crate::log::segment::BLOCK;
use crate::log::{RetainedSegment, Segment, SegmentHeader};
use crate::log_position::LogPosition;
use crate::options::Durability;

/// Bytes of a file that are read at a time.
const READ_BYTES: u64 = 1 << 20;

/// See the module.
#[derive(Debug)]
pub(super) enum LogSource {
    Memory(MemorySource),
    Device(DeviceSource),
}

/// A segment that is not converted yet.
#[derive(Debug)]
pub(super) struct MemorySource {
    header: SegmentHeader,
    /// Weak, so that a reader keeps no memory of a converted segment.
    segment: Weak<Segment>,
}

/// A converted segment, and the part of it that was read last.
#[derive(Debug)]
pub(super) struct DeviceSource {
    segment: Arc<RetainedSegment>,
    bytes: Vec<u8>,
    /// Offset of `bytes` in the segment.
    start: u64,
    /// Where the log of the segment's opening ended, if that is an earlier one. The file may have sound records behind
    /// it: recovery ends the log also before a record whose large value is unsound.
    opening_end: Option<LogPosition>,
}

/// What a source has at an offset.
#[derive(Debug)]
pub(super) enum Read {
    /// A record, which ends here.
    Record { end: u64 },
    /// The log ends here, up to now.
    NothingYet,
    /// The segment was converted since: it must be looked for again.
    Moved,
    /// The segment ends at `end`. The log continues at `next`, or else in the segment that names this end.
    Ended { end: LogPosition, next: Option<LogPosition> },
}

impl LogSource {
    /// The source of the record at `position`, or, if there is no such segment, the source that continues the log
    /// behind `end`.
    ///
    /// # Errors
    /// [`Error::LogPositionGone`] if there is none.
    pub fn at(shared: &Shared, position: LogPosition, end: Option<LogPosition>) -> Result<Self> {
        let find = || {
            let is_it = |header: &SegmentHeader| {
                header.is_of(position) && end != Some(position) || end.is_some() && header.follows == end
            };
            let active = shared.log.active_segment();
            let frozen = || shared.frozen.lock().expect("no panic while held").clone();
            let in_memory = std::iter::once(active).chain(frozen()).find(|segment| is_it(&segment.header));
            let device = |segment: Arc<RetainedSegment>| {
                let opening_end = end_of_opening(shared, segment.header.opening);
                DeviceSource { segment, bytes: Vec::new(), start: 0, opening_end }
            };
            let retained = || {
                let found = (end != Some(position)).then(|| shared.log.retained.find(position)).flatten();
                found.or_else(|| shared.log.retained.following(end?))
            };
            let memory = |segment: Arc<Segment>| MemorySource {
                header: segment.header,
                segment: Arc::downgrade(&segment),
            };
            in_memory
                .map(|segment| Self::Memory(memory(segment)))
                .or_else(|| retained().map(|segment| Self::Device(device(segment))))
        };
        let found = find().or_else(|| {
            // A segment that is being frozen is neither active nor listed as frozen yet.
            let _no_freeze = shared.freeze_lock.lock().expect("no panic while held");
            find()
        });
        found.ok_or_else(|| Error::LogPositionGone { oldest: oldest(shared) })
    }

    fn header(&self) -> &SegmentHeader {
        match self {
            Self::Memory(source) => &source.header,
            Self::Device(source) => &source.segment.header,
        }
    }

    /// Where reading begins: at `wanted` if that is in this segment, otherwise with the first record.
    pub fn start(&self, wanted: Option<LogPosition>) -> LogPosition {
        let header = self.header();
        wanted.filter(|position| header.is_of(*position)).unwrap_or(header.position(BLOCK))
    }

    /// Passes the record at `offset` to `visit`.
    pub fn read(
        &mut self,
        shared: &Shared,
        offset: u64,
        visit: impl FnOnce(&Record<'_>) -> Result<()>,
    ) -> Result<Read> {
        let offset = offset.max(BLOCK);
        match self {
            Self::Memory(source) => match source.segment.upgrade() {
                Some(segment) => read_memory(shared, &segment, offset, visit),
                None => Ok(Read::Moved),
            },
            Self::Device(source) => source.read(shared, offset, visit),
        }
    }
}

/// The position of the oldest record that can be read.
pub(super) fn oldest(shared: &Shared) -> LogPosition {
    let header = shared.log.retained.oldest().map(|segment| segment.header);
    let header = header.or_else(|| shared.oldest_frozen().map(|segment| segment.header));
    header.unwrap_or_else(|| shared.log.active_segment().header).position(BLOCK)
}

/// How far the segment's records may be shown.
fn visible(shared: &Shared, segment: &Segment) -> u64 {
    let published = segment.published();
    let durable = match shared.settings.durability {
        _ if segment.header.opening != shared.log.opening() => return published,
        Durability::Buffered => return published,
        // What is synced without a writer that waits is durable, too.
        Durability::Process => shared.log.written().max(shared.log.durable()),
        Durability::Interval(_) | Durability::Sync => shared.log.durable(),
    };
    match durable.segment.cmp(&segment.id) {
        Ordering::Less => 0,
        Ordering::Equal => durable.offset.min(published),
        Ordering::Greater => published,
    }
}

fn read_memory(
    shared: &Shared,
    segment: &Segment,
    offset: u64,
    visit: impl FnOnce(&Record<'_>) -> Result<()>,
) -> Result<Read> {
    let end = visible(shared, segment);
    if offset >= end {
        // What an earlier opening wrote grows no more.
        let is_whole = segment.header.opening != shared.log.opening();
        let end = segment.header.position(offset);
        return Ok(if is_whole { Read::Ended { end, next: None } } else { Read::NothingYet });
    }
    let bytes = segment.slice(offset..end).expect("published");
    match record::decode(segment.seed, bytes, true) {
        Parsed::Record(Record::Seal { next_segment }, len) => {
            Ok(ended(&segment.header, offset + len as u64, next_segment))
        }
        Parsed::Record(record, len) => {
            visit(&record)?;
            Ok(Read::Record { end: offset + len as u64 })
        }
        Parsed::Incomplete | Parsed::Invalid => Err(unsound(segment.name(), offset)),
    }
}

fn ended(header: &SegmentHeader, end: u64, next_segment: SegmentId) -> Read {
    let next = LogPosition { segment: next_segment, offset: BLOCK, ..header.position(0) };
    Read::Ended { end: header.position(end), next: Some(next) }
}

fn unsound(file: &str, offset: u64) -> Error {
    Corruption::new(file, offset, "a sound record of the log", "an unsound one").into()
}

impl DeviceSource {
    fn read(
        &mut self,
        shared: &Shared,
        offset: u64,
        visit: impl FnOnce(&Record<'_>) -> Result<()>,
    ) -> Result<Read> {
        let header = self.segment.header;
        let here = header.position(offset);
        match self.opening_end.map(|end| end.cmp(&here)) {
            Some(Ordering::Equal) => return Ok(Read::Ended { end: here, next: None }),
            // A crash can take from a buffered log what was read already.
            Some(Ordering::Less) => return Err(Error::LogPositionGone { oldest: oldest(shared) }),
            Some(Ordering::Greater) | None => {}
        }
        let mut wanted = READ_BYTES;
        loop {
            let at = offset.checked_sub(self.start).filter(|&at| at <= self.bytes.len() as u64);
            let bytes = at.map_or(&[][..], |at| &self.bytes[at as usize..]);
            match record::decode(header.seed, bytes, true) {
                Parsed::Record(Record::Seal { next_segment }, len) => {
                    return Ok(ended(&header, offset + len as u64, next_segment));
                }
                Parsed::Record(record, len) => {
                    visit(&record)?;
                    return Ok(Read::Record { end: offset + len as u64 });
                }
                Parsed::Incomplete | Parsed::Invalid => {}
            }
            if !self.fill(offset, wanted)? {
                break;
            }
            wanted *= 2;
        }
        if shared.log.retained.find(here).is_none() {
            // The file was given back and may contain another segment.
            return Err(Error::LogPositionGone { oldest: oldest(shared) });
        }
        Err(unsound(self.segment.file.name(), offset))
    }

    /// Reads about `wanted` bytes from `offset` on. Returns `false` if there is nothing that was not read yet.
    fn fill(&mut self, offset: u64, wanted: u64) -> Result<bool> {
        let start = offset / BLOCK * BLOCK;
        let end = (start + wanted).min(self.segment.bytes.next_multiple_of(BLOCK));
        if end <= start || start >= self.start && end <= self.start + self.bytes.len() as u64 {
            return Ok(false);
        }
        let file = &self.segment.file;
        let mut buffer = AlignedBuffer::zeroed((end - start) as usize);
        let read = file.read_at(&mut buffer, start).context(|| format!("reading {}", file.name()))?;
        self.bytes.clear();
        self.bytes.extend_from_slice(&buffer[..read]);
        let is_new = read as u64 + start > offset;
        self.start = start;
        Ok(is_new)
    }
}

/// The end of the log of an earlier opening, according to the segment that continues it.
///
/// The log itself knows where this opening's first segment continues: that segment may be neither active nor listed as
/// frozen while it is being frozen, and may no longer be kept. Those of earlier openings only move from the frozen ones
/// to the kept ones.
fn end_of_opening(shared: &Shared, opening: u64) -> Option<LogPosition> {
    let frozen = shared.frozen.lock().expect("no panic while held").clone();
    let in_memory = frozen.into_iter().filter_map(|segment| segment.header.follows);
    let ends = shared.log.follows.into_iter().chain(in_memory).chain(shared.log.retained.ends());
    ends.into_iter().find(|end| end.opening == opening)
}
