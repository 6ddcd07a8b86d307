//! A partition: an index and logs of its own for a part of the key hashes (Lim's thesis, §5.3.1).
//!
//! `read` contains what any thread may do, the other files what writers do behind the gate.

mod body;
mod counters;
mod evict;
mod glance;
mod grow;
mod inline;
mod lend;
mod link;
mod promotions;
mod read;
mod resize;
mod sweep;
mod visit;
mod write;

use std::fmt;
use std::io;
use std::sync::Arc;

use alluvium_io::Clock;
use crossbeam_utils::CachePadded;

use crate::access::{Access, Gate, Loan};
use crate::eviction::Eviction;
use crate::hasher::Hasher;
use crate::memory::Published;
use crate::reentry::{self, Deciding};

pub(crate) use body::{Body, Purpose, Shape};
pub(crate) use counters::{Counters, ReadCounters};
pub(crate) use inline::Ahead;
pub(crate) use read::Stored;
pub(crate) use write::{Change, Write};

use promotions::Promotions;
use sweep::Sweeper;

/// Settings that all partitions of a cache share.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    pub hasher: Hasher,
    pub eviction: Eviction,
    pub clock: Arc<dyn Clock>,
    /// Distinguishes the cache from all others of the process.
    pub cache_number: u64,
    /// When the cache was made, by the clock's monotonic time, in milliseconds.
    pub epoch_ms: u64,
    /// Width of positions; narrower ones are for tests in which they have to repeat.
    pub position_bits: u32,
}

impl Common {
    /// Milliseconds since the cache was made, plus one.
    pub fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.monotonic().as_millis())
            .unwrap_or(u64::MAX)
            .saturating_sub(self.epoch_ms)
            .saturating_add(1)
    }
}

/// See the module.
///
/// Fields that operations store to have cache lines of their own, apart from those that every operation loads:
/// otherwise each set would take from the other processors the line with which their next get starts.
pub(crate) struct Partition<A: Access> {
    pub(super) gate: CachePadded<A::Gate>,
    pub(super) body: Published<Body>,
    pub(super) common: Common,
    /// The policy's [`counted_max`](Eviction::counted_max).
    counted_max: u32,
    pub(super) counters: CachePadded<Counters>,
    pub(super) reads: ReadCounters,
    promotions: CachePadded<Promotions>,
    sweeper: CachePadded<Sweeper>,
}

impl<A: Access> Partition<A> {
    /// An empty partition.
    ///
    /// # Errors
    /// The system's error if it refuses the memory.
    pub fn new(common: Common, shape: Shape) -> io::Result<Self> {
        Ok(Self {
            gate: CachePadded::default(),
            body: Published::new(Body::new(shape, 0, &common)?),
            counted_max: common.eviction.counted_max(),
            common,
            counters: CachePadded::default(),
            reads: ReadCounters::default(),
            promotions: CachePadded::default(),
            sweeper: CachePadded::default(),
        })
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
    pub(super) fn enter(&self) -> <A::Gate as Gate>::Writing<'_> {
        reentry::refuse_within(self.common.cache_number);
        self.gate.enter()
    }

    /// Keeps the thread from writing to the cache until the result is dropped: while a function of the caller, behind
    /// the gate, decides about an item.
    pub fn decide(&self) -> (Loan<'_>, Deciding) {
        (self.gate.lend(), Deciding::about(self.common.cache_number))
    }
}

impl<A: Access> fmt::Debug for Partition<A> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Partition").field("items", &self.counters.items()).finish_non_exhaustive()
    }
}
