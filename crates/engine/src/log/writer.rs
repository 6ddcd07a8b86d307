//! Appending to the active segment, writing behind, and syncing.
//!
//! Lock order: shard writers, then `standby` or `written`, then `active`, then `sealed`, then a segment's write lock,
//! then `full`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use alluvium_base::SegmentId;

use alluvium_base::checksum::checksum64;
use alluvium_io::Storage;
use alluvium_io::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use alluvium_io::sync::{Mutex, MutexGuard};

use super::active::Active;
use super::group_commit::GroupCommit;
use super::header::SegmentHeader;
use super::options::LogOptions;
use super::record::{self, MARK_LEN_MAX, SEAL_LEN};
use super::recycler::Recycler;
use super::retained::RetainedLog;
use super::segment::{Filling, Segment};
use super::waits::LogWaits;
use crate::blob::Blobs;
use crate::environment::PlantedBugs;
use crate::error::Result;
use crate::failure::{FailureClass, class_of};
use crate::log_position::LogPosition;
use crate::reserve::Reserve;

/// Content is written behind once this much has accumulated.
pub(super) const WRITE_BEHIND_BYTES: u64 = 1 << 20;
/// Room for the end of a segment: a mark and the seal.
pub(super) const END_LEN: usize = MARK_LEN_MAX + SEAL_LEN;
/// The log is quiet if nothing was appended for this long.
const QUIET: Duration = Duration::from_millis(200);

/// A position in the log. Ordered like the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Position {
    pub segment: SegmentId,
    /// End of the record in the segment.
    pub offset: u64,
}

/// The log's writing side.
#[derive(Debug)]
pub(crate) struct Log {
    storage: Arc<dyn Storage>,
    pub(super) blobs: Arc<Blobs>,
    recycler: Arc<Recycler>,
    session_seed: u64,
    /// Number of this opening for writing.
    opening: u64,
    /// The end of the log of earlier openings, if it is known.
    pub follows: Option<LogPosition>,
    /// Converted segments that are kept for readers.
    pub retained: Arc<RetainedLog>,
    /// Size of future segments.
    segment_bytes: AtomicU64,
    /// How the files are filled.
    filling: Filling,
    pub(super) active: Mutex<Active>,
    /// The segment after the active one, made in advance so that a freeze does not wait for a file.
    pub(super) standby: Mutex<Option<Active>>,
    /// Sealed segments that have not been synced since, old to young.
    pub(super) sealed: Mutex<VecDeque<Arc<Segment>>>,
    pub(super) commit: GroupCommit,
    /// How far the log would survive the death of the process, if writers wait for that. Locked by the one who writes.
    pub(super) written: Mutex<Position>,
    pub planted_bugs: PlantedBugs,
    pub(super) flush_wanted: AtomicBool,
    /// Why the disk counts as full, while it does.
    pub(super) full: Mutex<Option<String>>,
    pub(super) times_full: AtomicU64,
    /// Space for what must be written while the disk is full.
    reserve: Arc<Reserve>,
    /// Whether there is a refusal, by `commit`, `full` or `is_closing`. Writers check this first.
    pub(super) has_refusal: AtomicBool,
    pub(super) is_closing: AtomicBool,
    /// The end of the log when it was last seen to have grown, and the time of that.
    last_growth: Mutex<(Position, Duration)>,
    bytes_written: AtomicU64,
    syncs: AtomicU64,
    /// What writers wait for.
    pub waits: LogWaits,
}

impl Log {
    /// Starts the log with a fresh segment of the given id.
    pub fn start(options: LogOptions, segment_id: SegmentId) -> Result<Self> {
        let LogOptions {
            storage,
            clock,
            blobs,
            recycler,
            reserve,
            session_seed,
            opening,
            follows,
            retained,
            segment_bytes,
            filling,
            planted_bugs,
        } = options;
        let header =
            SegmentHeader { id: segment_id, seed: segment_seed(session_seed, segment_id), opening, follows };
        let (segment, appender) = Segment::create(&*storage, &recycler, header, segment_bytes)?;
        Ok(Self {
            storage,
            blobs,
            recycler,
            session_seed,
            opening,
            follows,
            retained,
            segment_bytes: AtomicU64::new(segment_bytes),
            filling,
            active: Mutex::new(Active::new(segment, appender)),
            standby: Mutex::new(None),
            sealed: Mutex::default(),
            commit: GroupCommit::new(clock.clone(), planted_bugs),
            written: Mutex::default(),
            planted_bugs,
            flush_wanted: AtomicBool::new(false),
            full: Mutex::default(),
            times_full: AtomicU64::new(0),
            reserve,
            has_refusal: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            last_growth: Mutex::default(),
            bytes_written: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
            waits: LogWaits::new(clock),
        })
    }

