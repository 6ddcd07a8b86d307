//! The state that all handles and background threads of an open database share.
//!
//! Lock order: `collect_lock`, then the locks of `Blobs` and, apart from those, `convert_lock` or `merge_lock`, then
//! `freeze_lock`, then shard writers in ascending order of keyspace and shard, then the log's locks, then `manifest`,
//! then a keyspace's `publish` lock.

use std::collections::VecDeque;
use std::sync::Arc;

use alluvium_base::{Corruption, KeyHasher, SegmentId, TableId};
use alluvium_io::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use alluvium_io::sync::{Mutex, MutexGuard, OnceLock, RwLock};
use alluvium_io::{Clock, ClosableStorage, DirectoryLock, Storage};
use alluvium_model::planner::{Space, items_expected, plan_executable};
use alluvium_model::{LevelsPlan, PlanError};

use super::counters::Counters;
use super::disk_quota::DiskQuota;
use super::failures::Failures;
use super::job::{Job, Writers, pressure_of_jobs};
use super::keyspace::KeyspaceShared;
use super::keyspace_checks::check_plan;
use super::memory_limit::MemoryControl;
use super::rows::Rows;
use super::scan_cache::ScanCache;
use super::{JobThread, PlanDecision, RateLimit, Scheduler, Throttle};
use crate::blob::Blobs;
use crate::device;
use crate::environment::PlantedBugs;
use crate::error::{Error, Result};
use crate::failure::lacks_space;
use crate::level::{Levels, Reclaimer, Version};
use crate::log::{Log, LogStore, Position, Refusal, Segment};
use crate::manifest::{Manifest, PlanSource, PlanState};
use crate::options::{Durability, PlanChoice, Settings};
use crate::planted_race::PlantedRace;
use crate::reserve::Reserve;
use crate::young_directory::YoungDirectory;

/// Number of files of converted segments that are kept for the next ones.
const SPARE_LOG_FILES: usize = 1;

#[derive(Debug)]
pub(crate) struct Shared {
    pub storage: Arc<dyn Storage>,
    /// The second directory, which is a part of `storage`, if there is one.
    pub young: Option<YoungDirectory>,
    pub reclaimer: Arc<Reclaimer>,
    pub clock: Arc<dyn Clock>,
    pub settings: Settings,
    pub planted_bugs: PlantedBugs,
    pub log: Log,
    pub blobs: Arc<Blobs>,
    pub manifest: Mutex<Manifest>,
    pub keyspaces: RwLock<Vec<Arc<KeyspaceShared>>>,
    /// The lowest number of a keyspace that may be dormant and has not been tried in the background.
    pub waking_from: AtomicU32,
    /// Number of dormant keyspaces.
    pub dormant_keyspaces: AtomicUsize,
    pub next_file: AtomicU64,
    pub convert_lock: Mutex<()>,
    pub merge_lock: Mutex<()>,
    pub collect_lock: Mutex<()>,
    pub freeze_lock: Mutex<()>,
    /// Frozen segments that wait for conversion, old to young.
    pub frozen: Mutex<VecDeque<Arc<Segment>>>,
    /// The damage that an opening for reading found in the log and in the blob files that were being written.
    pub damage: Vec<Corruption>,
    pub recycler: Arc<crate::log::Recycler>,
    pub scheduler: Scheduler,
    /// All kinds of background work, in the order in which a single thread does them.
    pub jobs: &'static [Job],
    pub throttle: Throttle,
    pub merge_rate: RateLimit,
    pub disk_quota: DiskQuota,
    pub reserve: Arc<Reserve>,
    pub failures: Failures,
    pub counters: Counters,
    pub memory: MemoryControl,
    /// What lookups found in tables.
    pub rows: Rows,
    /// Items that scans have collected for their next calls.
    pub scan_cache: ScanCache,
    /// Bytes of items collected for merges and ingests in progress.
    pub merge_buffer_bytes: AtomicU64,
    /// Bytes of the buffers of merges and conversions in progress.
    pub buffer_bytes: AtomicU64,
    /// The latest time that was read, so that time does not go back.
    pub latest_ms: AtomicU64,
    /// Source of new keyspaces' hash keys.
    pub random: Mutex<u64>,
    /// The choice of the plan of new keyspaces, and of those that have the database's plan.
    pub plan_choice: Mutex<PlanChoice>,
    /// Decisions since the opening about plans that data had outgrown, the most recent last.
    pub plan_decisions: Mutex<Vec<PlanDecision>>,
    /// The plan of new keyspaces if none was given, once it has been made.
    pub auto_plan: OnceLock<LevelsPlan>,
    /// The gate through which `storage` is used until the database is closed.
    pub gate: Arc<ClosableStorage>,
    /// Present until the database is closed.
    pub directory_lock: Mutex<Option<Box<dyn DirectoryLock>>>,
    pub is_closed: AtomicBool,
    /// The end of the log when its garbage was last estimated.
    pub log_examined: Mutex<Position>,
}

