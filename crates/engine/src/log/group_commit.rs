//! [`GroupCommit`]: writers that wait for durability at the same time share syncs.
//!
//! One writer, the leader, syncs on behalf of all whose records were appended when its sync begins; the others wait.
//! Writers that come during the sync wait for the next one. That alone would make two groups of half the writers each,
//! which take turns. So a leader first waits for the writers that were there recently, for at most the time of one
//! sync. A writer that is alone never waits.

use std::sync::Arc;
use std::time::Duration;

use alluvium_io::Clock;
use alluvium_io::sync::{Condvar, Mutex, MutexGuard};

use super::refusal::Refusal;
use super::writer::Position;
use crate::environment::PlantedBugs;
use crate::error::Result;
use crate::failure::{FailureClass, class_of};
use crate::planted_race::PlantedRace;

/// Maximum time that a leader waits for others: if a sync takes longer, the device is the limit anyway.
const GATHERING_MAX: Duration = Duration::from_millis(1);

/// How far the log is durable, and which writers wait for that.
#[derive(Debug)]
pub(super) struct GroupCommit {
    state: Mutex<State>,
    /// Signalled when a sync is done or the log begins to refuse writes.
    ended: Condvar,
    /// Signalled when the leader's expected number of writers wait.
    gathered: Condvar,
    clock: Arc<dyn Clock>,
    planted_bugs: PlantedBugs,
}

#[derive(Debug, Default)]
struct State {
    /// Everything up to here survives a power cut.
    durable: Position,
    /// Whether a thread waits for others, or syncs, on behalf of all.
    leading: bool,
    /// Number of syncs begun.
    syncs: u64,
    /// Writers, except the leader, that wait for a sync that has not begun.
    waiting: usize,
    /// Writers, except the leader, that were there when the last sync ended: served by it or waiting for the next.
    expected: usize,
    /// Duration of a sync, smoothed.
    sync_time: Duration,
    refusal: Option<Refusal>,
}

impl GroupCommit {
    /// Nothing is durable yet.
    pub fn new(clock: Arc<dyn Clock>, planted_bugs: PlantedBugs) -> Self {
        let (ended, gathered) = (Condvar::new(), Condvar::new());
        Self { state: Mutex::default(), ended, gathered, clock, planted_bugs }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while held")
    }

    /// Returns when everything up to `position` is durable. `sync` makes everything appended before its call durable,
    /// and returns how far that is. If it fails with an error that may pass, only the caller fails; any other error
    /// makes all callers fail from then on.
    pub fn wait_for(&self, position: Position, sync: impl Fn() -> Result<Position>) -> Result<()> {
        let mut state = self.state();
        loop {
            if state.durable >= position {
                return Ok(());
            }
            if let Some(refusal) = &state.refusal {
                return Err(refusal.error());
            }
            if state.leading {
                state = self.follow(state);
                if self.planted_bugs.has(PlantedRace::FollowerTrustsLeader) && state.refusal.is_none() {
                    return Ok(());
                }
                continue;
            }
            state.leading = true;
            state = self.gather(state);
            if state.refusal.is_some() {
                // Something failed meanwhile: nothing is tried again.
                state.leading = false;
                continue;
            }
            let served = std::mem::take(&mut state.waiting);
            state.syncs += 1;
            drop(state);
            let start = self.clock.monotonic();
            let outcome = sync();
            let elapsed = self.clock.monotonic().saturating_sub(start);
            state = self.state();
            state.leading = false;
            state.expected = served + state.waiting;
            state.sync_time = (state.sync_time * 7 + elapsed) / 8;
            let passing = match outcome {
                Ok(durable) => {
                    state.durable = state.durable.max(durable);
                    None
                }
                Err(error) if class_of(&error) == FailureClass::Final => {
                    state.refuse(Refusal::Failed { reason: error.to_string() });
                    None
                }
                Err(error) => Some(error),
            };
            drop(state);
            // Not under the lock: the woken threads need it first.
            self.ended.notify_all();
            if let Some(error) = passing {
                return Err(error);
            }
            state = self.state();
        }
    }

