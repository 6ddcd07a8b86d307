//! [`Keyspace`]: a named set of items.

use std::sync::Arc;

use alluvium_base::{KeyHash, KeyHasher, KeyspaceId};
use alluvium_io::sync::ArcSwap;
use alluvium_io::sync::Mutex;
use alluvium_io::sync::atomic::{AtomicBool, Ordering};
use alluvium_model::LevelsPlan;

use super::counted::Counted;
use super::log_growth::LogGrowth;
use super::pin::Pins;
use super::pinned_version::{PinnedVersion, PinnedVersions};
use super::table_lookups::TableLookups;
use super::update_barriers::UpdateBarriers;
use super::{InheritedPressure, LatestStanding};
use crate::chained::Chain;
use crate::error::{Error, Result};
use crate::level::Version;
use crate::log::{EntryBound, LogStore, Segment, Slots};
use crate::manifest::PlanState;

/// The state that all handles of a keyspace share.
#[derive(Debug)]
pub(crate) struct KeyspaceShared {
    pub id: KeyspaceId,
    pub name: String,
    pub hasher: KeyHasher,
    pub version: ArcSwap<Version>,
    /// Held while a new version is derived from the last.
    publish: Mutex<()>,
    /// Held by read-modify-writes of this crate, one stripe per key hash, so that they do not interfere. Never held
    /// while code of users runs, which may update other keys.
    pub update_stripes: Box<[Mutex<()>]>,
    /// Ranges with changes in progress that bypass the log.
    pub update_barriers: UpdateBarriers,
    /// The last exact count.
    pub counted: Mutex<Option<Counted>>,
    /// Versions in use by iterators.
    pub pins: Pins,
    /// Whether every write looks up the item that it replaces, because the mean item has many bytes in blob files.
    pub hides_large: AtomicBool,
    pub standing: LatestStanding,
    pub table_lookups: TableLookups,
    /// The backlog since a change of plan for which writers are not slowed.
    pub inherited_pressure: InheritedPressure,
    pub log_growth: LogGrowth,
    /// Versions in use by snapshots.
    pub pinned: PinnedVersions,
    /// Set before the active log store closes for good.
    dropped: AtomicBool,
    /// Whether the tables are not open yet; see [`super::dormant`].
    pub(crate) dormant: AtomicBool,
    /// Held while the tables are opened.
    pub(crate) waking: Mutex<()>,
    closed: AtomicBool,
    /// Whether the keyspace was dropped or closed. Readers check this first.
    is_gone: AtomicBool,
}

/// Minimum bytes of a large item whose write looks up what it replaces. This costs a page read, but collection then
/// knows of the garbage long before a merge finds it. Also the mean of live blob bytes per item from which on all
/// writes of a keyspace do so.
pub(crate) const LOOKUP_BYTES_MIN: u64 = 16 << 10;

const UPDATE_STRIPES: usize = 64;
impl KeyspaceShared {
    pub fn new(id: KeyspaceId, name: String, hasher: KeyHasher, version: Version) -> Self {
        Self {
            id,
            name,
            hasher,
            version: ArcSwap::from_pointee(version),
            publish: Mutex::new(()),
            update_stripes: (0..UPDATE_STRIPES).map(|_| Mutex::new(())).collect(),
            update_barriers: UpdateBarriers::default(),
            counted: Mutex::default(),
            pins: Pins::default(),
            hides_large: AtomicBool::new(false),
            standing: LatestStanding::default(),
            table_lookups: TableLookups::default(),
            inherited_pressure: InheritedPressure::default(),
            log_growth: LogGrowth::default(),
            pinned: PinnedVersions::default(),
            dropped: AtomicBool::new(false),
            dormant: AtomicBool::new(false),
            waking: Mutex::new(()),
            closed: AtomicBool::new(false),
            is_gone: AtomicBool::new(false),
        }
    }

    /// The lock that serializes updates of a key.
    pub fn update_stripe(&self, hash: KeyHash) -> &Mutex<()> {
        &self.update_stripes[hash.low() as usize % self.update_stripes.len()]
    }

    /// Refuses operations that begin after the keyspace was dropped or its database closed.
    #[inline]
    pub fn check_present(&self) -> Result<()> {
        if self.is_gone.load(Ordering::Acquire) { self.tell_gone() } else { Ok(()) }
    }

