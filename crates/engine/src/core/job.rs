//! [`Job`]: a kind of background work.

use alluvium_io::sync::Mutex;

use super::shared::Shared;
use crate::error::Result;

/// A kind of background work. [`Shared::jobs`] lists all of them in the order in which a single thread does them.
#[derive(Debug)]
pub(crate) struct Job {
    pub thread: JobThread,
    /// Whether [`Job::run`] would do something. Reads nothing from the device.
    pub is_due: fn(&Shared) -> bool,
    /// Does the most urgent piece of work; returns `false` if none is due.
    pub run: fn(&Shared) -> Result<bool>,
    /// How far the work is behind; above 1, writers are slowed.
    pub pressure: fn(&Shared) -> f64,
    /// Which writers are slowed.
    pub slows: Writers,
    /// Does a piece of work that [`crate::Db::compact`] requests, whether due or not; returns whether there may be
    /// another.
    pub run_undue: fn(&Shared) -> Result<bool>,
}

/// Writers that are slowed while a kind of background work is behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writers {
    All,
    /// Those of items in blob files.
    OfLargeItems,
}

/// A thread for background work. Its work is done one piece at a time, by that thread or by others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum JobThread {
    Convert,
    Merge,
    Collect,
}

impl JobThread {
    pub const ALL: [Self; 3] = [Self::Convert, Self::Merge, Self::Collect];

    /// The thread's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Convert => "alluvium-convert",
            Self::Merge => "alluvium-merge",
            Self::Collect => "alluvium-collect",
        }
    }

    /// The lock held during a piece of the thread's work.
    pub fn lock(self, shared: &Shared) -> &Mutex<()> {
        match self {
            Self::Convert => &shared.convert_lock,
            Self::Merge => &shared.merge_lock,
            Self::Collect => &shared.collect_lock,
        }
    }

    /// Does one piece of the thread's work; returns `false` if none is due.
    pub fn run(self, shared: &Shared) -> Result<bool> {
        run_first(shared, shared.jobs.iter().filter(|job| job.thread == self))
    }
}

/// Does one piece of any work; returns `false` if none is due.
pub(crate) fn run_one(shared: &Shared) -> Result<bool> {
    run_first(shared, shared.jobs.iter())
}

/// Does all work that [`crate::Db::compact`] requests.
pub(crate) fn run_all_undue(shared: &Shared) -> Result<()> {
    for job in shared.jobs {
        while (job.run_undue)(shared)? {}
    }
    Ok(())
}

/// Whether a piece of work is in progress or due. All locks are held while it looks for work that is due: a piece that
/// began in between would be neither in progress nor due any more.
pub(crate) fn is_busy(shared: &Shared) -> bool {
    let locks = JobThread::ALL.iter().map(|thread| thread.lock(shared).try_lock().ok());
    let locks: Option<Vec<_>> = locks.collect();
    locks.is_none_or(|_locks| shared.jobs.iter().any(|job| (job.is_due)(shared)))
}

fn run_first<'a>(shared: &Shared, mut jobs: impl Iterator<Item = &'a Job>) -> Result<bool> {
    // The first job that did something, or that failed.
    let outcome = jobs.find_map(|job| {
        (job.run)(shared).map_or_else(|error| Some(Err(error)), |ran| ran.then_some(Ok(true)))
    });
    if outcome.is_some() {
        shared.share_with_rows();
    }
    outcome.unwrap_or(Ok(false))
}

/// How far the work is behind that slows these writers; above 1, they are slowed.
pub(crate) fn pressure_of_jobs(shared: &Shared, slows: Writers) -> f64 {
    shared.jobs.iter().filter(|job| job.slows == slows).map(|job| (job.pressure)(shared)).fold(0.0, f64::max)
}
