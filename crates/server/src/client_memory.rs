//! [`ClientMemory`]: one bound for the bytes that all clients together make the server hold.
//!
//! Workers charge what a connection holds (input that is not executed, replies that are not read, queued commands, the
//! buffers of a streamed value) before they read or copy more for it. Above half of the bound, a client that holds more
//! than [`SMALL_BYTES`] waits: nothing more is read from it. One such client, the favoured one, continues up to the
//! whole bound; a request or reply takes at most half of it, so the favoured one can always finish.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Bytes that a client may hold without being charged for them, and without waiting for others.
pub(crate) const SMALL_BYTES: usize = 4 << 10;
/// What each connection is charged for itself.
pub(crate) const CONNECTION_BYTES: usize = 2 << 10;
/// Minimum of the bound.
pub(crate) const BYTES_MIN: usize = 2 << 20;
/// How long a client is favoured, in multiples of the patience.
const FAVOURED_PATIENCES: u32 = 10;
/// Of no client.
const NOBODY: u64 = 0;

/// The account. The numbers order no other memory, so all are relaxed.
#[derive(Debug)]
pub(crate) struct ClientMemory {
    bytes_max: usize,
    /// How long a client waits until the one that holds the most bytes is closed, and the pause between two of these.
    pub(crate) patience: Duration,
    used: AtomicUsize,
    /// Bytes of clients that are being closed for their memory.
    leaving: AtomicUsize,
    /// Number of the client that may go on up to the bound.
    favoured: AtomicU64,
    favoured_at_ms: AtomicU64,
    /// Clients that wait for memory.
    waiting: AtomicUsize,
    /// Clients that were closed for their memory.
    closed: AtomicU64,
    is_closing: AtomicBool,
    closed_at_ms: AtomicU64,
    started: Instant,
}

impl ClientMemory {
    pub(crate) fn new(bytes_max: usize, patience: Duration) -> Self {
        Self {
            bytes_max: bytes_max.max(BYTES_MIN),
            patience,
            used: AtomicUsize::default(),
            leaving: AtomicUsize::default(),
            favoured: AtomicU64::new(NOBODY),
            favoured_at_ms: AtomicU64::default(),
            waiting: AtomicUsize::default(),
            closed: AtomicU64::default(),
            is_closing: AtomicBool::default(),
            closed_at_ms: AtomicU64::default(),
            started: Instant::now(),
        }
    }

    #[inline]
    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    #[inline]
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Maximum number of bytes of one request, and of one reply that is not streamed.
    #[inline]
    pub(crate) fn one_bytes_max(&self) -> usize {
        self.bytes_max() / 2
    }

    /// Number of connections for which half of the bound suffices.
    pub(crate) fn connections_max(&self) -> usize {
        self.bytes_max() / 2 / CONNECTION_BYTES
    }

    /// Whether clients may hold more than a few bytes.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.used() <= self.bytes_max() / 2
    }

    /// Whether more than all is used, beside what is on its way out.
    #[inline]
    pub(crate) fn is_exceeded(&self) -> bool {
        self.used().saturating_sub(self.leaving.load(Ordering::Relaxed)) > self.bytes_max()
    }

    /// Charges bytes if they fit.
    pub(crate) fn try_charge(&self, bytes: usize) -> bool {
        let bytes_max = self.bytes_max();
        let add = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= bytes_max);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    /// Charges bytes that are held already.
    pub(crate) fn charge(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn release(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether this client may go on although there is no room: one at a time may, for a limited time.
    pub(crate) fn favours(&self, session: u64) -> bool {
        let now = self.now_ms();
        let holder = self.favoured.load(Ordering::Relaxed);
        let is_expired = now.saturating_sub(self.favoured_at_ms.load(Ordering::Relaxed)) > self.favour_ms();
        if holder == session {
            return !is_expired;
        }
        if holder != NOBODY && !is_expired {
            return false;
        }
        let order = Ordering::Relaxed;
        let is_ours = self.favoured.compare_exchange(holder, session, order, order).is_ok();
        if is_ours {
            self.favoured_at_ms.store(now, Ordering::Relaxed);
        }
        is_ours
    }

    /// Lets another client be favoured.
    #[inline]
    pub(crate) fn end_favour(&self, session: u64) {
        if self.favoured.load(Ordering::Relaxed) == session {
            let _ = self.favoured.compare_exchange(session, NOBODY, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// The client that must not be closed, if there is one.
    fn protected(&self) -> u64 {
        let age = self.now_ms().saturating_sub(self.favoured_at_ms.load(Ordering::Relaxed));
        if age > self.favour_ms() { NOBODY } else { self.favoured.load(Ordering::Relaxed) }
    }

    /// Closes clients by `close`, which returns the number and the bytes of those that it closes. If the bound is
    /// exceeded, they are to free a quarter of it as well; otherwise it is one client, since another one has `waited`,
    /// and one at a time.
    pub(crate) fn relieve(&self, waited: Duration, close: impl FnOnce(Relief) -> (u64, usize)) {
        if self.is_closing.swap(true, Ordering::Acquire) {
            return;
        }
        let (now, bytes_max) = (self.now_ms(), self.bytes_max());
        let used = self.used().saturating_sub(self.leaving.load(Ordering::Relaxed));
        let since = now.saturating_sub(self.closed_at_ms.load(Ordering::Relaxed));
        let is_patient = since < self.patience.as_millis() as u64;
        if used > bytes_max || (!self.has_room() && !is_patient) {
            let bytes = if used > bytes_max { used - bytes_max / 4 * 3 } else { 1 };
            // The favoured one will free what it holds; but others do not wait for one after the other.
            let yields = used <= bytes_max && waited < self.favour();
            let (closed, bytes) = close(Relief { bytes, favoured: self.protected(), yields });
            if closed > 0 {
                self.leaving.fetch_add(bytes, Ordering::Relaxed);
                self.closed.fetch_add(closed, Ordering::Relaxed);
                self.closed_at_ms.store(now, Ordering::Relaxed);
            }
        }
        self.is_closing.store(false, Ordering::Release);
    }

    /// Notes that a client that was to be closed has left.
    pub(crate) fn left(&self, bytes: usize) {
        if bytes > 0 {
            self.leaving.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    pub(crate) fn begin_wait(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end_wait(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Number of clients that wait for memory.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Number of clients that were closed for their memory.
    pub(crate) fn closed(&self) -> u64 {
        self.closed.load(Ordering::Relaxed)
    }

    fn favour(&self) -> Duration {
        self.patience * FAVOURED_PATIENCES
    }

    fn favour_ms(&self) -> u64 {
        self.favour().as_millis() as u64
    }

    fn now_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }
}

/// Which clients are to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Relief {
    /// Bytes that they hold at least.
    pub(crate) bytes: usize,
    /// A client that stays if it makes progress.
    pub(crate) favoured: u64,
    /// None is closed while that one makes progress.
    pub(crate) yields: bool,
}

#[cfg(test)]
#[path = "client_memory_test.rs"]
mod tests;
