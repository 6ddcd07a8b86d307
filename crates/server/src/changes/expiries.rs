//! [`Expiries`]: when keys expire, while somebody wants to know.
//!
//! An expired key is absent to every command, and its space is freed by a conversion, which does not look at it. So
//! nothing in a store notices that a key expires. While events of expiry are published, or clients keep values, the
//! server remembers the expiry of keys that are written, and of keys that such clients read, up to a bound.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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
/// How long an expired key is left to the writer that publishes its end, and notes its new expiry after the commit.
const NOTICED_MS: u64 = 1000;

/// Keys with their expiry.
#[derive(Debug, Default)]
pub(crate) struct Expiries {
    entries: Mutex<Entries>,
    /// Number of keys. While it is 0 and the end of none is published, no lock is taken.
    len: AtomicUsize,
    /// Held while the end of a key is published, so that what its next writer publishes comes later.
    publishing: Mutex<()>,
    is_publishing: AtomicBool,
}

/// When a key expires.
#[derive(Clone, Copy, Debug)]
struct Expiry {
    at_ms: u64,
    /// When it was found that a writer publishes its end.
    noticed_ms: Option<u64>,
}

/// A key that has expired.
#[derive(Debug, PartialEq, Eq)]
struct Due {
    database: DatabaseNumber,
    key: Arc<[u8]>,
    at_ms: u64,
    /// It was left to a writer before.
    was_noticed: bool,
}

#[derive(Debug, Default)]
struct Entries {
    by_key: HashMap<(DatabaseNumber, Arc<[u8]>), Expiry>,
    by_time: BTreeSet<(u64, DatabaseNumber, Arc<[u8]>)>,
    bytes: usize,
}

impl Entries {
    /// The key of an entry in the order of time, unless it is left to a writer.
    fn due(
        &self,
        &(at_ms, database, ref key): &(u64, DatabaseNumber, Arc<[u8]>),
        now_ms: u64,
    ) -> Option<Due> {
        let Expiry { noticed_ms, .. } = self.by_key.get(&(database, key.clone()))?;
        let is_left = noticed_ms.is_some_and(|noticed| noticed + NOTICED_MS > now_ms);
        let was_noticed = noticed_ms.is_some();
        (!is_left).then(|| Due { database, key: key.clone(), at_ms, was_noticed })
    }

    fn remove(&mut self, database: DatabaseNumber, key: &Arc<[u8]>) {
        if let Some(Expiry { at_ms, .. }) = self.by_key.remove(&(database, key.clone())) {
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
            entries.by_key.insert((database, key), Expiry { at_ms, noticed_ms: None });
        }
        self.len.store(entries.by_key.len(), Ordering::Relaxed);
    }

