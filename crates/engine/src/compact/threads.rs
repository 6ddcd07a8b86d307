//! Background threads: one writes the log behind and syncs it at intervals, one converts, one merges, one empties blob
//! files, one gives space back. All except the first yield to readers and writers where processors are few (decision
//! 0040).

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::core::{JobThread, Shared, pause_after};
use crate::error::Result;
use crate::log::Refusal;
use crate::options::Durability;

/// How often threads check for work when they are not woken.
const IDLE: Duration = Duration::from_millis(20);

/// How often they check once nothing was appended to the log for [`QUIET_FOR`]: an idle database should not keep a
/// processor from sleeping. A freeze of the log, a table and a file to remove wake the threads that they concern.
const IDLE_WHILE_QUIET: Duration = Duration::from_millis(500);
/// The same for the thread that keeps the log. A burst of writes after a pause has to do without it for this long.
const LOG_PAUSE_WHILE_QUIET: Duration = Duration::from_millis(125);
const QUIET_FOR: Duration = Duration::from_secs(2);

/// A log that nothing was appended to for this long gives space back.
const SPACE_KEPT_FOR: Duration = Duration::from_secs(1);

/// The work of a background thread.
#[derive(Clone, Copy)]
struct Duty {
    name: &'static str,
    /// Does a piece of work; returns whether there may be more.
    body: fn(&Shared) -> Result<bool>,
    /// How often it checks for work when it is not woken.
    pause: Duration,
    /// The same while nothing is written.
    pause_while_quiet: Duration,
    without_space: WithoutSpace,
}

/// What a background thread does while space is lacking.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WithoutSpace {
    /// It continues: it keeps what was acknowledged, or frees space.
    Continues,
    /// Work that lacked space waits until there is more.
    Waits,
    /// It checks for space while the disk is full, and continues: its work may free some.
    Looks,
}

/// Starts the threads of an open database.
pub(crate) fn start_threads(shared: &Arc<Shared>) {
    let mut threads = shared.scheduler.threads.lock().expect("no panic while held");
    let log_pause = match shared.settings.durability {
        Durability::Interval(interval) => interval,
        Durability::Buffered | Durability::Process | Durability::Sync => Duration::from_millis(2),
    };
    // A write must be synced after the interval, however long nothing was written before.
    let log_pause_while_quiet = match shared.settings.durability {
        Durability::Interval(interval) => interval,
        Durability::Buffered | Durability::Process | Durability::Sync => LOG_PAUSE_WHILE_QUIET,
    };
    let duty = |name, body: fn(&Shared) -> Result<bool>, (pause, pause_while_quiet), without_space| Duty {
        name,
        body,
        pause,
        pause_while_quiet,
        without_space,
    };
    let idle = (IDLE, IDLE_WHILE_QUIET);
    let job = |thread: JobThread, body, without_space| duty(thread.name(), body, idle, without_space);
    let duties = [
        duty("alluvium-log", keep_log, (log_pause, log_pause_while_quiet), WithoutSpace::Continues),
        job(JobThread::Convert, |shared| JobThread::Convert.run(shared), WithoutSpace::Waits),
        job(JobThread::Merge, |shared| JobThread::Merge.run(shared), WithoutSpace::Waits),
        job(JobThread::Collect, |shared| JobThread::Collect.run(shared), WithoutSpace::Looks),
        duty("alluvium-reclaim", reclaim, (Duration::ZERO, Duration::ZERO), WithoutSpace::Continues),
    ];
    for duty in duties {
        let weak = Arc::downgrade(shared);
        let thread = alluvium_io::sync::thread::Builder::new()
            .name(duty.name.to_owned())
            .spawn(move || {
                if duty.name != "alluvium-log" {
                    alluvium_io::give_way();
                }
                work(&weak, duty);
            })
            .expect("the system has a thread to spare");
        threads.push(thread);
    }
}

fn work(shared: &Weak<Shared>, duty: Duty) {
    let mut seen = 0;
    let mut looks = 0;
    while let Some(shared) = shared.upgrade() {
        let scheduler = &shared.scheduler;
        if scheduler.is_stopping() {
            return;
        }
        let pauses_ended = *scheduler.pauses_ended.lock().expect("no panic while held");
        let is_full = match shared.log.refusal() {
            None => false,
            Some(Refusal::Full { .. }) => true,
            Some(_) => {
                scheduler.wait_for_event(&mut seen, duty.pause);
                continue;
            }
        };
        if is_full && duty.without_space == WithoutSpace::Looks {
            // The disk was found full before this, perhaps just now.
            looks += 1;
            scheduler.pause_after_failure(pauses_ended, pause_after(looks));
            if scheduler.is_stopping() {
                return;
            }
            if shared.try_to_resume().is_ok() {
                scheduler.wake();
                continue;
            }
            // Its own work follows, which may give space back.
        } else {
            looks = 0;
        }
        let may_succeed = duty.without_space != WithoutSpace::Waits || shared.may_succeed(duty.name);
        let attempts = if may_succeed {
            match shared.attempt(duty.name, duty.body) {
                Ok(true) => {
                    scheduler.wake();
                    shared.memory.trim();
                    continue;
                }
                Ok(false) => {
                    let pause = if is_quiet(&shared) { duty.pause_while_quiet } else { duty.pause };
                    scheduler.wait_for_event(&mut seen, pause);
                    continue;
                }
                Err(_) => shared.failures.attempts_of(duty.name),
            }
        } else {
            shared.failures.leave_out_attempt(duty.name)
        };
        // Threads that wait for this work are notified.
        scheduler.changed.notify_all();
        if looks == 0 {
            scheduler.pause_after_failure(pauses_ended, pause_after(attempts.max(1)));
        }
    }
}

/// Whether nothing was written for some time, so that there is probably nothing to do.
fn is_quiet(shared: &Shared) -> bool {
    shared.log.quiet_time(shared.clock.monotonic()) >= QUIET_FOR
}

/// Writes gathered log content, and syncs it if the durability requires it.
fn keep_log(shared: &Shared) -> Result<bool> {
    if shared.log.take_flush_wanted() {
        shared.log.write_behind()?;
    }
    if matches!(shared.settings.durability, Durability::Interval(_)) && shared.log.is_dirty() {
        shared.log.commit_all()?;
    }
    // By then the last segment has usually been converted, and its file can be used again.
    let prepared = if shared.active_fill() > 0.5 { shared.log.prepare_next() } else { Ok(()) };
    // Done here so that opening takes no time for it. On a disk without room there is no reserve.
    if shared.log.refusal().is_none() {
        shared.reserve.keep(shared.clock.monotonic());
    }
    if shared.log.is_quiet(shared.clock.monotonic()) {
        shared.log.mark_end()?;
        shared.remove_spare_log_files();
    }
    if shared.log.quiet_time(shared.clock.monotonic()) >= SPACE_KEPT_FOR {
        shared.give_back_log()?;
    }
    shared.update_throttle();
    prepared.map(|()| false)
}

fn reclaim(shared: &Shared) -> Result<bool> {
    let pause = if is_quiet(shared) { IDLE_WHILE_QUIET } else { IDLE };
    if shared.reclaimer.work(pause) && shared.is_short_of_space() {
        shared.sync_removals()?;
    }
    Ok(false)
}
