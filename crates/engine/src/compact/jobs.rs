//! All kinds of background work in one list, used by threads, `wait_idle`, `run_background_job` and `compact`.

use super::collect::{collect, collect_is_due, garbage_pressure};
use super::drain::{drain, drain_is_due};
use super::relocate::{chains_are_due, chains_pressure, collect_chains};
use super::rewrite_chains::{long_chains_are_due, rewrite_all_chains, rewrite_long_chain};
use super::save_directories::{directories_are_due, save_directories, save_unsaved_directories};
use super::{
    convert, drop_expired, drop_oldest, follow_plan, give_back_garbage, is_index_due, is_moving,
    make_next_index, merge, pick, pick_any, pick_garbage, pressure, replan, replan_is_due,
};
use crate::core::{Job, JobThread, Shared, Writers};
use crate::error::Result;

/// All jobs, in the order in which a single thread does them.
pub(crate) const JOBS: &[Job] = &[
    Job {
        thread: JobThread::Convert,
        is_due: |shared| shared.conversions_due() > 0,
        run: |shared| if shared.conversions_due() > 0 { convert(shared) } else { Ok(false) },
        run_undue: convert,
        pressure: none,
        slows: Writers::All,
    },
    Job {
        thread: JobThread::Merge,
        is_due: Shared::can_drop_oldest,
        run: drop_oldest,
        run_undue: nothing,
        pressure: Shared::dropping_pressure,
        slows: Writers::All,
    },
    Job {
        thread: JobThread::Merge,
        is_due: replan_is_due,
        run: replan,
        run_undue: nothing,
        pressure: none,
        slows: Writers::All,
    },
    Job {
        thread: JobThread::Merge,
        is_due: |shared| pick(shared).is_some(),
        run: |shared| merge_place(shared, pick(shared)),
        run_undue: |shared| merge_place(shared, pick_any(shared)),
        pressure,
        slows: Writers::All,
    },
    Job {
        thread: JobThread::Merge,
        is_due: |shared| pick_garbage(shared).is_some(),
        run: give_back_garbage,
        run_undue: |shared| drop_expired(shared).map(|()| false),
        pressure: none,
        slows: Writers::All,
    },
    Job {
        thread: JobThread::Merge,
        is_due: drain_is_due,
        run: drain,
        run_undue: drain,
        pressure: none,
        slows: Writers::All,
    },
    Job {
        thread: JobThread::Merge,
        is_due: is_moving,
        run: follow_plan,
        run_undue: follow_plan,
        pressure: none,
        slows: Writers::All,
    },
    Job {
        thread: JobThread::Merge,
        is_due: is_index_due,
        run: make_next_index,
        run_undue: make_next_index,
        pressure: none,
        slows: Writers::All,
    },
    Job {
        thread: JobThread::Collect,
        is_due: long_chains_are_due,
        run: rewrite_long_chain,
        run_undue: |shared| rewrite_all_chains(shared).map(|()| false),
        pressure: none,
        slows: Writers::All,
    },
    Job {
        thread: JobThread::Collect,
        is_due: chains_are_due,
        run: collect_chains,
        run_undue: collect_chains,
        pressure: chains_pressure,
        slows: Writers::All,
    },
    Job {
        thread: JobThread::Collect,
        is_due: collect_is_due,
        run: collect,
        run_undue: collect,
        pressure: garbage_pressure,
        slows: Writers::OfLargeItems,
    },
    Job {
        thread: JobThread::Collect,
        is_due: directories_are_due,
        run: save_directories,
        run_undue: save_unsaved_directories,
        pressure: none,
        slows: Writers::All,
    },
    Job {
        thread: JobThread::Merge,
        // A caller that waits for other work needs the tables open, and has opened them.
        is_due: |_| false,
        run: |shared| Ok(shared.open_next_tables()),
        run_undue: nothing,
        pressure: none,
        slows: Writers::All,
    },
];

fn merge_place(shared: &Shared, due: Option<super::due::Due>) -> Result<bool> {
    due.map_or(Ok(false), |due| merge(shared, &due).map(|()| true))
}

fn nothing(_: &Shared) -> Result<bool> {
    Ok(false)
}

fn none(_: &Shared) -> f64 {
    0.0
}
