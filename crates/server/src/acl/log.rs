//! [`Log`]: what users wanted to do and may not.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Events of the same kind within this time are one entry.
const GROUPED_WITHIN: Duration = Duration::from_secs(60);
/// Number of the latest entries among which an event looks for one of its kind.
const COMPARED_MAX: usize = 10;
const LEN_DEFAULT: usize = 128;
/// Maximum length of what is kept of a key or a name.
const OBJECT_BYTES_MAX: usize = 1024;

/// Why an event is in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Command,
    Key,
    Channel,
    Password,
}

impl Reason {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Key => "key",
            Self::Channel => "channel",
            Self::Password => "auth",
        }
    }
}

/// Where the command was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    TopLevel,
    Transaction,
    Script,
}

impl Place {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::TopLevel => "toplevel",
            Self::Transaction => "multi",
            Self::Script => "lua",
        }
    }
}

/// Equal events.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) count: u64,
    pub(crate) reason: Reason,
    pub(crate) place: Place,
    /// The command, key or channel.
    pub(crate) object: Box<[u8]>,
    pub(crate) user: Box<[u8]>,
    /// When the last of them was.
    pub(crate) at: Instant,
    /// The client of the last of them, as `CLIENT LIST` shows it.
    pub(crate) client: String,
}

/// The latest events, the last one first.
#[derive(Debug)]
pub(crate) struct Log {
    entries: Mutex<VecDeque<Entry>>,
    len_max: AtomicUsize,
}

impl Default for Log {
    fn default() -> Self {
        Self { entries: Mutex::default(), len_max: AtomicUsize::new(LEN_DEFAULT) }
    }
}

impl Log {
    pub(crate) fn len_max(&self) -> usize {
        self.len_max.load(Ordering::Relaxed)
    }

    pub(crate) fn set_len_max(&self, len_max: usize) {
        self.len_max.store(len_max, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, reason: Reason, place: Place, object: &[u8], user: &[u8], client: String) {
        let object = &object[..object.len().min(OBJECT_BYTES_MAX)];
        let user = &user[..user.len().min(OBJECT_BYTES_MAX)];
        let now = Instant::now();
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let same = entries.iter().take(COMPARED_MAX).position(|entry| {
            entry.reason == reason
                && entry.place == place
                && *entry.object == *object
                && *entry.user == *user
                && now.duration_since(entry.at) <= GROUPED_WITHIN
        });
        let count = same.and_then(|position| entries.remove(position)).map_or(0, |entry| entry.count) + 1;
        let (object, user) = (object.into(), user.into());
        entries.push_front(Entry { count, reason, place, object, user, at: now, client });
        entries.truncate(self.len_max());
    }

    /// The latest entries, the last one first.
    pub(crate) fn latest(&self, count: usize) -> Vec<Entry> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.iter().take(count).cloned().collect()
    }

    pub(crate) fn clear(&self) {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_events_are_counted_and_the_log_is_bounded() {
        let log = Log::default();
        let add =
            |object: &str| log.add(Reason::Key, Place::TopLevel, object.as_bytes(), b"u", String::new());
        ["a", "b", "a"].into_iter().for_each(add);
        let entries = log.latest(10);
        assert_eq!(
            entries.iter().map(|entry| (&*entry.object, entry.count)).collect::<Vec<_>>(),
            [(&b"a"[..], 2), (b"b", 1)]
        );
        log.set_len_max(5);
        (0..20).for_each(|number| add(&number.to_string()));
        assert_eq!(log.latest(10).len(), 5);
        log.clear();
        assert!(log.latest(10).is_empty());
    }
}
