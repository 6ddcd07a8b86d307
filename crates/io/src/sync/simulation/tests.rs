//! The scheduler finds the faults that it is made for, and is the same for the same seed.

use std::sync::Arc;
use std::time::Duration;

use super::atomic::{AtomicBool, AtomicU64, Ordering};
use super::{Condvar, Failure, Mutex, OnceLock, Options, Outcome, RwLock, now, run, step, thread};

const SEEDS: u64 = 200;

fn execute<T: Send + 'static>(seed: u64, body: fn() -> T) -> Result<Outcome<T>, Failure> {
    run(Options { seed, steps_max: 20_000 }, body)
}

/// How many seeds end well, and the reasons of the others.
fn outcomes<T: Send + 'static>(body: fn() -> T) -> (u64, Vec<String>) {
    let reasons: Vec<String> =
        (0..SEEDS).filter_map(|seed| execute(seed, body).err().map(|failure| failure.reason)).collect();
    (SEEDS - reasons.len() as u64, reasons)
}

fn add_twice() -> u64 {
    let sum = Arc::new(AtomicU64::new(0));
    let add = |sum: &AtomicU64| {
        let seen = sum.load(Ordering::Acquire);
        sum.store(seen + 1, Ordering::Release);
    };
    let other = Arc::clone(&sum);
    let thread = thread::spawn(move || add(&other));
    add(&sum);
    thread.join().unwrap();
    sum.load(Ordering::Acquire)
}

#[test]
fn a_lost_update_is_found() {
    let sums: Vec<u64> = (0..SEEDS).map(|seed| execute(seed, add_twice).unwrap().result).collect();
    assert!(sums.contains(&1) && sums.contains(&2), "{sums:?}");
}

#[test]
fn a_lock_keeps_updates() {
    let (good, _) = outcomes(|| {
        let sum = Arc::new(Mutex::new(0));
        let add = |sum: &Mutex<u64>| {
            let mut sum = sum.lock().unwrap();
            let seen = *sum;
            thread::yield_now();
            *sum = seen + 1;
        };
        let threads = [0; 3].map(|_| {
            let sum = Arc::clone(&sum);
            thread::spawn(move || add(&sum))
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(*sum.lock().unwrap(), 3);
    });
    assert_eq!(good, SEEDS);
}

#[test]
fn a_deadlock_is_found_and_described() {
    let (good, reasons) = outcomes(|| {
        let locks = Arc::new((Mutex::new(()), Mutex::new(())));
        let other = Arc::clone(&locks);
        let thread = thread::Builder::new().name("opposite".to_owned());
        let thread = thread.spawn(move || {
            let _second = other.1.lock().unwrap();
            let _first = other.0.lock().unwrap();
        });
        let first = locks.0.lock().unwrap();
        drop(locks.1.lock().unwrap());
        drop(first);
        thread.unwrap().join().unwrap();
    });
    assert!(good > 0 && !reasons.is_empty());
    for reason in reasons {
        assert!(
            reason.starts_with("deadlock: task 0 (root) waits for a lock that task 1 (opposite) holds"),
            "{reason}"
        );
        assert!(
            reason.contains("task 1 (opposite) waits for a lock that task 0 (root) holds at"),
            "{reason}"
        );
        assert!(reason.contains("simulation/tests.rs"), "{reason}");
    }
}

#[test]
fn a_missed_notification_is_found() {
    let (good, reasons) = outcomes(|| {
        let shared = Arc::new((Mutex::new(()), Condvar::new(), AtomicBool::new(false)));
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            // The mistake: not under the lock.
            other.2.store(true, Ordering::Release);
            other.1.notify_all();
        });
        let mut guard = shared.0.lock().unwrap();
        while !shared.2.load(Ordering::Acquire) {
            guard = shared.1.wait(guard).unwrap();
        }
        drop(guard);
        thread.join().unwrap();
    });
    assert!(good > 0 && !reasons.is_empty());
    assert!(reasons.iter().all(|reason| reason.contains("waits for a notification")), "{reasons:?}");
}