    /// Waits for the end of a sync.
    fn follow<'a>(&self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let came_during = state.syncs;
        state.waiting += 1;
        if state.waiting == state.expected {
            self.gathered.notify_one();
        }
        state = self.ended.wait(state).expect("no panic while held");
        // A sync that began since then has served all waiting writers and reset their count.
        if state.syncs == came_during {
            state.waiting -= 1;
        }
        state
    }

    /// Waits until as many others wait as were there recently, but not longer than about one sync.
    fn gather<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        if state.waiting >= state.expected {
            return state;
        }
        let patience = state.sync_time.min(GATHERING_MAX);
        let missing = |state: &mut State| state.waiting < state.expected && state.refusal.is_none();
        self.gathered.wait_timeout_while(state, patience, missing).expect("no panic while held").0
    }

    /// How far the log would survive a power cut.
    pub fn durable(&self) -> Position {
        self.state().durable
    }

    /// Why writes are refused, if they are.
    pub fn refusal(&self) -> Option<Refusal> {
        self.state().refusal.clone()
    }

    /// Refuses everything from now on. The first reason stays for good.
    pub fn refuse(&self, refusal: Refusal) {
        self.state().refuse(refusal);
        self.ended.notify_all();
        self.gathered.notify_all();
    }

    /// Waits for the sync under way.
    pub fn wait_for_leader(&self) {
        let mut state = self.state();
        while state.leading {
            state = self.ended.wait(state).expect("no panic while held");
        }
    }
}

impl State {
    fn refuse(&mut self, refusal: Refusal) {
        if self.refusal.is_none() || matches!(refusal, Refusal::Closed) {
            self.refusal = Some(refusal);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use alluvium_io::SystemClock;

    use alluvium_base::SegmentId;

    use super::*;
    use crate::error::Error;

    fn position(offset: u64) -> Position {
        Position { segment: SegmentId(1), offset }
    }

    /// Threads append, which is incrementing a counter, and commit; a sync takes a moment in which others append.
    fn commit_from_threads(threads: u64, commits: u64) -> u64 {
        let group = GroupCommit::new(Arc::new(SystemClock::default()), PlantedBugs::default());
        let (appended, synced, syncs) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let sync = || {
            syncs.fetch_add(1, Ordering::Relaxed);
            let end = appended.load(Ordering::Acquire);
            std::thread::sleep(Duration::from_micros(200));
            synced.store(end, Ordering::Release);
            Ok(position(end))
        };
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for _ in 0..commits {
                        let mine = appended.fetch_add(1, Ordering::AcqRel) + 1;
                        group.wait_for(position(mine), sync).unwrap();
                        assert!(synced.load(Ordering::Acquire) >= mine);
                    }
                });
            }
        });
        assert_eq!(group.durable(), position(threads * commits));
        let state = group.state();
        assert_eq!((state.waiting, state.leading), (0, false));
        syncs.into_inner()
    }

    #[test]
    fn nobody_returns_before_a_sync_that_began_after_the_append() {
        let syncs = commit_from_threads(8, 100);
        assert!(syncs < 800, "{syncs} syncs of 800 commits: none were shared");
    }

    #[test]
    fn alone_every_commit_is_a_sync() {
        assert_eq!(commit_from_threads(1, 50), 50);
    }

    #[test]
    fn what_is_durable_takes_no_sync() {
        let group = GroupCommit::new(Arc::new(SystemClock::default()), PlantedBugs::default());
        group.wait_for(position(5), || Ok(position(9))).unwrap();
        group.wait_for(position(9), || panic!("nothing to sync")).unwrap();
    }

    #[test]
    fn a_failed_sync_fails_all_who_wait_and_all_to_come() {
        let group = GroupCommit::new(Arc::new(SystemClock::default()), PlantedBugs::default());
        let fail = || {
            std::thread::sleep(Duration::from_millis(2));
            Err(Error::Failed { reason: "the device is gone".to_owned() })
        };
        std::thread::scope(|scope| {
            for number in 1..=4 {
                let group = &group;
                scope.spawn(move || assert!(group.wait_for(position(number), fail).is_err()));
            }
        });
        assert!(group.wait_for(position(1), || panic!("never retried")).is_err());
    }

    #[test]
    fn a_failure_that_may_pass_is_that_of_one_caller() {
        let group = GroupCommit::new(Arc::new(SystemClock::default()), PlantedBugs::default());
        let full = || Err(Error::DiskFull { reason: "no room".to_owned() });
        assert!(matches!(group.wait_for(position(1), full), Err(Error::DiskFull { .. })));
        assert!(group.refusal().is_none());
        group.wait_for(position(1), || Ok(position(1))).unwrap();
    }
}
