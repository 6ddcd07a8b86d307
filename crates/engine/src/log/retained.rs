//! [`RetainedLog`]: converted segments that stay on the device for readers of the log.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use alluvium_io::File;
use alluvium_io::sync::{Mutex, MutexGuard};

use super::file_users::{FileUser, FileUsers};
use super::header::SegmentHeader;
use super::recycler::Recycler;
use crate::log_position::LogPosition;

/// A converted segment whose file is kept.
#[derive(Debug)]
pub(crate) struct RetainedSegment {
    pub header: SegmentHeader,
    pub file: Arc<dyn File>,
    /// Bytes of the file that have content.
    pub bytes: u64,
    /// Readers of the log, and the keyspaces with chains in it, if there are any.
    pub users: Arc<FileUsers>,
}

/// The converted segments that are kept, old to young, and what keeps them: a number of bytes, and readers.
///
/// Bound: the bytes to retain, or those that holds may keep if these are more, plus one segment.
#[derive(Debug)]
pub(crate) struct RetainedLog {
    /// As many bytes are kept in any case.
    bytes_min: u64,
    /// Maximum bytes that holds keep.
    held_bytes_max: u64,
    recycler: Arc<Recycler>,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    segments: VecDeque<Arc<RetainedSegment>>,
    bytes: u64,
    /// The end of the youngest segment that is not kept. It stays in memory while its conversion lasts, and while
    /// versions need it, but nothing holds it any more.
    gone: LogPosition,
    /// What each hold keeps, by its number.
    holds: BTreeMap<u64, LogPosition>,
    next_hold: u64,
}

impl RetainedLog {
    /// The log of an opening that found these segments, old to young, on the device.
    pub fn new(
        bytes_min: u64,
        held_bytes_max: u64,
        recycler: Arc<Recycler>,
        found: Vec<RetainedSegment>,
    ) -> Self {
        let bytes = found.iter().map(|segment| segment.bytes).sum();
        let segments = found.into_iter().map(Arc::new).collect();
        let kept = Mutex::new(Kept { segments, bytes, ..Kept::default() });
        let retained = Self { bytes_min, held_bytes_max, recycler, kept };
        retained.trim(&mut retained.kept());
        retained
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("no panic while held")
    }

    /// Whether the segment is kept when it has been converted.
    pub fn keeps(&self, header: &SegmentHeader) -> bool {
        self.bytes_min > 0 || self.kept().is_held(header)
    }

    /// The same, for a segment whose conversion ends now. If it is not kept, it can no longer be held.
    pub fn keeps_from_now_on(&self, header: &SegmentHeader) -> bool {
        let mut kept = self.kept();
        let keeps = self.bytes_min > 0 || kept.is_held(header);
        if !keeps {
            kept.lose(header);
        }
        keeps
    }

    /// Keeps a segment, which is younger than all others.
    pub fn add(&self, segment: RetainedSegment) {
        let mut kept = self.kept();
        kept.bytes += segment.bytes;
        kept.segments.push_back(Arc::new(segment));
        self.trim(&mut kept);
    }

    /// Gives the files of the oldest segments back that nothing keeps.
    fn trim(&self, kept: &mut Kept) {
        while let Some(oldest) = kept.segments.front() {
            let is_needed = kept.bytes - oldest.bytes < self.bytes_min;
            let is_held = kept.bytes <= self.held_bytes_max && kept.is_held(&oldest.header);
            if is_needed || is_held {
                return;
            }
            kept.bytes -= oldest.bytes;
            let oldest = kept.segments.pop_front().expect("looked at above");
            kept.lose(&oldest.header);
            self.give_back(&oldest);
        }
    }

    fn give_back(&self, segment: &RetainedSegment) {
        if segment.users.end(FileUser::Readers) {
            self.recycler.add_unreleased(segment.header.id, segment.file.clone());
        }
    }

    /// Gives the files of all segments back: a younger one is not kept.
    pub fn give_up(&self) {
        let mut kept = self.kept();
        while let Some(oldest) = kept.segments.pop_front() {
            kept.lose(&oldest.header);
            self.give_back(&oldest);
        }
        kept.bytes = 0;
    }

    /// The segment of `position`, if it is kept.
    pub fn find(&self, position: LogPosition) -> Option<Arc<RetainedSegment>> {
        let kept = self.kept();
        kept.segments.iter().find(|segment| segment.header.is_of(position)).cloned()
    }

