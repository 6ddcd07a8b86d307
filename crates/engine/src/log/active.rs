//! [`Active`]: the segment to which records are appended, and the marks that say how far the log is durable.

use std::sync::Arc;

use alluvium_io::Appender;

use super::linked_record::{FILLER_LEN_MAX, LINK_UNIT, encode_filler};
use super::record::{self, MARK_LEN_MAX, Mark};
use super::segment::Segment;
use super::writer::Position;

#[derive(Debug)]
pub(super) struct Active {
    pub segment: Arc<Segment>,
    pub appender: Appender,
    /// How far the log was durable after the last sync, until a mark says so.
    pub unmarked: Option<Position>,
    /// How far the log was durable after the last sync.
    pub durable: Position,
    /// The end of the marks that say that the whole log is durable.
    pub marked_end: Position,
    /// Whether nothing may be appended any more, even if there is room.
    pub is_shut: bool,
}

impl Active {
    pub fn new(segment: Arc<Segment>, appender: Appender) -> Self {
        let (durable, marked_end) = (Position::default(), Position::default());
        Self { segment, appender, unmarked: None, durable, marked_end, is_shut: false }
    }

    /// Notes that a sync made the log durable up to `durable`. A mark that says so precedes the next record.
    pub fn set_durable(&mut self, durable: Position) {
        if durable > self.durable {
            self.durable = durable;
            self.unmarked = Some(durable);
        }
    }

    /// Appends `record`, preceded by a mark if a sync has ended since the last mark. Returns `None`, and appends
    /// nothing, if they would end behind `limit`.
    pub fn append(&mut self, record: &[u8], limit: u64) -> Option<u64> {
        let start = self.segment.published();
        let mark = self.unmarked.and_then(|durable| Mark::of(durable, self.segment.id));
        let mark = mark.map(|mark| record::encode_mark(self.segment.seed, mark)).unwrap_or_default();
        if start + (mark.len() + record.len()) as u64 > limit {
            return None;
        }
        if !mark.is_empty() {
            self.appender.append(&mark)?;
        }
        self.unmarked = None;
        self.appender.append(record)
    }

    /// Appends a record of `len` bytes that begins at a multiple of [`LINK_UNIT`], preceded by a mark as in
    /// [`Active::append`]. `record` returns it when its start is known. Returns the start, or `None`, and appends
    /// nothing, if the record would end behind `limit`.
    pub fn append_linked<R: AsRef<[u8]>>(
        &mut self,
        len: usize,
        limit: u64,
        record: impl FnOnce(u64) -> R,
    ) -> Option<u64> {
        let needed = MARK_LEN_MAX + FILLER_LEN_MAX + len;
        if self.segment.published() + needed as u64 > limit {
            return None;
        }
        if let Some(mark) = self.unmarked.take().and_then(|durable| Mark::of(durable, self.segment.id)) {
            self.appender.append(&record::encode_mark(self.segment.seed, mark))?;
        }
        let filler = encode_filler(self.segment.seed, self.segment.published());
        if !filler.is_empty() {
            self.appender.append(&filler)?;
        }
        let start = self.segment.published();
        debug_assert!(start.is_multiple_of(LINK_UNIT as u64));
        self.appender.append(record(start).as_ref())
    }

    /// Appends a mark that says how far the log was durable after the last sync, if there is room for it.
    pub fn append_mark(&mut self, limit: u64) -> Option<()> {
        let mark = record::encode_mark(self.segment.seed, Mark::of(self.durable, self.segment.id)?);
        if self.segment.published() + mark.len() as u64 > limit {
            return None;
        }
        self.appender.append(&mark).map(drop)
    }
}
