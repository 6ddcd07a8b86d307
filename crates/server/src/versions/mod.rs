//! [`VersionsStore`]: serves one of several built versions, which are side by side in a directory.

mod database;
mod loaded;
mod pinned;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use alluvium::{Db, Version, VersionState, keep_versions, versions};
use alluvium_io::sync::ArcSwap;

use crate::MetricSink;
use crate::metrics::Metric;
use crate::store::{
    Database, DatabaseNumber, Databases, Report, ReportValue, ServedVersion, Store, StoreError, StoreHealth,
    Versions,
};
use database::{Source, VersionDatabase};
use loaded::Loaded;
use pinned::Pinned;

/// Opens a version's directory for reading only.
pub type OpenVersion = Box<dyn Fn(&Path) -> alluvium::Result<Db> + Send + Sync>;

/// Where versions are, and how they are served.
pub struct VersionsSettings {
    /// The directory that has a directory for each version, whose name is its number: `0001`, `0002`, ….
    pub root: PathBuf,
    /// Number of youngest complete versions that are kept; older ones are removed after a swap, except the one that is
    /// served and the one before it. `None` keeps all.
    pub keep: Option<usize>,
    /// Whether all files of a version are read and checked before it is served. Costs a read of everything.
    pub checks: bool,
    /// Opens a version for reading only. Up to three versions are open at a time.
    pub open: OpenVersion,
}

/// Serves one of several built versions for reading. A swap replaces it while clients are served: each command sees one
/// version, and commands in progress keep the one with which they began.
///
/// A version must have the same hash key and number of shards as the one that it replaces, since programs route keys by
/// them.
pub struct VersionsStore {
    settings: VersionsSettings,
    current: Arc<ArcSwap<Loaded>>,
    databases: [VersionDatabase; DatabaseNumber::COUNT],
    /// The version before, still open. Locked while versions change.
    previous: Mutex<Option<Arc<Loaded>>>,
    swaps: AtomicU64,
    refusals: AtomicU64,
}

impl VersionsStore {
    /// Serves the youngest version that is complete and fits. Ones that do not fit are logged.
    ///
    /// # Errors
    /// If there is none: why the youngest does not fit.
    pub fn open(settings: VersionsSettings) -> Result<Self, StoreError> {
        let mut refusal = None;
        let found = versions(&settings.root)?;
        for version in found.iter().rev().filter(|version| is_candidate(version)) {
            match Loaded::open(version, &settings, None) {
                Ok(loaded) => return Ok(Self::of(settings, loaded)),
                Err(error) => {
                    tracing::error!(version = version.number, %error, "a version does not fit");
                    refusal.get_or_insert(error);
                }
            }
        }
        let none = || format!("{} has no complete version", settings.root.display()).into();
        Err(refusal.unwrap_or_else(none))
    }

    fn of(settings: VersionsSettings, loaded: Loaded) -> Self {
        let current = Arc::new(ArcSwap::from_pointee(loaded));
        let mut numbers = DatabaseNumber::all();
        let databases = std::array::from_fn(|_| {
            let number = numbers.next().expect("one for each database");
            VersionDatabase { number, source: Source::Current(Arc::clone(&current)) }
        });
        let (swaps, refusals) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { settings, current, databases, previous: Mutex::default(), swaps, refusals }
    }

    fn previous(&self) -> MutexGuard<'_, Option<Arc<Loaded>>> {
        self.previous.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The version to be served, opened and checked.
    fn load(&self, number: Option<u64>, present: &Arc<Loaded>) -> Result<Loaded, StoreError> {
        let found = versions(&self.settings.root)?;
        let wanted = match number {
            Some(number) => found.iter().find(|version| version.number == number),
            None => found.iter().rev().find(|version| version.is_complete()),
        };
        let root = self.settings.root.display();
        let version = wanted.ok_or_else(|| match number {
            Some(number) => format!("{root} has no version {number}"),
            None => format!("{root} has no complete version"),
        })?;
        Loaded::open(version, &self.settings, Some(present))
    }

    /// Removes versions that are older than those to be kept. A failure is only logged: it changes nothing that is
    /// served, and the next swap tries again.
    fn remove_old(&self, used: &[u64]) -> Vec<u64> {
        let Some(keep) = self.settings.keep else { return Vec::new() };
        keep_versions(&self.settings.root, keep, used).unwrap_or_else(|error| {
            tracing::warn!(%error, "old versions were not removed");
            Vec::new()
        })
    }
}

/// Whether there is something to open, or to complain about.
fn is_candidate(version: &Version) -> bool {
    version.is_complete() || matches!(version.state, VersionState::Damaged { .. })
}

fn entry(name: &str, value: impl Into<ReportValue>) -> (String, ReportValue) {
    (name.to_owned(), value.into())
}

