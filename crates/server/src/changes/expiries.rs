//! [`Expiries`]: when keys expire, while somebody wants to know.
//!
//! An expired key is absent to every command, and its space is freed by a conversion, which does not look at it. So
//! nothing in a store notices that a key expires. While events of expiry are published, or clients keep values, the
//! server remembers the expiry of keys that are written, and of keys that such clients read, up to a bound.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::change::Change;
use super::classes::Classes;
use super::event::Event;
use crate::mail::Outbox;
use crate::shared::Shared;
use crate::store::DatabaseNumber;

/// Maximum bytes of the keys that are remembered, with what each takes besides.
const BYTES_MAX: usize = 64 << 20;
/// Approximate number of bytes that a key takes besides its own, in a map and a set.
const ENTRY_BYTES: usize = 160;
/// Maximum number of keys that are looked at together.
const AT_ONCE: usize = 1024;
/// How often it is looked for keys that have expired.
const PERIOD: Duration = Duration::from_millis(100);

/// Keys with their expiry.
#[derive(Debug, Default)]
pub(crate) struct Expiries {
    entries: Mutex<Entries>,
    /// Number of keys. While it is 0, no lock is taken.
    len: AtomicUsize,
}

#[derive(Debug, Default)]
struct Entries {
    by_key: HashMap<(DatabaseNumber, Arc<[u8]>), u64>,
    by_time: BTreeSet<(u64, DatabaseNumber, Arc<[u8]>)>,
    bytes: usize,
}

impl Entries {
    fn remove(&mut self, database: DatabaseNumber, key: &Arc<[u8]>) {
        if let Some(at_ms) = self.by_key.remove(&(database, key.clone())) {
            self.by_time.remove(&(at_ms, database, key.clone()));
            self.bytes -= key.len() + ENTRY_BYTES;
        }
    }
}

impl Expiries {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes when a key expires, or that it does not.
    pub(super) fn note(&self, database: DatabaseNumber, key: &[u8], expires_at_ms: Option<u64>) {
        if expires_at_ms.is_none() && self.len.load(Ordering::Relaxed) == 0 {
            return;
        }
        let key: Arc<[u8]> = key.into();
        let mut entries = self.entries();
        entries.remove(database, &key);
        if let Some(at_ms) = expires_at_ms
            && entries.bytes + key.len() + ENTRY_BYTES <= BYTES_MAX
        {
            entries.bytes += key.len() + ENTRY_BYTES;
            entries.by_time.insert((at_ms, database, key.clone()));
            entries.by_key.insert((database, key), at_ms);
        }
        self.len.store(entries.by_key.len(), Ordering::Relaxed);
    }

    /// Whether a key has expired, which was not noticed yet.
    pub(super) fn is_due(&self, database: DatabaseNumber, key: &[u8]) -> bool {
        if self.len.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let at_ms = self.entries().by_key.get(&(database, key.into())).copied();
        at_ms.is_some_and(|at_ms| at_ms <= now_ms())
    }

    /// Forgets the keys of a database.
    pub(crate) fn clear(&self, database: DatabaseNumber) {
        if self.len.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut entries = self.entries();
        let keys: Vec<_> = entries.by_key.keys().filter(|(number, _)| *number == database).cloned().collect();
        keys.iter().for_each(|(number, key)| entries.remove(*number, key));
        self.len.store(entries.by_key.len(), Ordering::Relaxed);
    }

    /// Takes some keys that have expired at `now_ms`.
    fn take_due(&self, now_ms: u64) -> Vec<(DatabaseNumber, Arc<[u8]>)> {
        if self.len.load(Ordering::Relaxed) == 0 {
            return Vec::new();
        }
        let mut entries = self.entries();
        let due = entries.by_time.iter().take_while(|(at_ms, ..)| *at_ms <= now_ms).take(AT_ONCE);
        let due: Vec<_> = due.map(|(_, database, key)| (*database, key.clone())).collect();
        due.iter().for_each(|(database, key)| entries.remove(*database, key));
        self.len.store(entries.by_key.len(), Ordering::Relaxed);
        due
    }
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// Tells those who want to know that keys have expired. Returns how long to wait before the next call; `None` if nobody
/// wants to know.
pub(crate) fn expire_due(shared: &Shared) -> Option<Duration> {
    let observed = shared.observers.get();
    if !observed.has_tracking() && !observed.classes().intersects(Classes::EXPIRED) {
        return None;
    }
    let due = shared.expiries.take_due(now_ms());
    let wait = if due.len() == AT_ONCE { Duration::ZERO } else { PERIOD };
    let mut outbox = Outbox::default();
    for (database, key) in due {
        // If it is there, it was written since, and that write has noted its expiry, or will.
        if let Ok(false) = shared.store.database(database).contains(&key) {
            super::record(&mut outbox, shared, Change { database, key, writer: 0 }, Event::EXPIRED);
        }
    }
    outbox.send(shared);
    Some(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_due_once_and_the_last_note_counts() {
        let expiries = Expiries::default();
        let [zero, one] = [0, 1].map(|number| DatabaseNumber::new(number).unwrap());
        expiries.note(zero, b"a", Some(10));
        expiries.note(zero, b"b", Some(20));
        expiries.note(one, b"b", Some(30));
        expiries.note(zero, b"a", Some(25));
        expiries.note(zero, b"c", Some(5));
        expiries.note(zero, b"c", None);
        assert_eq!(expiries.take_due(19), []);
        assert_eq!(expiries.take_due(25), [(zero, b"b"[..].into()), (zero, b"a"[..].into())]);
        assert_eq!(expiries.take_due(25), []);
        assert!(expiries.is_due(one, b"b"));
        expiries.clear(one);
        assert_eq!(expiries.take_due(100), []);
        assert_eq!(expiries.entries().bytes, 0);
    }

    #[test]
    fn the_bytes_are_bounded() {
        let expiries = Expiries::default();
        let key = vec![0; 1 << 20];
        for number in 0..100u8 {
            let key = [&[number], &key[..]].concat();
            expiries.note(DatabaseNumber::FIRST, &key, Some(1));
        }
        assert_eq!(expiries.take_due(1).len(), 63);
    }
}