impl Shared {
    pub fn all_keyspaces(&self) -> Vec<Arc<KeyspaceShared>> {
        self.keyspaces.read().expect("no panic while held").clone()
    }

    /// The plan that was given, or else the best one for what is known. The latter is made once, not for each keyspace.
    pub fn plan_for_new_keyspace(&self, hasher: &KeyHasher) -> Result<PlanState> {
        let choice = self.plan_choice.lock().expect("no panic while held").clone();
        if let PlanChoice::Fixed(plan) = choice {
            let plan = LevelsPlan::try_from(plan)?;
            if !hasher.is_semi_sorted() || check_plan(&plan, hasher).is_ok() {
                return Ok(PlanState::first(plan, PlanSource::Database));
            }
        }
        if hasher.is_semi_sorted() {
            return Ok(PlanState::first(LevelsPlan::semi_sorted(), PlanSource::Database));
        }
        if self.settings.drops_oldest {
            return Ok(PlanState::first(LevelsPlan::tiered(), PlanSource::Database));
        }
        let items_planned = items_expected(self.settings.expected_items);
        let auto = |plan: &LevelsPlan| PlanState {
            items_planned,
            ..PlanState::first(plan.clone(), PlanSource::Auto)
        };
        if let Some(plan) = self.auto_plan.get() {
            return Ok(auto(plan));
        }
        let device = device::read(&*self.storage)?.unwrap_or_default();
        let planned = self
            .settings
            .workload
            .unwrap_or_default()
            .demand(items_planned, self.settings.index_bytes_per_item, device)
            .and_then(|demand| plan_executable(&demand, &Space::default()))
            .map_err(|error| Error::Plan(PlanError(error.to_string())))?;
        let planned = LevelsPlan::try_from(planned.plan)?;
        Ok(auto(self.auto_plan.get_or_init(|| planned)))
    }

    /// Whether the database was opened for reading only.
    pub fn is_read_only(&self) -> bool {
        self.settings.read_only
    }

    /// Whether the manifest names this table file.
    pub fn is_file_named(&self, id: TableId) -> bool {
        self.manifest.lock().expect("no panic while held").state().names_file(id)
    }

    pub fn oldest_frozen(&self) -> Option<Arc<Segment>> {
        self.frozen.lock().expect("no panic while held").front().cloned()
    }

    pub fn frozen_count(&self) -> usize {
        self.frozen.lock().expect("no panic while held").len()
    }

    /// Declares that a segment's items are durable in tables, or needed no more: its file may be used again.
    ///
    /// A repair without a manifest must not find the segment if a younger one is gone that hid its items or removed
    /// them. So files are released old to young, each durably, before anything is done to the next.
    pub fn finish_segment(&self, segment: &Arc<Segment>) -> Result<()> {
        // Readers of the log find the segment here before they miss it among the frozen ones.
        let retained = segment.retained();
        let to_release = (retained.is_none() && !segment.is_chained()).then_some(&**segment);
        match retained {
            Some(retained) => self.log.retained.add(retained),
            None => self.log.retained.give_up(),
        }
        self.frozen.lock().expect("no panic while held").retain(|frozen| frozen.id != segment.id);
        self.log.release(segment);
        let released = self.recycler.release(to_release);
        self.remove_spare_log_files();
        self.update_throttle();
        released
    }

    /// Removes the files of converted segments except those to be kept. The file of a segment that is still being read
    /// follows later: writers at full speed alternate with one more file.
    pub fn remove_spare_log_files(&self) {
        if let Err(error) = self.recycler.release(None) {
            self.note_failure(error);
        }
        for file in self.recycler.surplus(SPARE_LOG_FILES) {
            // A file that cannot be removed now is used for another segment, or found at the next opening.
            let _ = self.storage.remove(file.name());
        }
    }

