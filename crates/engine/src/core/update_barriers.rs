//! [`UpdateBarriers`]: ranges of the hash space in which updates wait.
//!
//! Operations that write something derived from what they read (updates, conditional batches, transactions, relocations
//! of large items) learn from the log whether the key was written since ([`super::write::Witness`]). A change that puts
//! items into tables, or removes items there, without a write to the log does not happen at one moment: it freezes the
//! log, moves older items into the levels, and publishes its tables. An update that reads before the publication and
//! writes behind the freeze would replace the change by a value that does not take it into account. So such a change
//! raises a barrier over its range before the freeze and lowers it after the publication, and updates wait meanwhile.
//! Unconditional writes do not wait: they count as later than the change.

use alluvium_base::{HashRange, KeyHash};
use alluvium_io::sync::atomic::{AtomicUsize, Ordering};
use alluvium_io::sync::{Condvar, Mutex, MutexGuard};

use super::keyspace::KeyspaceShared;
use crate::log_position::LogPosition;

/// The barriers of one keyspace.
#[derive(Debug, Default)]
pub(crate) struct UpdateBarriers {
    /// Number of barriers that are raised. Updates check this first.
    raised: AtomicUsize,
    state: Mutex<State>,
    lowered: Condvar,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    /// The barriers by number, each with the ranges where it is still raised.
    ranges: Vec<(u64, HashRange)>,
    /// Positions of records in the log that announce changes in progress, by the numbers of their barriers.
    announced: Vec<(u64, LogPosition)>,
}

/// Holds back updates of a range of hashes until it is lowered or dropped.
#[derive(Debug)]
pub(crate) struct UpdateBarrier<'a> {
    keyspace: &'a KeyspaceShared,
    number: u64,
}

impl UpdateBarriers {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while held")
    }

    /// Whether a change without records is in progress.
    pub fn is_any_raised(&self) -> bool {
        self.raised.load(Ordering::Acquire) > 0
    }

    /// The position of the oldest record that announces a change in progress.
    pub fn oldest_announced(&self) -> Option<LogPosition> {
        self.state().announced.iter().map(|&(_, position)| position).min()
    }

    /// Whether updates of this hash must wait.
    #[inline]
    pub fn hold_back(&self, hash: KeyHash) -> bool {
        self.raised.load(Ordering::Acquire) > 0 && self.state().covers(hash)
    }

    /// Waits until updates of this hash may continue; returns `false` if there was no need to wait.
    pub fn wait(&self, hash: KeyHash) -> bool {
        if !self.hold_back(hash) {
            return false;
        }
        let mut state = self.state();
        while state.covers(hash) {
            state = self.lowered.wait(state).expect("no panic while held");
        }
        true
    }
}

impl State {
    fn covers(&self, hash: KeyHash) -> bool {
        self.ranges.iter().any(|(_, range)| range.contains(hash.0))
    }
}

impl KeyspaceShared {
    /// Raises a barrier over `range`. When this returns, values derived from earlier reads can no longer be written,
    /// unless they are in the log already. The caller holds no lock of a log store's shard.
    pub fn hold_back_updates(&self, range: HashRange) -> UpdateBarrier<'_> {
        let barrier = self.raise_barrier(range);
        // The barrier comes first: every operation that reads in the new epoch sees it.
        self.without_writers(|| self.begin_epoch());
        barrier
    }

    /// Raises a barrier, but leaves witnesses valid.
    pub(crate) fn raise_barrier(&self, range: HashRange) -> UpdateBarrier<'_> {
        let barriers = &self.update_barriers;
        let mut state = barriers.state();
        state.next += 1;
        let number = state.next;
        state.ranges.push((number, range));
        barriers.raised.fetch_add(1, Ordering::AcqRel);
        drop(state);
        UpdateBarrier { keyspace: self, number }
    }

    /// Invalidates all witnesses.
    fn begin_epoch(&self) {
        self.update_version(|version| {
            let mut next = version.clone();
            next.epoch += 1;
            next
        });
    }
}

impl UpdateBarrier<'_> {
    /// Declares that the log announces the change at `position` or behind it.
    pub fn announce(&self, position: LogPosition) {
        self.keyspace.update_barriers.state().announced.push((self.number, position));
    }

    /// Lets updates of `range` continue: the change is published there, in a version of a new epoch.
    pub fn lower(&self, range: HashRange) {
        let barriers = &self.keyspace.update_barriers;
        let mut state = barriers.state();
        let ranges = std::mem::take(&mut state.ranges);
        state.ranges = ranges
            .into_iter()
            .flat_map(|(number, own)| {
                let left = if number == self.number { own.without(range) } else { [Some(own), None] };
                left.into_iter().flatten().map(move |range| (number, range))
            })
            .collect();
        drop(state);
        barriers.lowered.notify_all();
    }
}

impl Drop for UpdateBarrier<'_> {
    fn drop(&mut self) {
        self.lower(HashRange::ALL);
        self.keyspace.update_barriers.state().announced.retain(|&(number, _)| number != self.number);
        self.keyspace.update_barriers.raised.fetch_sub(1, Ordering::AcqRel);
    }
}
