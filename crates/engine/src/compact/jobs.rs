//! All kinds of background work in one list, used by threads, `wait_idle`, `run_background_job` and `compact`.

use alluvium_io::sync::Mutex;

use super::{
    convert, drop_expired, follow_plan, give_back_garbage, is_moving, merge, pick, pick_any, pick_garbage,
};
use crate::blob::collect::{collect, collect_is_due};
use crate::db::{Shared, is_outgrown, replan};
use crate::error::Result;

/// A kind of background work.
#[derive(Debug)]
pub(crate) struct Job {
    pub thread: JobThread,
    /// Whether [`Job::run`] would do something. Reads nothing from the device.
    pub is_due: fn(&Shared) -> bool,
    /// Does the most urgent piece of work; returns `false` if none is due.
    pub run: fn(&Shared) -> Result<bool>,
    /// Does a piece of work that [`crate::Db::compact`] requests, whether due or not; returns whether there may be
    /// another.
    pub run_undue: fn(&Shared) -> Result<bool>,
}

/// A thread for background work. Its work is done one piece at a time, by that thread or by others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum JobThread {
    Convert,
    Merge,
    Collect,
}

/// All jobs, in the order in which a single thread does them.
pub(crate) const JOBS: [Job; 7] = [
    Job {
        thread: JobThread::Convert,
        is_due: |shared| shared.frozen_count() > 0,
        run: convert,
        run_undue: convert,
    },
    Job { thread: JobThread::Merge, is_due: is_outgrown, run: replan, run_undue: nothing },
    Job {
        thread: JobThread::Merge,
        is_due: |shared| pick(shared).is_some(),
        run: |shared| merge_place(shared, pick(shared)),
        run_undue: |shared| merge_place(shared, pick_any(shared)),
    },
    Job {
        thread: JobThread::Merge,
        is_due: |shared| pick_garbage(shared).is_some(),
        run: give_back_garbage,
        run_undue: |shared| drop_expired(shared).map(|()| false),
    },
    Job { thread: JobThread::Merge, is_due: is_moving, run: follow_plan, run_undue: follow_plan },
    Job { thread: JobThread::Collect, is_due: collect_is_due, run: collect, run_undue: collect },
    Job {
        thread: JobThread::Merge,
        // A caller that waits for other work needs the tables open, and has opened them.
        is_due: |_| false,
        run: |shared| Ok(shared.open_next_tables()),
        run_undue: nothing,
    },
];

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
        run_first(shared, JOBS.iter().filter(|job| job.thread == self))
    }
}

/// Does one piece of any work; returns `false` if none is due.
pub(crate) fn run_one(shared: &Shared) -> Result<bool> {
    run_first(shared, JOBS.iter())
}

/// Does all work that [`crate::Db::compact`] requests.
pub(crate) fn run_all_undue(shared: &Shared) -> Result<()> {
    for job in &JOBS {
        while (job.run_undue)(shared)? {}
    }
    Ok(())
}

/// Whether a piece of work is in progress or due.
pub(crate) fn is_busy(shared: &Shared) -> bool {
    let is_held = |thread: &JobThread| thread.lock(shared).try_lock().is_err();
    JobThread::ALL.iter().any(is_held) || JOBS.iter().any(|job| (job.is_due)(shared))
}

fn run_first<'a>(shared: &Shared, mut jobs: impl Iterator<Item = &'a Job>) -> Result<bool> {
    // The first job that did something, or that failed.
    jobs.find_map(|job| {
        (job.run)(shared).map_or_else(|error| Some(Err(error)), |ran| ran.then_some(Ok(true)))
    })
    .unwrap_or(Ok(false))
}

fn merge_place(shared: &Shared, due: Option<super::due::Due>) -> Result<bool> {
    due.map_or(Ok(false), |due| merge(shared, &due).map(|()| true))
}

fn nothing(_: &Shared) -> Result<bool> {
    Ok(false)
}
