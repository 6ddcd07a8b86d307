//! [`Watches`]: which of the keys that clients watch were written since.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The keys that are watched, as they are stored.
#[derive(Debug, Default)]
pub(super) struct Watches {
    /// Number of keys in the map. Writers look at it first.
    len: AtomicUsize,
    keys: Mutex<HashMap<Box<[u8]>, Watched>>,
}

#[derive(Debug, Default)]
struct Watched {
    watches: usize,
    writes: u64,
}

impl Watches {
    fn keys(&self) -> MutexGuard<'_, HashMap<Box<[u8]>, Watched>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to watch `key` and returns the number of its writes. No write is in progress.
    pub(super) fn begin(&self, key: &[u8]) -> u64 {
        let mut keys = self.keys();
        let watched = keys.entry(key.into()).or_default();
        watched.watches += 1;
        let writes = watched.writes;
        self.len.store(keys.len(), Ordering::Relaxed);
        writes
    }

    pub(super) fn end(&self, key: &[u8]) {
        let mut keys = self.keys();
        if let Some(watched) = keys.get_mut(key) {
            watched.watches -= 1;
            if watched.watches == 0 {
                keys.remove(key);
            }
        }
        self.len.store(keys.len(), Ordering::Relaxed);
    }

    /// Notes that an item was stored under `key`. The caller has passed the gate, so a watch begins before or after
    /// the write and not within it. Removals need no note: a key that is absent as before was not stored in between.
    #[inline]
    pub(super) fn note(&self, key: &[u8]) {
        if self.len.load(Ordering::Relaxed) > 0
            && let Some(watched) = self.keys().get_mut(key)
        {
            watched.writes += 1;
        }
    }

    /// The number of writes of a key that is watched.
    pub(super) fn writes(&self, key: &[u8]) -> u64 {
        self.keys().get(key).map_or(0, |watched| watched.writes)
    }
}