    #[cold]
    fn tell_gone(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        match self.dropped.load(Ordering::Acquire) {
            true => Err(Error::KeyspaceDropped { name: self.name.clone() }),
            false => Ok(()),
        }
    }

    /// Makes every handle refuse its work: the keyspace was dropped.
    pub fn set_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
        self.is_gone.store(true, Ordering::Release);
    }

    /// Makes every handle refuse its work: the database was closed.
    pub fn set_closed(&self) {
        self.closed.store(true, Ordering::Release);
        self.is_gone.store(true, Ordering::Release);
    }

    /// The plan for which new tables are made.
    pub fn plan_state(&self) -> Arc<PlanState> {
        self.version.load().body.plan_state().clone()
    }

    /// Replaces the version by the result of `change`.
    pub fn update_version(&self, change: impl Fn(&Version) -> Version) {
        let _only_one = self.publish.lock().expect("no panic while held");
        let next = change(&self.version.load());
        self.weigh_lookups(&next);
        self.version.store(Arc::new(next));
    }

    /// Decides, after a change of the tables, whether writes look up what they replace.
    fn weigh_lookups(&self, version: &Version) {
        let live = version.blobs.live_bytes();
        let is_worth = live > 0 && live / version.body.items().max(1) >= LOOKUP_BYTES_MIN;
        self.hides_large.store(is_worth, Ordering::Relaxed);
    }

    /// Calls `body` while no thread writes to the keyspace.
    pub fn without_writers<R>(&self, body: impl FnOnce() -> R) -> R {
        loop {
            let version = self.version.load_full();
            let store = version.active();
            let _no_writers: Vec<_> = store.shards().iter().map(|shard| shard.lock()).collect();
            // A closed store has a successor, which takes writes.
            if !store.is_closed() || self.check_present().is_err() {
                return body();
            }
        }
    }

    /// Replaces the version, and those in use by snapshots, by versions with the same items.
    pub fn update_all_versions(&self, change: impl Fn(&Version) -> Version) {
        let _only_one = self.publish.lock().expect("no panic while held");
        let next = change(&self.version.load());
        self.weigh_lookups(&next);
        self.version.store(Arc::new(next));
        for pinned in self.pinned.in_use() {
            pinned.replace(&change);
        }
    }

    /// Keeps the current version, without its active log store, for a snapshot. The caller ensures that the active
    /// store has no items that belong to the snapshot.
    pub fn pin_frozen(&self) -> Arc<PinnedVersion> {
        // Takes the lock, so that no conversion happens between the loading of the version and its registration.
        let _only_one = self.publish.lock().expect("no panic while held");
        let mut version = Version::clone(&self.version.load());
        version.log_stores.remove(0);
        // Nobody writes to the keyspace, so all heads are of records that the snapshot has.
        version.chain = version.chain.map(|chain| Arc::new(chain.at_present()));
        self.pinned.register(version)
    }

    /// The current version, if neither a snapshot nor an iterator uses the log store over `segment`. Those that begin
    /// later show what this version shows, or what is written later: the caller holds the freeze lock, so no snapshot
    /// is between its freeze and its registration.
    pub fn only_version_with(&self, segment: &Segment) -> Option<Arc<Version>> {
        // Snapshots register their versions under this lock.
        let _only_one = self.publish.lock().expect("no panic while held");
        let has_it =
            |version: Arc<Version>| version.log_stores.iter().any(|store| store.segment.id == segment.id);
        let by_snapshot = self.pinned.in_use().iter().any(|pinned| has_it(pinned.load()));
        let by_iterator = || self.pins.held().iter().any(|pin| has_it(pin.version()));
        (!by_snapshot && !by_iterator()).then(|| self.version.load_full())
    }

    /// The log store over a frozen segment.
    pub fn frozen_store(&self, segment: &Segment) -> Option<Arc<LogStore>> {
        let version = self.version.load();
        version.log_stores.iter().find(|store| store.segment.id == segment.id && store.is_closed()).cloned()
    }

    /// Gives the keyspace the chains that its plan demands, if it has none, and returns the version with them. Nobody
    /// writes to the keyspace.
    pub fn begin_chain(&self, version: &Version, expected_items: u64) -> Option<Arc<Version>> {
        let spec = version.body.plan().log.chained.filter(|_| version.chain.is_none())?;
        let (chain, _) = Chain::new(self.id, spec, expected_items.max(version.items()));
        let chain = Arc::new(chain);
        self.update_version(|version| Version { chain: Some(chain.clone()), ..version.clone() });
        Some(self.version.load_full())
    }

    /// An empty log store over `segment`, with as many shards as the items present, or those expected, require, and
    /// room for at most `entries_max` items in all.
    pub fn next_log_store(
        &self,
        version: &Version,
        segment: Arc<Segment>,
        expected_items: u64,
        entries_max: u64,
        now_ms: u64,
    ) -> LogStore {
        if let Some((chain, oldest)) = version.oldest_of_chains().filter(|_| version.goes_on()) {
            chain.directory.widen_if_needed(oldest, segment.id);
            let slots = match version.active().linked() {
                Some(linked) => chain.directory.slots_wanted(linked.slots.number, now_ms),
                None => chain.directory.slots(),
            };
            return linked_store(chain, self.hasher, segment, slots, entries_max);
        }
        let hint = version.log_stores.first().map_or(0, |store| {
            let per_shard = store.shard_len_max();
            per_shard + per_shard / 16
        });
        let plan = version.body.plan();
        let items = plan.items_sharded(version.items(), expected_items);
        let may_grow = self.log_growth.begin_store();
        new_log_store(plan, self.hasher, segment, items, hint, (entries_max, may_grow))
    }

    /// Number of leading hash bits by which the store's items are split into sections of the run that it becomes. 0 in
    /// a semi-sorted keyspace: a part could have all items or none, and sorted runs are merged while they are read, so
    /// their size does not matter.
    pub fn run_shard_bits(&self, store: &LogStore) -> u32 {
        if self.hasher.is_semi_sorted() { 0 } else { store.shard_bits() }
    }

    /// How full the fullest shard of the active log store is, 0 to 1.
    pub fn fill(&self) -> f64 {
        let version = self.version.load();
        let store = version.active();
        store.shard_len_max() as f64 / store.entries_max().now() as f64
    }
}

