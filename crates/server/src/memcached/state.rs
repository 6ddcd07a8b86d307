//! [`State`]: what the requests of all memcached clients share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::counts::SharedCounts;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) counts: SharedCounts,
    pub(super) tickets: Tickets,
    /// When all items are to be removed, in seconds since 1970; 0 for never. The latest `flush_all` decides.
    pub(super) flush_at_s: AtomicU64,
}

/// Set in CAS identifiers that are digests, and in no ticket.
pub(super) const DIGEST: u64 = 1 << 63;

/// CAS identifiers that no item had before. An item gets one when a client wins the right to make its next value: if
/// the client comes too late, its value must not replace that of another one, even if the items are equal.
///
/// They ascend, also over restarts, as long as the clock does.
#[derive(Debug)]
pub(super) struct Tickets(AtomicU64);

impl Default for Tickets {
    fn default() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(AtomicU64::new(now.as_nanos() as u64))
    }
}

impl Tickets {
    pub(super) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) & !DIGEST
    }
}
