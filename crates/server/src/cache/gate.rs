//! [`Gate`]: transactions take effect at one moment.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Maximum lanes: who closes the gate closes each.
const LANES_MAX: usize = 64;

/// Number of threads that have passed a gate.
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Whether the thread has closed the gate: it may pass.
    static IS_ALONE: Cell<bool> = const { Cell::new(false) };
    /// The thread's number, by which it has its lane.
    static NUMBER: usize = THREADS.fetch_add(1, Ordering::Relaxed);
}

/// Open for single operations and batches of gets, any number at a time; closed for a transaction.
///
/// Each thread has a lane, so that those that pass write no memory that others write. With one lane, a set beside
/// another thread's sets takes 40 % longer.
#[derive(Debug)]
pub(super) struct Gate {
    lanes: Box<[Lane]>,
}

/// In lines of its own; processors load them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Lane(RwLock<()>);

/// While this lives, the thread that closed the gate is the only one that passes.
pub(super) struct Alone<'a> {
    /// All lanes; empty if the thread was alone before.
    closed: Vec<RwLockWriteGuard<'a, ()>>,
}

impl Gate {
    /// A gate for `threads` threads, and some others that pass less often.
    pub(super) fn new(threads: usize) -> Self {
        let lanes = if threads <= 1 { 1 } else { threads.saturating_mul(2).min(LANES_MAX) };
        Self { lanes: (0..lanes).map(|_| Lane::default()).collect() }
    }

    /// Waits while the gate is closed, and keeps it open until the result is dropped.
    #[inline]
    pub(super) fn pass(&self) -> Option<RwLockReadGuard<'_, ()>> {
        if IS_ALONE.get() {
            return None;
        }
        let lane = match &*self.lanes {
            [only] => only,
            several => &several[NUMBER.with(|number| number % several.len())],
        };
        Some(lane.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits for all that have passed.
    pub(super) fn close(&self) -> Alone<'_> {
        if IS_ALONE.get() {
            return Alone { closed: Vec::new() };
        }
        // All threads that close begin with the first lane, so none waits for another in a circle.
        let lanes = self.lanes.iter();
        let closed = lanes.map(|lane| lane.0.write().unwrap_or_else(PoisonError::into_inner)).collect();
        IS_ALONE.set(true);
        Alone { closed }
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        if !self.closed.is_empty() {
            IS_ALONE.set(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    /// Some threads write two numbers one after the other, and others look at both through a closed gate.
    #[test]
    fn who_closes_the_gate_sees_none_within() {
        const ROUNDS: u64 = 2000;
        for threads in [1, 3, 1000] {
            let (gate, numbers) = (Gate::new(threads), [AtomicU64::new(0), AtomicU64::new(0)]);
            let looked = AtomicU64::new(0);
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        for _ in 0..ROUNDS {
                            let passed = gate.pass();
                            assert!(passed.is_some());
                            numbers.iter().for_each(|number| {
                                number.fetch_add(1, Ordering::Relaxed);
                            });
                        }
                    });
                }
                for _ in 0..2 {
                    scope.spawn(|| {
                        for _ in 0..ROUNDS / 10 {
                            let alone = gate.close();
                            let within = gate.close();
                            assert!(gate.pass().is_none(), "alone");
                            let [first, second] =
                                numbers.each_ref().map(|number| number.load(Ordering::Relaxed));
                            assert_eq!(first, second);
                            looked.fetch_add(1, Ordering::Relaxed);
                            drop(within);
                            assert!(gate.pass().is_none(), "still alone");
                            drop(alone);
                        }
                    });
                }
            });
            assert_eq!(numbers.map(AtomicU64::into_inner), [3 * ROUNDS; 2]);
            assert_eq!(looked.into_inner(), 2 * (ROUNDS / 10));
        }
    }
}