/// Minimum entries of a shard under a bound of all entries.
const SHARD_ENTRIES_MIN: u64 = 64;

/// Maximum entries of all shards together to which a log store grows where items live for a short time.
const GROWN_ENTRIES_MAX: u64 = 1 << 18;
/// The same for each shard, in multiples of the plan's bound.
const GROWTH_MAX: u64 = 16;

/// An empty log store for a chained keyspace, whose regions have this number of slots. It is full when chains would
/// become too long for the slots, so that there are more of them from the next store on.
pub(crate) fn linked_store(
    chain: &Chain,
    hasher: KeyHasher,
    segment: Arc<Segment>,
    slots: u64,
    entries_max: u64,
) -> LogStore {
    let plan = LevelsPlan::from(chain.directory.spec);
    let records = chain.directory.records_max(slots);
    let shards = plan.sharding.shards(records);
    let limit = (entries_max.min(records) / shards).max(SHARD_ENTRIES_MIN);
    let entries = plan.sharding.log_entries(records).min(limit) as usize;
    let slots = Slots { number: slots, are_two: chain.directory.has_filters() };
    LogStore::new(segment, hasher, shards.ilog2(), EntryBound::new(entries, entries), 0).with_links(slots)
}

/// An empty log store for a keyspace with this plan and `items` items, with at most about `entries_max` entries in all:
/// as many as the plan says or, if it `may_grow` and items live for a short time, more.
pub(crate) fn new_log_store(
    plan: &LevelsPlan,
    hasher: KeyHasher,
    segment: Arc<Segment>,
    items: u64,
    entries_hint: usize,
    (entries_max, may_grow): (u64, bool),
) -> LogStore {
    let sharding = &plan.sharding;
    let shards = sharding.shards(items);
    // The list of prefixes takes more memory than the index, and twice as much for a moment.
    let entries_max = if hasher.is_semi_sorted() { entries_max / 3 } else { entries_max };
    let limit = (entries_max / shards).max(SHARD_ENTRIES_MIN);
    let planned = sharding.log_entries(items).min(limit);
    let grown = (GROWN_ENTRIES_MAX / shards).min(GROWTH_MAX * u64::from(sharding.log_entries_per_shard));
    let max = if may_grow { grown.min(limit) } else { planned };
    let entries_max = EntryBound::new(planned as usize, max as usize);
    LogStore::new(segment, hasher, shards.ilog2(), entries_max, entries_hint)
}