#[test]
fn who_spins_gets_somewhere() {
    let (good, reasons) = outcomes(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let other = Arc::clone(&flag);
        let thread = thread::spawn(move || {
            while !other.load(Ordering::Acquire) {
                thread::yield_now();
            }
            // A loop that forgets to give way.
            while other.load(Ordering::Acquire) {}
        });
        flag.store(true, Ordering::Release);
        thread::sleep(Duration::from_secs(3600));
        flag.store(false, Ordering::Release);
        thread.join().unwrap();
        assert!(now() >= Duration::from_secs(3600));
    });
    assert_eq!(good, SEEDS, "{reasons:?}");
}

#[test]
fn a_seed_replays_exactly_and_others_differ() {
    let body = || {
        let order = Arc::new(Mutex::new(Vec::new()));
        let threads = [0, 1, 2, 3].map(|number| {
            let order = Arc::clone(&order);
            thread::spawn(move || {
                for _ in 0..5 {
                    order.lock().unwrap().push(number);
                }
            })
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        Arc::try_unwrap(order).unwrap().into_inner().unwrap()
    };
    let outcomes: Vec<_> = (0..20).map(|seed| execute(seed, body).unwrap()).collect();
    for (seed, outcome) in (0..).zip(&outcomes) {
        assert_eq!(execute(seed, body).as_ref(), Ok(outcome));
    }
    let mut traces: Vec<u64> = outcomes.iter().map(|outcome| outcome.trace).collect();
    traces.sort_unstable();
    traces.dedup();
    assert!(traces.len() > 15, "{traces:?}");
}

#[test]
fn waits_end_by_the_clock_of_the_execution() {
    let (good, reasons) = outcomes(|| {
        let (lock, changed) = (Mutex::new(()), Condvar::new());
        let hour = Duration::from_secs(3600);
        let (guard, result) = changed.wait_timeout_while(lock.lock().unwrap(), hour, |()| true).unwrap();
        assert!(result.timed_out() && now() >= hour && step() > 0);
        let (guard, result) = changed.wait_timeout_while(guard, hour, |()| false).unwrap();
        assert!(!result.timed_out());
        drop(guard);
    });
    assert_eq!(good, SEEDS, "{reasons:?}");
}

#[test]
fn a_panic_is_a_failure_and_the_others_end() {
    let reason = execute(0, || {
        let thread = thread::Builder::new().name("doomed".to_owned());
        let thread = thread.spawn(|| assert_eq!(1, 2, "on purpose")).unwrap();
        assert!(thread.join().is_err());
    });
    let reason = reason.unwrap_err().reason;
    assert!(reason.starts_with("task 1 (doomed) panicked") && reason.contains("on purpose"), "{reason}");
}

#[test]
fn an_execution_without_end_is_noticed() {
    let reason = execute(0, || {
        loop {
            thread::yield_now();
        }
    });
    assert!(reason.unwrap_err().reason.starts_with("no end after 20000 steps; task 0 (root) can run"));
}

#[test]
fn scoped_threads_borrow_and_end_before_the_scope() {
    let (good, reasons) = outcomes(|| {
        let (sum, once, shared) = (AtomicU64::new(0), OnceLock::new(), RwLock::new(1));
        let begun = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let value = *once.get_or_init(|| {
                        thread::yield_now();
                        begun.fetch_add(1, Ordering::AcqRel) + 1
                    });
                    *shared.write().unwrap() += value;
                    sum.fetch_add(*shared.read().unwrap(), Ordering::AcqRel);
                });
            }
            assert!(scope.spawn(|| panic!("on purpose")).join().is_err());
        });
        assert_eq!((*shared.read().unwrap(), begun.load(Ordering::Acquire)), (4, 1));
        assert!(sum.load(Ordering::Acquire) >= 9);
    });
    assert_eq!(good, 0, "the panics are failures");
    let is_expected = |reason: &String| reason.contains("(scoped) panicked: on purpose");
    assert!(reasons.iter().all(is_expected), "{reasons:?}");
}

#[test]
fn threads_outside_of_executions_are_those_of_the_system() {
    let (lock, changed, total) = (Mutex::new(0), Condvar::new(), 4);
    thread::scope(|scope| {
        for _ in 0..total {
            scope.spawn(|| {
                *lock.lock().unwrap() += 1;
                changed.notify_all();
            });
        }
        let mut guard = lock.lock().unwrap();
        while *guard < total {
            guard = changed.wait_timeout(guard, Duration::from_secs(10)).unwrap().0;
        }
    });
    assert_eq!(now(), Duration::ZERO);
    assert_eq!(thread::spawn(|| 7).join().unwrap(), 7);
}