    /// Whether a key has expired and its end was not published. Then the caller, which writes it, must publish it.
    pub(super) fn is_due(&self, database: DatabaseNumber, key: &[u8]) -> bool {
        if self.len.load(Ordering::SeqCst) == 0 && !self.is_publishing.load(Ordering::SeqCst) {
            return false;
        }
        let _publishing = self.publishing.lock().unwrap_or_else(PoisonError::into_inner);
        let now_ms = now_ms();
        let mut entries = self.entries();
        let Some(expiry) = entries.by_key.get_mut(&(database, key.into())) else { return false };
        let is_due = expiry.at_ms <= now_ms;
        if is_due {
            expiry.noticed_ms = Some(now_ms);
        }
        is_due
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

    /// Some keys that have expired at `now_ms`, without those that are left to a writer.
    fn due(&self, now_ms: u64) -> Vec<Due> {
        if self.len.load(Ordering::Relaxed) == 0 {
            return Vec::new();
        }
        let entries = self.entries();
        let due = entries.by_time.iter().take_while(|(at_ms, ..)| *at_ms <= now_ms);
        due.filter_map(|entry| entries.due(entry, now_ms)).take(AT_ONCE).collect()
    }

    /// Leaves a key, which is there again, to its writer; forgets it if that was tried before.
    fn leave(&self, due: &Due) {
        let mut entries = self.entries();
        match entries.by_key.get_mut(&(due.database, due.key.clone())) {
            Some(expiry) if expiry.at_ms == due.at_ms && due.was_noticed => {
                entries.remove(due.database, &due.key);
                self.len.store(entries.by_key.len(), Ordering::Relaxed);
            }
            Some(expiry) if expiry.at_ms == due.at_ms => expiry.noticed_ms = Some(now_ms()),
            _ => {}
        }
    }

    /// Forgets a key that has expired and calls `publish`, unless a writer was faster.
    fn publish(&self, due: &Due, publish: impl FnOnce()) {
        let _publishing = self.publishing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut entries = self.entries();
        let entry = (due.at_ms, due.database, due.key.clone());
        if !entries.by_time.contains(&entry) || entries.due(&entry, now_ms()).is_none() {
            return;
        }
        // Before the key is forgotten, so that its next writer waits.
        self.is_publishing.store(true, Ordering::SeqCst);
        entries.remove(due.database, &due.key);
        self.len.store(entries.by_key.len(), Ordering::SeqCst);
        drop(entries);
        publish();
        self.is_publishing.store(false, Ordering::SeqCst);
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
    let due = shared.expiries.due(now_ms());
    let mut published = 0;
    for due in &due {
        match shared.store.database(due.database).contains(&due.key) {
            // It was written since, and that write has noted its expiry, or will.
            Ok(true) => shared.expiries.leave(due),
            Ok(false) => shared.expiries.publish(due, || {
                let (mut outbox, key) = (Outbox::default(), (&*due.key).into());
                let change = Change { database: due.database, key, writer: 0 };
                super::record(&mut outbox, shared, change, Event::EXPIRED);
                outbox.send(shared);
                published += 1;
            }),
            Err(_) => {}
        }
    }
    Some(if due.len() == AT_ONCE && published > 0 { Duration::ZERO } else { PERIOD })
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
        assert_eq!(keys(&expiries, 19), Vec::<Box<[u8]>>::new());
        let due = expiries.due(25);
        assert_eq!(keys(&expiries, 25), [b"b".as_slice().into(), b"a".as_slice().into()]);
        let mut published = 0;
        for due in due.iter().chain(&due) {
            expiries.publish(due, || published += 1);
        }
        assert_eq!(published, 2);
        assert_eq!(expiries.due(25), []);
        assert!(expiries.is_due(one, b"b"));
        // It is left to the writer that has asked.
        assert_eq!(expiries.due(now_ms()), []);
        assert_eq!(keys(&expiries, now_ms() + NOTICED_MS).len(), 1);
        expiries.clear(one);
        assert_eq!(expiries.due(u64::MAX), []);
        // It is there again: left to its writer, and then forgotten.
        expiries.note(one, b"c", Some(1));
        expiries.leave(&expiries.due(1)[0]);
        assert_eq!(expiries.due(now_ms()), []);
        expiries.leave(&expiries.due(now_ms() + NOTICED_MS)[0]);
        assert_eq!(expiries.due(u64::MAX), []);
        assert_eq!(expiries.entries().bytes, 0);
    }

    #[test]
    fn a_writer_waits_until_the_end_of_its_key_is_published() {
        let expiries = Expiries::default();
        expiries.note(DatabaseNumber::FIRST, b"a", Some(10));
        let due = expiries.due(10);
        std::thread::scope(|scope| {
            let (sender, receiver) = std::sync::mpsc::channel();
            expiries.publish(&due[0], || {
                let expiries = &expiries;
                scope.spawn(move || {
                    assert!(!expiries.is_due(DatabaseNumber::FIRST, b"a"));
                    sender.send(()).unwrap();
                });
                receiver.recv_timeout(Duration::from_millis(20)).unwrap_err();
            });
            receiver.recv().unwrap();
        });
    }

    #[test]
    fn the_bytes_are_bounded() {
        let expiries = Expiries::default();
        let key = vec![0; 1 << 20];
        for number in 0..100u8 {
            let key = [&[number], &key[..]].concat();
            expiries.note(DatabaseNumber::FIRST, &key, Some(1));
        }
        assert_eq!(expiries.due(1).len(), 63);
    }

    fn keys(expiries: &Expiries, now_ms: u64) -> Vec<Box<[u8]>> {
        expiries.due(now_ms).iter().map(|due| (&*due.key).into()).collect()
    }
}
