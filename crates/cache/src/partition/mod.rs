//! A partition: an index and a region of its own for a part of the key hashes (Lim's thesis, §5.3.1).
//!
//! A partition is generic over its [`Policy`], which chooses index and region and decides who leaves when there is no
//! room. A read has three steps: [`lend`] where no thread writes beside readers, [`fast`] for the common case, [`read`]
//! for every case. [`write`](mod@write) and the files after it contain what writers do behind the gate.
//!
//! Items are in tiers: the [`cells`] in front of the index, then the region. A reader looks in this order. An item that
//! moves is stored in its new place before it leaves the old one, so a reader that found it in no tier finally checks
//! that the earlier ones have not changed.

mod body;
mod cells;
mod change;
mod counters;
mod fast;
mod get;
mod grow;
mod lend;
mod policy;
mod read;
mod tables;
mod visit;
mod write;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use alluvium_base::KeyHash;
use alluvium_io::{Clock, SystemClock};
use crossbeam_utils::CachePadded;

use crate::access::{Access, Gate, Loan};
use crate::hasher::Hasher;
use crate::item::{ItemView, Metadata, Stored};
use crate::memory::{Published, UNIT_BYTES};
use crate::reentry::{self, Deciding};

pub(crate) use body::{Body, Found};
pub(crate) use cells::Ahead;
pub(crate) use counters::{Counters, ReadCounters};
pub(crate) use policy::Policy;
pub(crate) use tables::Tables;
pub(crate) use write::{Change, Write};

/// Keys up to this length are copied to the stack for hashing.
const SHORT_KEY_BYTES: usize = 128;

/// Settings that all partitions of a cache or store share.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    pub hasher: Hasher,
    pub clock: Arc<dyn Clock>,
    /// Distinguishes the cache or store from all others of the process.
    pub number: u64,
    /// When it was made, by the clock's monotonic time, in milliseconds.
    pub epoch_ms: u64,
}

/// Number of caches and stores made so far.
static MADE: AtomicU64 = AtomicU64::new(0);

impl Default for Common {
    fn default() -> Self {
        Self { hasher: Hasher::default(), clock: Arc::new(SystemClock::default()), number: 0, epoch_ms: 0 }
    }
}

impl Common {
    /// The settings of a cache or store that is made now.
    pub fn started(self) -> Self {
        let epoch_ms = u64::try_from(self.clock.monotonic().as_millis()).unwrap_or(u64::MAX);
        Self { epoch_ms, number: MADE.fetch_add(1, Ordering::Relaxed), ..self }
    }

    /// The number that stands for a time of the clock: milliseconds since the cache or store was made, plus one.
    pub fn number_of(&self, time: Duration) -> u64 {
        u64::try_from(time.as_millis()).unwrap_or(u64::MAX).saturating_sub(self.epoch_ms).saturating_add(1)
    }

    /// Milliseconds since the cache or store was made, plus one.
    pub fn now_ms(&self) -> u64 {
        self.number_of(self.clock.monotonic())
    }
}

/// See the module.
///
/// Fields that operations store to have cache lines of their own, apart from those that every operation loads:
/// otherwise each set would take from the other processors the line with which their next get starts.
pub(crate) struct Partition<P: Policy, A: Access> {
    gate: CachePadded<A::Gate>,
    pub body: Published<Body<P>>,
    pub common: Common,
    /// The policy's [`counted_max`](Policy::counted_max).
    counted_max: u32,
    pub policy: P,
    pub counters: CachePadded<Counters>,
}

impl<P: Policy, A: Access> Partition<P, A> {
    /// A partition with these parts, which are empty.
    pub fn new(common: Common, policy: P, body: Body<P>) -> Self {
        Self {
            gate: CachePadded::default(),
            body: Published::new(body),
            common,
            counted_max: policy.counted_max(),
            policy,
            counters: CachePadded::default(),
        }
    }

    /// The gate through which writers pass.
    pub fn gate(&self) -> &A::Gate {
        &self.gate
    }

    /// The first step of every writing operation; the operation holds the result until it ends.
    ///
    /// # Panics
    /// Within a function that was given an item of the cache.
    #[inline(always)]
    pub fn enter(&self) -> <A::Gate as Gate>::Writing<'_> {
        reentry::refuse_within(self.common.number);
        self.gate.enter()
    }

    /// Keeps the thread from writing to the cache until the result is dropped: while a function of the caller, behind
    /// the gate, decides about an item.
    pub fn decide(&self) -> (Loan<'_>, Deciding) {
        (self.gate.lend(), Deciding::about(self.common.number))
    }

    /// Whether an item with this metadata has expired.
    #[inline(always)]
    pub fn is_expired(&self, metadata: Metadata) -> bool {
        metadata.expires_at_ms != 0 && metadata.expires_at_ms <= self.common.now_ms()
    }

    /// An item as a callback sees it.
    #[inline(always)]
    pub fn view<'a>(&self, value: &'a [u8], metadata: Metadata) -> ItemView<'a> {
        let flags = metadata.flags;
        if metadata.expires_at_ms == 0 {
            return ItemView { value, flags, time_to_live: None, expires_at: None };
        }
        let left_ms = metadata.expires_at_ms.saturating_sub(self.common.now_ms());
        let expires_at_ms = (metadata.expires_at_ms - 1).saturating_add(self.common.epoch_ms);
        ItemView {
            value,
            flags,
            time_to_live: Some(Duration::from_millis(left_ms)),
            expires_at: Some(Duration::from_millis(expires_at_ms)),
        }
    }

    /// The hash of an item's key.
    #[inline(always)]
    pub fn hash_of(&self, stored: Stored<'_>) -> KeyHash {
        let len = stored.header.key_len();
        if len == UNIT_BYTES {
            let mut key = [0; UNIT_BYTES];
            stored.copy_key(&mut key);
            return self.common.hasher.hash(&key);
        }
        let (mut short, mut long) = ([0; SHORT_KEY_BYTES], Vec::new());
        let key = match short.get_mut(..len) {
            Some(key) => key,
            None => {
                long.resize(len, 0);
                &mut long[..]
            }
        };
        stored.copy_key(key);
        self.common.hasher.hash(key)
    }
}

impl<P: Policy, A: Access> fmt::Debug for Partition<P, A> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Partition").field("items", &self.counters.items()).finish_non_exhaustive()
    }
}