    /// Freezes the segment of this id if it is still the active one: a new segment replaces it, with a new log store
    /// for every keyspace.
    ///
    /// Waits for conversions first if there are too many frozen segments. On a full disk, `removals` may have one more.
    pub fn freeze(&self, segment_id: SegmentId, removals: bool) -> Result<()> {
        let Counters { freeze_waits, backlog_waits, .. } = &self.counters;
        if self.is_backlog_full(removals) {
            backlog_waits.during(&*self.clock, || self.wait_for_room(removals))?;
        }
        freeze_waits.during(&*self.clock, || self.freeze_now(segment_id))
    }

    /// Like [`Shared::freeze`], but never waits for conversions.
    pub fn freeze_now(&self, segment_id: SegmentId) -> Result<()> {
        let _only_one = self.freeze_lock.lock().expect("no panic while held");
        if self.log.active_segment().id != segment_id {
            return Ok(());
        }
        let keyspaces = self.all_keyspaces();
        let versions = versions(&keyspaces);
        let planted = self.planted_bugs.has(PlantedRace::FreezeWithoutShards);
        let guards = (!planted).then(|| lock_shards(&versions));
        self.switch(&keyspaces, &versions)?;
        drop(guards);
        self.frozen_one();
        Ok(())
    }

    /// Freezes the active segment and calls `body` with the new log store of the keyspace, before anything is written
    /// to it. The keyspace is not dropped meanwhile: the caller holds a lock that prevents it.
    pub fn freeze_for<R>(
        &self,
        keyspace: &KeyspaceShared,
        body: impl FnOnce(&LogStore) -> Result<R>,
    ) -> Result<R> {
        let _only_one = self.freeze_lock.lock().expect("no panic while held");
        let keyspaces = self.all_keyspaces();
        let versions = versions(&keyspaces);
        let guards = lock_shards(&versions);
        let (sealed, fresh) = self.seal(&keyspaces, &versions)?;
        let own = keyspaces.iter().position(|other| other.id == keyspace.id).expect("it is not dropped");
        let _no_writers: Vec<_> = fresh[own].shards().iter().map(|shard| shard.lock()).collect();
        self.publish(&keyspaces, &versions, &fresh, sealed);
        drop(guards);
        self.frozen_one();
        body(&fresh[own])
    }

    /// Seals the active segment and gives every keyspace a log store over the next one. The caller holds the freeze
    /// lock and the locks of all shards of the active stores, which are those of `versions`.
    pub(crate) fn switch(&self, keyspaces: &[Arc<KeyspaceShared>], versions: &[Arc<Version>]) -> Result<()> {
        let (sealed, fresh) = self.seal(keyspaces, versions)?;
        self.publish(keyspaces, versions, &fresh, sealed);
        Ok(())
    }

    /// Seals the active segment; returns it, and a log store over the next one for every keyspace.
    pub(crate) fn seal(
        &self,
        keyspaces: &[Arc<KeyspaceShared>],
        versions: &[Arc<Version>],
    ) -> Result<(Arc<Segment>, Vec<Arc<LogStore>>)> {
        let (sealed, next) = self.log.switch().map_err(|error| self.note_failure(error))?;
        let sizes = (self.settings.expected_items, self.memory.budget().log_entries_max);
        let now_ms = self.now_ms();
        let expected_items = self.settings.expected_items;
        let fresh = keyspaces.iter().zip(versions).map(|(keyspace, version)| {
            let begun = keyspace.begin_chain(version, expected_items);
            let version = begun.as_ref().unwrap_or(version);
            Arc::new(keyspace.next_log_store(version, next.clone(), sizes.0, sizes.1, now_ms))
        });
        Ok((sealed, fresh.collect()))
    }

    /// Puts the `fresh` log stores in front of those over the `sealed` segment.
    pub(crate) fn publish(
        &self,
        keyspaces: &[Arc<KeyspaceShared>],
        versions: &[Arc<Version>],
        fresh: &[Arc<LogStore>],
        sealed: Arc<Segment>,
    ) {
        for ((keyspace, version), store) in keyspaces.iter().zip(versions).zip(fresh) {
            version.active().close();
            if version.active().entries_max().is_raised() {
                sealed.set_grown();
            }
            keyspace.update_version(|version| {
                let mut next = version.clone();
                if version.active().len() == 0 {
                    // Nothing to convert: the closed store is empty, so readers do not need it.
                    next.log_stores.remove(0);
                }
                next.log_stores.insert(0, store.clone());
                next
            });
        }
        self.frozen.lock().expect("no panic while held").push_back(sealed);
    }

