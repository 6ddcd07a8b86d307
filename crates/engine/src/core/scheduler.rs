//! [`Scheduler`]: wakes, pauses and stops the background threads.

use std::time::Duration;

use alluvium_io::sync::atomic::{AtomicBool, Ordering};
use alluvium_io::sync::thread::JoinHandle;
use alluvium_io::sync::{Condvar, Mutex};

/// Owns the background threads; wakes and stops them.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    /// Incremented whenever there may be new work, so that no wake-up is lost.
    pub events: Mutex<u64>,
    pub changed: Condvar,
    /// Incremented when failed work should be retried at once.
    pub pauses_ended: Mutex<u64>,
    pub resumed: Condvar,
    stopping: AtomicBool,
    pub threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Scheduler {
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
    pub fn pause_after_failure(&self, seen: u64, pause: Duration) {
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
    pub fn wait_for_event(&self, seen: &mut u64, pause: Duration) {
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
