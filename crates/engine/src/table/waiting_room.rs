//! [`WaitingRoom`]: a bound on the memory of calls under way, who wait for each other.

use std::sync::PoisonError;

use alluvium_io::sync::atomic::{AtomicU64, Ordering};
use alluvium_io::sync::{Condvar, Mutex, MutexGuard};

/// Bytes that calls hold until they return. Who finds no room waits until others are done, so nobody may ask for more
/// room while holding some, nor hold a lock that others need to give theirs back.
#[derive(Debug)]
pub(crate) struct WaitingRoom {
    /// `u64::MAX` is no bound.
    bytes_max: AtomicU64,
    held: Mutex<u64>,
    freed: Condvar,
}

/// Room, while this lives.
#[derive(Debug)]
pub(crate) struct HeldRoom<'a> {
    room: &'a WaitingRoom,
    bytes: u64,
}

impl Default for WaitingRoom {
    fn default() -> Self {
        Self { bytes_max: AtomicU64::new(u64::MAX), held: Mutex::new(0), freed: Condvar::new() }
    }
}

impl WaitingRoom {
    /// Most bytes; `u64::MAX` is no bound.
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max.load(Ordering::Relaxed)
    }

    /// Changes the bound. What is held already stays.
    pub fn set_bytes_max(&self, bytes_max: u64) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
        self.freed.notify_all();
    }

    fn held(&self) -> MutexGuard<'_, u64> {
        // A thread that panicked while it held the lock left a number.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes held now, under a bound.
    pub fn bytes(&self) -> u64 {
        *self.held()
    }

    /// Room for so many bytes: at once where there is room, or nobody else has any, else when others are done. `None`
    /// without a bound, which costs nothing.
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
        // More than the bound is had alone.
        assert_eq!(room.hold(500).map(|_held| room.bytes()), Some(500));
        assert_eq!(room.bytes(), 0);
    }
}
