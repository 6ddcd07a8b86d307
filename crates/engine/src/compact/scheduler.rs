//! Background threads: one writes the log behind and syncs it at intervals, one converts, one
//! merges, one empties blob files, one gives space back. All but the first give way to readers and writers where
//! processors are few (decision 0040).

use std::sync::{Arc, Weak};
use std::time::Duration;

use alluvium_io::sync::atomic::{AtomicBool, Ordering};
use alluvium_io::sync::thread::JoinHandle;
use alluvium_io::sync::{Condvar, Mutex};

use super::{convert, follow_plan, give_back_garbage, merge, pick};
use crate::blob::collect::collect;
use crate::db::{Shared, replan};
use crate::error::Result;
use crate::options::Durability;

/// How often threads look around when nobody wakes them.
const IDLE: Duration = Duration::from_millis(20);

/// Owns the background threads; wakes, observes and stops them.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    /// Raised whenever there may be new work, so that no wake-up is lost.
    events: Mutex<u64>,
    changed: Condvar,
    stopping: AtomicBool,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Scheduler {
    /// Starts the threads.
    pub fn start(shared: &Arc<Shared>) {
        let mut threads = shared.scheduler.threads.lock().expect("no panic while held");
        let mut spawn =
            |name: &str, comes_first: bool, body: fn(&Shared) -> Result<bool>, pause: Duration| {
                let weak = Arc::downgrade(shared);
                let thread = alluvium_io::sync::thread::Builder::new()
                    .name(name.to_owned())
                    .spawn(move || {
                        if !comes_first {
                            alluvium_io::give_way();
                        }
                        work(&weak, body, pause);
                    })
                    .expect("the system has a thread to spare");
                threads.push(thread);
            };
        let log_pause = match shared.settings.durability {
            Durability::Interval(interval) => interval,
            Durability::Buffered | Durability::Sync => Duration::from_millis(2),
        };
        spawn("alluvium-log", true, keep_log, log_pause);
        spawn("alluvium-convert", false, convert, IDLE);
        spawn("alluvium-merge", false, merge_one, IDLE);
        spawn("alluvium-collect", false, collect, IDLE);
        spawn("alluvium-reclaim", false, reclaim, Duration::ZERO);
    }

    /// Tells the threads that there may be work.
    pub fn wake(&self) {
        *self.events.lock().expect("no panic while held") += 1;
        self.changed.notify_all();
    }

    /// Stops the threads after their current piece of work, and waits for them.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.wake();
        let threads = std::mem::take(&mut *self.threads.lock().expect("no panic while held"));
        let me = alluvium_io::sync::thread::current().id();
        for thread in threads.into_iter().filter(|thread| thread.thread().id() != me) {
            // A panic of the thread was printed when it happened; the database is failed by then.
            let _ = thread.join();
        }
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Waits a moment for background work to get on.
    pub fn wait_for_progress(&self) {
        let events = self.events.lock().expect("no panic while held");
        let _ = self.changed.wait_timeout(events, Duration::from_millis(5));
    }
}

fn work(shared: &Weak<Shared>, body: fn(&Shared) -> Result<bool>, pause: Duration) {
    let mut seen = 0;
    while let Some(shared) = shared.upgrade() {
        let scheduler = &shared.scheduler;
        if scheduler.is_stopping() {
            return;
        }
        let outcome = if shared.log.refusal().is_some() { Ok(false) } else { body(&shared) };
        let mut events = scheduler.events.lock().expect("no panic while held");
        match outcome {
            Ok(true) => {
                *events += 1;
                scheduler.changed.notify_all();
                drop(events);
                shared.memory.trim();
            }
            Ok(false) => {
                if *events == seen {
                    events = scheduler.changed.wait_timeout(events, pause).expect("no panic while held").0;
                }
                seen = *events;
            }
            Err(error) => {
                drop(events);
                shared.log.fail(&error);
                scheduler.changed.notify_all();
            }
        }
    }
}

/// Writes gathered log content behind, and syncs it when the durability asks for that.
fn keep_log(shared: &Shared) -> Result<bool> {
    if shared.log.take_flush_wanted() {
        shared.log.write_behind()?;
    }
    if matches!(shared.settings.durability, Durability::Interval(_)) && shared.log.is_dirty() {
        shared.log.commit_all()?;
    }
    // By then the last segment is converted, as a rule, and its file can be used again.
    if shared.active_fill() > 0.5 {
        shared.log.prepare_next()?;
    }
    if shared.log.is_quiet(shared.clock.monotonic()) {
        shared.log.mark_end()?;
        shared.remove_spare_log_files();
    }
    shared.update_throttle();
    Ok(false)
}

fn reclaim(shared: &Shared) -> Result<bool> {
    shared.reclaimer.work(IDLE);
    Ok(false)
}

fn merge_one(shared: &Shared) -> Result<bool> {
    if replan(shared)? {
        return Ok(true);
    }
    let Some(due) = pick(shared) else {
        return Ok(give_back_garbage(shared)? || follow_plan(shared)? || shared.open_next_tables());
    };
    merge(shared, &due)?;
    Ok(true)
}
