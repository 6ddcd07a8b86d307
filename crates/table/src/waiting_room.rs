//! [`WaitingRoom`]: a bound on the memory of calls in progress, which wait for each other.

use std::sync::PoisonError;

use alluvium_io::sync::atomic::{AtomicU64, Ordering};
use alluvium_io::sync::{Condvar, Mutex, MutexGuard};

/// Bytes that calls hold until they return. A call that finds no room waits until others are done. A caller must
/// therefore not ask for more room while it holds some, nor hold a lock that others need to return theirs.
#[derive(Debug)]
pub struct WaitingRoom {
    /// `u64::MAX` means no bound.
    bytes_max: AtomicU64,
    held: Mutex<u64>,
    freed: Condvar,
}

/// Room that is held while this exists.
#[derive(Debug)]
pub struct HeldRoom<'a> {
    room: &'a WaitingRoom,
    bytes: u64,
}

impl Default for WaitingRoom {
    fn default() -> Self {
        Self { bytes_max: AtomicU64::new(u64::MAX), held: Mutex::new(0), freed: Condvar::new() }
    }
}

impl WaitingRoom {
    /// Maximum bytes; `u64::MAX` means no bound.
    #[inline]
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max.load(Ordering::Relaxed)
    }

    /// Changes the bound. Room that is already held is unaffected.
    pub fn set_bytes_max(&self, bytes_max: u64) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
        self.freed.notify_all();
    }

    fn held(&self) -> MutexGuard<'_, u64> {
        // The number is valid even if a thread panicked while it held the lock.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes held now, if there is a bound.
    pub fn bytes(&self) -> u64 {
        *self.held()
    }

    /// Takes room for `bytes`. Returns immediately if there is room or if no room is held, otherwise when others are
    /// done. Returns `None` without a bound, at no cost.
    #[inline]
    pub fn hold(&self, bytes: u64) -> Option<HeldRoom<'_>> {
        (self.bytes_max() < u64::MAX).then(|| self.wait(bytes))
    }

    fn wait(&self, bytes: u64) -> HeldRoom<'_> {
        let mut held = self.held();
        while *held > 0 && held.saturating_add(bytes) > self.bytes_max() {
            held = self.freed.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        *held += bytes;
        HeldRoom { room: self, bytes }
    }
}

impl Drop for HeldRoom<'_> {
    fn drop(&mut self) {
        *self.room.held() -= self.bytes;
        self.room.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn calls_wait_for_each_other() {
        let room = WaitingRoom::default();
        assert!(room.hold(500).is_none());
        room.set_bytes_max(100);
        let first = room.hold(80).unwrap();
        let started = Barrier::new(2);
        std::thread::scope(|scope| {
            let second = scope.spawn(|| {
                started.wait();
                let _second = room.hold(30).unwrap();
                room.bytes()
            });
            started.wait();
            assert_eq!(room.bytes(), 80);
            drop(first);
            assert_eq!(second.join().unwrap(), 30);
        });
        // More than the bound is granted only when nobody else holds room.
        assert_eq!(room.hold(500).map(|_held| room.bytes()), Some(500));
        assert_eq!(room.bytes(), 0);
    }
}
