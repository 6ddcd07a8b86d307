//! A partition: indexes and logs of its own, a part of the key hashes (Lim's thesis, §5.3.1).
//!
//! `read` has what any thread may do, the other files what writers do behind the gate.

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

/// What all partitions of a cache have in common.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    pub hasher: Hasher,
    pub eviction: Eviction,
    pub clock: Arc<dyn Clock>,
    /// Tells the cache from all others of the process.
    pub cache_number: u64,
    /// When the cache was made, by the clock's monotonic time, in milliseconds.
    pub epoch_ms: u64,
    /// Width of positions; narrower ones are for tests, in which they shall repeat.
    pub position_bits: u32,
}

impl Common {
    /// Milliseconds since the cache was made, and one.
    pub fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.monotonic().as_millis())
            .unwrap_or(u64::MAX)
            .saturating_sub(self.epoch_ms)
            .saturating_add(1)
    }
}

/// See the module.
///
/// What operations store to has cache lines of its own, apart from what every operation loads: else each set would take
/// from the other processors what their next get begins with.
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
    /// What the system says when it refuses the memory.
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

    /// What writers pass.
    pub fn gate(&self) -> &A::Gate {
        &self.gate
    }

    /// What every writing operation passes first, and holds until it has ended.
    ///
    /// # Panics
    /// From within a function that was given an item of the cache.
    #[inline(always)]
    pub(super) fn enter(&self) -> <A::Gate as Gate>::Writing<'_> {
        reentry::refuse_within(self.common.cache_number);
        self.gate.enter()
    }

    /// Forbids the thread to write to the cache until the result is dropped: while a function of the caller's, behind
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