    /// The segment of a later opening that continues the log at `end`.
    pub fn following(&self, end: LogPosition) -> Option<Arc<RetainedSegment>> {
        self.kept().segments.iter().find(|segment| segment.header.follows == Some(end)).cloned()
    }

    /// The ends of earlier openings' logs that segments of later ones continue.
    pub fn ends(&self) -> Vec<LogPosition> {
        self.kept().segments.iter().filter_map(|segment| segment.header.follows).collect()
    }

    /// The oldest segment that is kept.
    pub fn oldest(&self) -> Option<Arc<RetainedSegment>> {
        self.kept().segments.front().cloned()
    }

    /// Bytes of all segments that are kept.
    pub fn bytes(&self) -> u64 {
        self.kept().bytes
    }

    /// Keeps the log from `position` on until the returned hold is dropped. Returns `None` if it is too late for that.
    pub fn hold(self: &Arc<Self>, position: LogPosition) -> Option<HeldLog> {
        let mut kept = self.kept();
        if position <= kept.gone {
            return None;
        }
        let number = kept.next_hold;
        kept.next_hold += 1;
        kept.holds.insert(number, position);
        Some(HeldLog { log: self.clone(), number })
    }
}

impl Kept {
    /// Notes that a segment is not kept: what names it from now on is told so at once, and not when it reads.
    fn lose(&mut self, header: &SegmentHeader) {
        self.gone = self.gone.max(header.position(u64::MAX));
    }

    fn is_held(&self, header: &SegmentHeader) -> bool {
        let end = header.position(u64::MAX);
        self.holds.values().any(|&position| position <= end)
    }
}

/// Keeps the log from a position on, until it is dropped.
#[derive(Debug)]
pub(crate) struct HeldLog {
    log: Arc<RetainedLog>,
    number: u64,
}

impl HeldLog {
    /// Keeps the log only from `position` on.
    pub fn advance(&self, position: LogPosition) {
        let mut kept = self.log.kept();
        kept.holds.insert(self.number, position);
        self.log.trim(&mut kept);
    }
}

impl Drop for HeldLog {
    fn drop(&mut self) {
        let mut kept = self.log.kept();
        kept.holds.remove(&self.number);
        self.log.trim(&mut kept);
    }
}

#[cfg(test)]
mod tests {
    use alluvium_io::{OpenMode, SimulatedStorage, Storage};

    use alluvium_base::SegmentId;

    use super::*;

    fn segment(id: u64) -> RetainedSegment {
        let storage = SimulatedStorage::new(1);
        let file = storage.open("log", OpenMode::Create).unwrap();
        let header = SegmentHeader { id: SegmentId(id), seed: 1, opening: 1, follows: None };
        RetainedSegment { header, file, bytes: 100, users: Arc::default() }
    }

    fn log(bytes_min: u64, held_bytes_max: u64) -> Arc<RetainedLog> {
        Arc::new(RetainedLog::new(bytes_min, held_bytes_max, Arc::default(), Vec::new()))
    }

    fn position(id: u64) -> LogPosition {
        segment(id).header.position(4096)
    }

    #[test]
    fn the_youngest_bytes_are_kept() {
        let log = log(250, 0);
        (1..10).for_each(|id| log.add(segment(id)));
        assert_eq!((log.bytes(), log.oldest().unwrap().header.id), (300, SegmentId(7)));
        assert!(log.find(position(7)).is_some() && log.find(position(6)).is_none());
    }

    #[test]
    fn a_hold_keeps_what_it_names_up_to_a_bound() {
        let log = log(0, 500);
        assert!(!log.keeps(&segment(1).header));
        assert!(!log.keeps_from_now_on(&segment(1).header) && log.hold(position(1)).is_none());
        let hold = log.hold(position(3)).unwrap();
        assert!(!log.keeps(&segment(2).header) && log.keeps(&segment(3).header));
        (3..7).for_each(|id| log.add(segment(id)));
        assert_eq!(log.oldest().unwrap().header.id, SegmentId(3));
        hold.advance(position(5));
        assert_eq!(log.oldest().unwrap().header.id, SegmentId(5));
        (7..20).for_each(|id| log.add(segment(id)));
        assert_eq!(log.bytes(), 500);
        drop(hold);
        assert_eq!(log.bytes(), 0);
        // Versions may still have it in memory, but a reader would miss it later.
        assert!(log.hold(position(19)).is_none() && log.hold(position(20)).is_some());
    }
}