    pub fn active_segment(&self) -> Arc<Segment> {
        self.active().segment.clone()
    }

    pub(super) fn active(&self) -> MutexGuard<'_, Active> {
        self.active.lock().expect("no panic while held")
    }

    pub(super) fn sealed(&self) -> MutexGuard<'_, VecDeque<Arc<Segment>>> {
        self.sealed.lock().expect("no panic while held")
    }

    /// Number of this opening for writing.
    pub fn opening(&self) -> u64 {
        self.opening
    }

    /// The end of the log as a position since the database's birth.
    pub fn end_position(&self) -> LogPosition {
        let active = self.active_segment();
        active.header.position(active.published())
    }

    /// Seals the active segment and starts the next one. The caller has closed all log stores of the active one.
    pub fn switch(&self) -> Result<(Arc<Segment>, Arc<Segment>)> {
        self.prepare_next()?;
        let standby = self.standby.lock().expect("no panic while held").take();
        let Active { segment: next, appender, .. } = standby.expect("freezes take turns");
        let next_id = next.id;
        let mut active = self.active();
        let seal = record::encode_seal(active.segment.seed, next_id);
        let capacity = active.segment.capacity();
        active.append(&seal, capacity).expect("append leaves room for the seal");
        let sealed = std::mem::replace(&mut active.segment, next.clone());
        active.appender = appender;
        // The first record of a segment says how far the log was durable then, whether or not the segment before it
        // does.
        active.unmarked = Some(active.durable);
        self.sealed().push_back(sealed.clone());
        Ok((sealed, next))
    }

    /// Makes the segment after the active one, unless it exists already. A failure changes nothing.
    pub fn prepare_next(&self) -> Result<()> {
        let mut standby = self.standby.lock().expect("no panic while held");
        let id = self.active().segment.id.next();
        if standby.as_ref().is_none_or(|standby| standby.segment.id != id) {
            let seed = segment_seed(self.session_seed, id);
            let header = SegmentHeader { id, seed, opening: self.opening, follows: None };
            let (segment, appender) = self.with_reserve(|| {
                Segment::create(&*self.storage, &self.recycler, header, self.segment_bytes())
            })?;
            *standby = Some(Active::new(segment, appender));
        }
        Ok(())
    }

    /// Whether enough has accumulated to be written behind; resets the request.
    pub fn take_flush_wanted(&self) -> bool {
        self.flush_wanted.load(Ordering::Relaxed) && self.flush_wanted.swap(false, Ordering::AcqRel)
    }

    /// Writes whole blocks of the active segment and everything in sealed ones to their files, without a sync.
    pub fn write_behind(&self) -> Result<()> {
        let sealed: Vec<_> = self.sealed().iter().cloned().collect();
        sealed.iter().try_for_each(|segment| self.write_out(segment, true))?;
        self.write_out(&self.active_segment(), false)
    }

    pub(super) fn write_out(&self, segment: &Segment, edge: bool) -> Result<()> {
        // On a full disk zeros would take what the reserve gave back.
        let filling = || match self.filling {
            Filling::Prepared if self.refusal().is_some() => Filling::Plain,
            filling => filling,
        };
        let bytes = self.with_reserve(|| segment.write_out(edge, filling()))?;
        self.bytes_written.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Leaves a segment's file, with all its content, to readers of the log.
    pub fn retain(&self, segment: &Segment) -> Result<()> {
        let written = segment.retain()?;
        self.bytes_written.fetch_add(written, Ordering::Relaxed);
        Ok(())
    }

    /// Leaves a segment's file, with all its content, to chained keyspaces.
    pub fn keep_chained(&self, segment: &Segment) -> Result<()> {
        let written = segment.keep_chained()?;
        self.bytes_written.fetch_add(written, Ordering::Relaxed);
        Ok(())
    }

    /// Performs an operation that may be repeated after it found the disk full: it is then tried once more with the
    /// reserved space. The disk counts as full from then on, whether or not that helped.
    pub(super) fn with_reserve<R>(&self, perform: impl Fn() -> Result<R>) -> Result<R> {
        perform().or_else(|error| match class_of(&error) {
            FailureClass::Full => {
                let error = self.set_full(&error);
                if self.reserve.release() {
                    perform().map_err(|error| self.set_full(&error))
                } else {
                    Err(error)
                }
            }
            FailureClass::Passing | FailureClass::Final => Err(error),
        })
    }

    /// Returns when everything up to `position` survives a power cut. Callers that wait at the same time share syncs.
    pub fn commit_to(&self, position: Position) -> Result<()> {
        let sync = || self.sync_everything().inspect(|&durable| self.active().set_durable(durable));
        let outcome = self.commit.wait_for(position, sync);
        if outcome.is_err() {
            let _full = self.full.lock().expect("no panic while held");
            if self.commit.refusal().is_some() {
                self.has_refusal.store(true, Ordering::Release);
            }
        }
        outcome
    }

    /// Appends marks that say that the whole log is durable, if it is and no mark says so yet. Otherwise damage to what
    /// was written last could not be distinguished from a write torn by a power cut. Takes a sync.
    pub fn mark_end(&self) -> Result<()> {
        let end = {
            let mut active = self.active();
            let end = Position { segment: active.segment.id, offset: active.segment.published() };
            if active.is_shut || active.marked_end == end || active.durable != end {
                return Ok(());
            }
            let limit = active.segment.capacity() - END_LEN as u64;
            // A mark counts only if a sound record follows it, so two are written.
            let is_marked = |active: &mut Active| active.append_mark(limit).is_some();
            if !is_marked(&mut active) || !is_marked(&mut active) {
                return Ok(());
            }
            active.marked_end = Position { offset: active.segment.published(), ..end };
            active.marked_end
        };
        self.commit_to(end)
    }

    /// How far the log would survive a power cut.
    pub fn durable(&self) -> Position {
        self.commit.durable()
    }

    /// Makes everything appended so far survive a power cut.
    pub fn commit_all(&self) -> Result<()> {
        self.commit_to(self.end())
    }

    /// Syncs the blobs that records may refer to, then the sealed segments, then the active one: nothing becomes
    /// durable before what precedes it.
    fn sync_everything(&self) -> Result<Position> {
        let (active, offset, sealed) = {
            let active = self.active();
            let sealed: Vec<_> = self.sealed().iter().cloned().collect();
            (active.segment.clone(), active.segment.published(), sealed)
        };
        self.with_reserve(|| self.blobs.sync())?;
        for segment in &sealed {
            self.write_out(segment, true)?;
            segment.sync()?;
            self.syncs.fetch_add(1, Ordering::Relaxed);
            let mut sealed = self.sealed();
            if sealed.front().is_some_and(|front| front.id == segment.id) {
                sealed.pop_front();
            }
        }
        self.write_out(&active, true)?;
        active.sync()?;
        self.syncs.fetch_add(1, Ordering::Relaxed);
        Ok(Position { segment: active.id, offset })
    }

    /// Cuts off space of the log's files that has no content.
    pub fn trim(&self) {
        let standby = self.standby.lock().expect("no panic while held");
        standby.iter().for_each(|standby| standby.segment.trim());
        self.active_segment().trim();
        self.recycler.trim();
    }

    /// Forgets a sealed segment whose items are durable in tables.
    pub fn release(&self, segment: &Segment) {
        self.sealed().retain(|sealed| sealed.id != segment.id);
    }

    /// Whether something was appended that only a sync makes durable.
    pub fn is_dirty(&self) -> bool {
        self.commit.durable() < self.end()
    }

    /// The current end of the log.
    pub fn end(&self) -> Position {
        let active = self.active_segment();
        Position { segment: active.id, offset: active.published() }
    }

    /// Whether nothing was appended for [`QUIET`]; see [`Log::quiet_time`].
    pub fn is_quiet(&self, now: Duration) -> bool {
        self.quiet_time(now) >= QUIET
    }

    /// For how long nothing was appended. Growth is noticed only by calls of this function, so call it repeatedly.
    pub fn quiet_time(&self, now: Duration) -> Duration {
        let end = self.end();
        let mut last_growth = self.last_growth.lock().expect("no panic while held");
        if last_growth.0 != end {
            *last_growth = (end, now);
        }
        now.saturating_sub(last_growth.1)
    }

    /// Bytes written to log files, prepared space included.
    pub fn bytes_written(&self) -> u64 {
        self.bytes_written.load(Ordering::Relaxed)
    }

    /// Syncs of log files.
    pub fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    fn segment_bytes(&self) -> u64 {
        self.segment_bytes.load(Ordering::Relaxed)
    }

    /// Sets the size of future segments.
    pub fn set_segment_bytes(&self, bytes: u64) {
        self.segment_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Maximum bytes of a record.
    pub fn record_bytes_max(&self) -> u64 {
        self.segment_bytes() - super::segment::BLOCK - (MARK_LEN_MAX + END_LEN) as u64
    }
}

/// The seed of a segment's record checksums: no other segment has it.
fn segment_seed(session_seed: u64, id: SegmentId) -> u64 {
    checksum64(&id.0.to_le_bytes(), session_seed)
}