impl Versions for VersionsStore {
    fn served(&self) -> ServedVersion {
        let previous = self.previous().as_ref().map(|previous| previous.number);
        let loaded = self.current.load();
        ServedVersion {
            number: loaded.number,
            job: loaded.build.as_ref().map(|build| build.job.clone()),
            shards: loaded.build.as_ref().map(|build| build.shards),
            previous,
            swaps: self.swaps.load(Ordering::Relaxed),
            refusals: self.refusals.load(Ordering::Relaxed),
        }
    }

    fn list(&self) -> Result<Report, StoreError> {
        let served = self.served();
        let line = |Version { number, state, .. }: &Version| {
            let what = match state {
                VersionState::Build(build) => format!(
                    "build of job {:?}: {} shards, {} items, hash key {}",
                    build.job, build.shards, build.items, build.hash_key_fingerprint
                ),
                VersionState::Database => "database".to_owned(),
                VersionState::Damaged { reason } => format!("damaged: {reason}"),
                _ => "incomplete".to_owned(),
            };
            let mark = if *number == served.number { ", served" } else { "" };
            format!("{number:04} {what}{mark}")
        };
        let lines: Vec<String> = versions(&self.settings.root)?.iter().map(line).collect();
        Ok(vec![entry("served", served.number), entry("previous", served.previous), entry("versions", lines)])
    }

    fn swap(&self, number: Option<u64>) -> Result<Report, StoreError> {
        let mut previous = self.previous();
        let present = self.current.load_full();
        let loaded = match self.load(number, &present) {
            Ok(loaded) => loaded,
            Err(error) => {
                self.refusals.fetch_add(1, Ordering::Relaxed);
                tracing::error!(served = present.number, %error, "a version does not fit");
                return Err(error);
            }
        };
        let (from, to) = (present.number, loaded.number);
        self.current.store(Arc::new(loaded));
        *previous = Some(present);
        drop(previous);
        self.swaps.fetch_add(1, Ordering::Relaxed);
        tracing::info!(from, to, "another version is served");
        let removed = self.remove_old(&[from, to]);
        let removed: Vec<String> = removed.iter().map(|number| format!("{number:04}")).collect();
        Ok(vec![entry("served", to), entry("previous", from), entry("removed", removed)])
    }

    fn roll_back(&self) -> Result<Report, StoreError> {
        let mut previous = self.previous();
        let back = previous.take().ok_or("no version was served before this one")?;
        let (to, from) = (back.number, self.current.load().number);
        *previous = Some(self.current.swap(back));
        drop(previous);
        self.swaps.fetch_add(1, Ordering::Relaxed);
        tracing::info!(from, to, "the version before is served again");
        Ok(vec![entry("served", to), entry("previous", from)])
    }
}

impl Databases for VersionsStore {
    fn database(&self, number: DatabaseNumber) -> &dyn Database {
        &self.databases[number.position()]
    }

    /// All of it sees one version.
    fn atomically(
        &self,
        body: &mut dyn FnMut(&dyn Databases) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        body(&Pinned::new(self.current.load_full()))
    }
}

impl Store for VersionsStore {
    fn open(&self, number: DatabaseNumber) -> Result<(), StoreError> {
        let loaded = self.current.load();
        match loaded.database(number) {
            Some(_) => Ok(()),
            None => Err(format!("version {} has no database {number}", loaded.number).into()),
        }
    }

    fn prefetches(&self) -> bool {
        true
    }

    fn opened(&self) -> Vec<DatabaseNumber> {
        self.current.load().store.opened()
    }

    fn health(&self) -> StoreHealth {
        StoreHealth::ReadOnly
    }

    fn resume(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn observe(&self, sink: &mut dyn MetricSink) {
        let served = self.served();
        let number = |sink: &mut dyn MetricSink, metric, value: u64| sink.number(metric, &[], value as f64);
        number(sink, Metric::gauge("version", "Number of the version that is served."), served.number);
        let swaps = Metric::counter("version_swaps", "Swaps and rollbacks of versions.");
        number(sink, swaps, served.swaps);
        let refusals =
            Metric::counter("version_refusals", "Swaps that were refused because a version did not fit.");
        number(sink, refusals, served.refusals);
        self.current.load().store.observe(sink);
    }

    fn is_stored(&self) -> bool {
        true
    }

    fn back_up(&self, root: &Path, kept: Option<usize>) -> Result<Report, StoreError> {
        self.current.load_full().store.back_up(root, kept)
    }

    fn verify(&self) -> Result<Report, StoreError> {
        self.current.load_full().store.verify()
    }

    fn keyspace_figures(&self, keyspace: &str) -> Result<Report, StoreError> {
        self.current.load_full().store.keyspace_figures(keyspace)
    }

    fn plan(&self, keyspace: &str) -> Result<Report, StoreError> {
        self.current.load_full().store.plan(keyspace)
    }

    fn versions(&self) -> Option<&dyn Versions> {
        Some(self)
    }

    fn memory_bytes(&self) -> u64 {
        let previous = self.previous().as_ref().map_or(0, |previous| previous.store.memory_bytes());
        self.current.load().store.memory_bytes() + previous
    }

    fn memory_bytes_max(&self) -> u64 {
        0
    }
}
