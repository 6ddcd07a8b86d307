//! [`LogWaits`]: what writers wait for in the log.

use std::sync::Arc;

use alluvium_io::Clock;
use alluvium_io::sync::{Mutex, MutexGuard};

use crate::wait::Wait;

/// Bytes of a segment's memory that the system provides at once.
const SPACE_BYTES: u64 = 2 << 20;

/// The waits of writers, by cause.
#[derive(Debug)]
pub(crate) struct LogWaits {
    pub clock: Arc<dyn Clock>,
    /// For a sync, one's own or another writer's.
    pub sync: Wait,
    /// For the system to take what was written.
    pub system: Wait,
    /// For a lock of a shard or of the log.
    pub lock: Wait,
    /// For a larger index of a shard.
    pub index: Wait,
    /// For memory of a segment that was not used before.
    pub space: Wait,
}

impl LogWaits {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let wait = Wait::default;
        Self { clock, sync: wait(), system: wait(), lock: wait(), index: wait(), space: wait() }
    }

    /// Takes a lock, and counts if it was not free.
    #[inline]
    pub fn lock<'a, T>(&self, lock: &'a Mutex<T>) -> MutexGuard<'a, T> {
        self.lock.for_lock(&*self.clock, lock)
    }

    /// Appends by `append`, which takes the bytes of a segment from `start` on; counts if they reach into new memory.
    #[inline]
    pub fn for_space<R>(&self, start: u64, len: u64, append: impl FnOnce() -> R) -> R {
        if start / SPACE_BYTES == (start + len) / SPACE_BYTES {
            return append();
        }
        self.space.during(&*self.clock, append)
    }
}
