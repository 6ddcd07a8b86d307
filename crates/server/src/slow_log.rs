//! [`SlowLog`]: the latest commands that took long.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use alluvium_protocol::Arguments;

/// Maximum number of arguments kept of a command, and of bytes of each.
const ARGUMENTS_MAX: usize = 32;
const ARGUMENT_BYTES_MAX: usize = 128;

/// A command that took long.
#[derive(Clone, Debug)]
pub(crate) struct SlowCommand {
    pub(crate) number: u64,
    /// Seconds since 1970.
    pub(crate) at_s: u64,
    pub(crate) duration_us: u64,
    pub(crate) arguments: Vec<Box<[u8]>>,
    pub(crate) peer: String,
    pub(crate) client_name: Box<str>,
}

/// The newest first.
pub(crate) struct SlowLog {
    /// Commands that take longer are kept, in microseconds; none if negative.
    threshold_us: AtomicI64,
    len_max: AtomicUsize,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    newest_first: VecDeque<SlowCommand>,
    next_number: u64,
}

impl Default for SlowLog {
    /// With the settings of Redis.
    fn default() -> Self {
        Self {
            threshold_us: AtomicI64::new(10_000),
            len_max: AtomicUsize::new(128),
            entries: Mutex::default(),
        }
    }
}

impl SlowLog {
    pub(crate) fn threshold_us(&self) -> i64 {
        self.threshold_us.load(Ordering::Relaxed)
    }

    pub(crate) fn set_threshold_us(&self, threshold_us: i64) {
        self.threshold_us.store(threshold_us, Ordering::Relaxed);
    }

    pub(crate) fn len_max(&self) -> usize {
        self.len_max.load(Ordering::Relaxed)
    }

    pub(crate) fn set_len_max(&self, len_max: usize) {
        self.len_max.store(len_max, Ordering::Relaxed);
    }

    /// Whether a command that took this long is kept.
    #[inline]
    pub(crate) fn keeps(&self, duration: Duration) -> bool {
        u128::try_from(self.threshold_us()).is_ok_and(|threshold| duration.as_micros() >= threshold)
    }

    pub(crate) fn add(
        &self,
        arguments: Arguments<'_>,
        secret_from: usize,
        duration: Duration,
        peer: String,
        name: Box<str>,
    ) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut entries = self.entries();
        let number = entries.next_number;
        entries.next_number += 1;
        entries.newest_first.push_front(SlowCommand {
            number,
            at_s: now.as_secs(),
            duration_us: u64::try_from(duration.as_micros()).unwrap_or(u64::MAX),
            arguments: shown(arguments, secret_from),
            peer,
            client_name: name,
        });
        entries.newest_first.truncate(self.len_max());
    }

    pub(crate) fn len(&self) -> usize {
        self.entries().newest_first.len()
    }

    pub(crate) fn newest(&self, count: usize) -> Vec<SlowCommand> {
        self.entries().newest_first.iter().take(count).cloned().collect()
    }

    pub(crate) fn clear(&self) {
        self.entries().newest_first.clear();
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The arguments as they are kept: the first ones, cut, and those from `secret_from` on not at all.
pub(crate) fn shown(arguments: Arguments<'_>, secret_from: usize) -> Vec<Box<[u8]>> {
    let kept = if arguments.len() > ARGUMENTS_MAX { ARGUMENTS_MAX - 1 } else { arguments.len() };
    let mut shown: Vec<Box<[u8]>> = Vec::with_capacity(kept + 1);
    for (position, argument) in arguments.iter().take(kept).enumerate() {
        shown.push(match argument.split_at_checked(ARGUMENT_BYTES_MAX) {
            _ if position >= secret_from => b"(redacted)"[..].into(),
            Some((start, rest)) if !rest.is_empty() => {
                [start, format!("... ({} more bytes)", rest.len()).as_bytes()].concat().into()
            }
            _ => argument.into(),
        });
    }
    if kept < arguments.len() {
        let more = format!("... ({} more arguments)", arguments.len() - kept);
        shown.push(more.into_bytes().into());
    }
    shown
}
