//! A small number for each thread, to spread counters over cache lines.
//!
//! Numbers of threads that have ended are reused, the lowest first. However many threads start and end, running threads
//! have numbers from 1 to the maximum number of threads that ever ran at once.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Mutex;

thread_local! {
    // Two variables: the one that every operation reads has no destructor, which would turn each access into a call.
    static NUMBER: Cell<u64> = const { Cell::new(0) };
    static OWNED: Owned = Owned::take();
}

static NUMBERS: Mutex<Numbers> = Mutex::new(Numbers { next: 1, free: BinaryHeap::new() });

struct Numbers {
    next: u64,
    free: BinaryHeap<Reverse<u64>>,
}

/// A number that is returned when its thread ends. The next owner sees everything that was done under it, since both
/// take the lock.
struct Owned(u64);

impl Owned {
    fn take() -> Self {
        let mut numbers = NUMBERS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let Numbers { next, free } = &mut *numbers;
        Self(free.pop().map_or_else(
            || {
                *next += 1;
                *next - 1
            },
            |Reverse(number)| number,
        ))
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // What is counted while the thread's other values are dropped belongs to no thread.
        NUMBER.set(u64::MAX);
        NUMBERS.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).free.push(Reverse(self.0));
    }
}

/// The calling thread's number, from 1; `u64::MAX` for a thread that is about to end.
#[inline(always)]
pub(crate) fn thread_number() -> u64 {
    // The model checker needs the same memory accesses in every run, whichever threads ran before.
    if cfg!(loom) {
        return u64::MAX;
    }
    match NUMBER.get() {
        0 => assign(),
        known => known,
    }
}

#[cold]
fn assign() -> u64 {
    let number = OWNED.try_with(|owned| owned.0).unwrap_or(u64::MAX);
    NUMBER.set(number);
    number
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn threads_that_come_and_go_share_few_numbers() {
        let here = thread_number();
        for _ in 0..100 {
            let there = std::thread::spawn(|| [thread_number(), thread_number()]).join().unwrap();
            assert_eq!(there[0], there[1]);
            assert_ne!(there[0], here);
            // Other tests run at the same time.
            assert!(there[0] < 100, "{}", there[0]);
        }
    }
}