    pub(crate) fn frozen_one(&self) {
        self.counters.freezes.fetch_add(1, Ordering::Relaxed);
        self.all_keyspaces().iter().for_each(|keyspace| keyspace.inherited_pressure.pay_off());
        self.count_directories();
        self.update_throttle();
        self.scheduler.wake();
    }

    /// Makes a writer wait while too many frozen segments wait for conversion; the throttle makes that rare. Writers do
    /// not wait while the conversion lacks space, or fails again and again.
    pub(crate) fn wait_for_room(&self, removals: bool) -> Result<()> {
        while self.is_backlog_full(removals) {
            self.check_failure()?;
            let outcome = if self.settings.background {
                self.check_progress_of(JobThread::Convert.name())
                    .inspect(|()| self.scheduler.wait_for_progress())
            } else {
                JobThread::Convert.run(self).map(drop)
            };
            match outcome {
                // The log cannot continue, and all writers get this error: space is needed first.
                Err(error) if lacks_space(&error) => drop(self.log.set_full(&error)),
                outcome => outcome.map_err(|error| self.note_failure(error))?,
            }
        }
        Ok(())
    }

    /// Whether too many frozen segments wait for conversion. On a full disk, one more is allowed for `removals`, which
    /// must stay possible.
    pub(crate) fn is_backlog_full(&self, removals: bool) -> bool {
        let is_full = matches!(self.log.refusal(), Some(Refusal::Full { .. }));
        self.frozen_count() >= self.memory.budget().frozen_max + usize::from(is_full && removals)
    }

    /// Acknowledges a write that ends at `position`, as durably as the settings demand.
    #[inline]
    pub fn acknowledge(&self, position: Position) -> Result<()> {
        match self.settings.durability {
            Durability::Sync if !self.planted_bugs.acknowledge_before_sync => {
                self.log.waits.sync.during(&*self.clock, || self.log.commit_to(position))
            }
            Durability::Process if !self.planted_bugs.acknowledge_before_write => self.log.write_to(position),
            _ if !self.settings.background && self.log.take_flush_wanted() => self.log.write_behind(),
            _ => Ok(()),
        }
        .map_err(|error| self.note_failure(error))
    }

    pub fn update_throttle(&self) {
        if !self.settings.background {
            return;
        }
        let merges = pressure_of_jobs(self, Writers::All);
        self.throttle.update(self.conversions_due(), self.active_fill(), merges);
        self.throttle.update_large(pressure_of_jobs(self, Writers::OfLargeItems));
    }

    /// How full the active segment is, from 0 to 1: by bytes or by its fullest index, whichever is more.
    pub fn active_fill(&self) -> f64 {
        let active = self.log.active_segment();
        let by_bytes = active.published() as f64 / active.capacity() as f64;
        let by_entries = self.all_keyspaces().iter().map(|keyspace| keyspace.fill()).fold(0.0, f64::max);
        by_bytes.max(by_entries)
    }

    /// Milliseconds since 1970. Never decreases, even if the system's clock does.
    pub fn now_ms(&self) -> u64 {
        let now = u64::try_from(self.clock.unix().as_millis()).unwrap_or(u64::MAX);
        self.latest_ms.fetch_max(now, Ordering::Relaxed).max(now)
    }

    /// A random number for a hash key or a seed.
    pub fn next_random(&self) -> u64 {
        let mut state = self.random.lock().expect("no panic while held");
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        alluvium_base::checksum::checksum64(&state.to_le_bytes(), 0x616c_6c75_7669_756d)
    }
}

/// The keyspaces' versions. Their active log stores remain active while the freeze lock is held.
pub(crate) fn versions(keyspaces: &[Arc<KeyspaceShared>]) -> Vec<Arc<Version>> {
    keyspaces.iter().map(|keyspace| keyspace.version.load_full()).collect()
}

/// Excludes all writers.
pub(crate) fn lock_shards(versions: &[Arc<Version>]) -> Vec<MutexGuard<'_, ()>> {
    let stores = versions.iter().map(|version| version.active());
    stores.flat_map(|store| store.shards().iter().map(|shard| shard.lock())).collect()
}

/// A keyspace's first version over the log's active segment.
pub(crate) fn first_version(plan: PlanState, store: LogStore) -> Version {
    let log_stores = vec![Arc::new(store)];
    Version { log_stores, chain: None, body: Levels::new(plan), blobs: Arc::default(), epoch: 0 }
}
