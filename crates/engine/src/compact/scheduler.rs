//! Background threads: one writes the log behind and syncs it at intervals, one converts, one merges, one empties blob
//! files, one gives space back. All except the first yield to readers and writers where processors are few (decision
//! 0040).

use std::sync::{Arc, Weak};
use std::time::Duration;

use alluvium_io::sync::atomic::{AtomicBool, Ordering};
use alluvium_io::sync::thread::JoinHandle;
use alluvium_io::sync::{Condvar, Mutex};

use super::jobs::JobThread;
use crate::db::{Shared, pause_after};
use crate::error::Result;
use crate::log::Refusal;
use crate::options::Durability;

/// How often threads check for work when they are not woken.
const IDLE: Duration = Duration::from_millis(20);

/// Owns the background threads; wakes and stops them.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    /// Incremented whenever there may be new work, so that no wake-up is lost.
    events: Mutex<u64>,
    changed: Condvar,
    /// Incremented when failed work should be retried at once.
    pauses_ended: Mutex<u64>,
    resumed: Condvar,
    stopping: AtomicBool,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// The work of a background thread.
#[derive(Clone, Copy)]
struct Duty {
    name: &'static str,
    /// Does a piece of work; returns whether there may be more.
    body: fn(&Shared) -> Result<bool>,
    /// How often it checks for work when it is not woken.
    pause: Duration,
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

impl Scheduler {
    /// Starts the threads.
    pub fn start(shared: &Arc<Shared>) {
        let mut threads = shared.scheduler.threads.lock().expect("no panic while held");
        let log_pause = match shared.settings.durability {
            Durability::Interval(interval) => interval,
            Durability::Buffered | Durability::Sync => Duration::from_millis(2),
        };
        let duty = |name, body: fn(&Shared) -> Result<bool>, pause, without_space| Duty {
            name,
            body,
            pause,
            without_space,
        };
        let job = |thread: JobThread, body, without_space| duty(thread.name(), body, IDLE, without_space);
        let duties = [
            duty("alluvium-log", keep_log, log_pause, WithoutSpace::Continues),
            job(JobThread::Convert, |shared| JobThread::Convert.run(shared), WithoutSpace::Waits),
            job(JobThread::Merge, |shared| JobThread::Merge.run(shared), WithoutSpace::Waits),
            job(JobThread::Collect, |shared| JobThread::Collect.run(shared), WithoutSpace::Looks),
            duty("alluvium-reclaim", reclaim, Duration::ZERO, WithoutSpace::Continues),
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

    /// Notifies the threads that there may be work.
    pub fn wake(&self) {
        *self.events.lock().expect("no panic while held") += 1;
        self.changed.notify_all();
    }

    /// Makes threads retry failed work at once.
    pub fn end_pauses(&self) {
        *self.pauses_ended.lock().expect("no panic while held") += 1;
        self.resumed.notify_all();
        self.wake();
    }

    /// Waits before failed work is retried, unless [`Scheduler::end_pauses`] was called since `seen`.
    fn pause_after_failure(&self, seen: u64, pause: Duration) {
        let ended = self.pauses_ended.lock().expect("no panic while held");
        let waits = |ended: &mut u64| *ended == seen && !self.is_stopping();
        drop(self.resumed.wait_timeout_while(ended, pause, waits));
    }

    /// Makes all threads finish or abandon their current piece of work early.
    pub fn begin_stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.end_pauses();
    }

    /// Stops the threads after their current piece of work, and waits for them.
    pub fn stop(&self) {
        self.begin_stop();
        let threads = std::mem::take(&mut *self.threads.lock().expect("no panic while held"));
        let me = alluvium_io::sync::thread::current().id();
        for thread in threads.into_iter().filter(|thread| thread.thread().id() != me) {
            // A panic of the thread was printed when it happened; the database has failed by then.
            let _ = thread.join();
        }
    }

    /// Waits until an event that was not seen occurs, for at most `pause`.
    fn wait_for_event(&self, seen: &mut u64, pause: Duration) {
        let mut events = self.events.lock().expect("no panic while held");
        if *events == *seen {
            events = self.changed.wait_timeout(events, pause).expect("no panic while held").0;
        }
        *seen = *events;
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Waits briefly for background work to make progress.
    pub fn wait_for_progress(&self) {
        let events = self.events.lock().expect("no panic while held");
        let _ = self.changed.wait_timeout(events, Duration::from_millis(5));
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
                    scheduler.wait_for_event(&mut seen, duty.pause);
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
    shared.update_throttle();
    prepared.map(|()| false)
}

fn reclaim(shared: &Shared) -> Result<bool> {
    if shared.reclaimer.work(IDLE) && shared.is_short_of_space() {
        shared.sync_removals()?;
    }
    Ok(false)
}
