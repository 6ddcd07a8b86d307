//! Search Lookaside Buffer: a small table of hot items' locations in front of any index (Wu's thesis, chapter 2).
//!
//! A lookup that walks an index loads cache lines that it needs only for navigation: nodes of a tree, links of a chain.
//! The buffer answers most lookups with one line of its own, which holds the locations of seven hot items:
//!
//! ```text
//!  key ──► hash ──► line of the cache table: [head | tag, reference | ... 7]
//!                        │ a tag matches                 │ none
//!                        ▼                               ▼
//!             Lookup::resolve: still this key's?    Lookup::search, and now and then:
//!                        │ yes                      log table: looked up more than 3 times lately?
//!                        ▼                               │ yes, or the line has room
//!                       item                             ▼ emit, in place of the coldest of the line
//! ```
//!
//! [`SharedBuffer`] is for many threads, [`OwnedBuffer`] for one; [`Table`] is their common part, with the operations
//! of the paper's interface: find (its `SLB_get`), emit, and change, which is invalidate or update.
//!
//! # Figures
//!
//! | what | figure |
//! |---|---|
//! | memory | 9.14 bytes for each item of capacity, and as much for the log |
//! | a hit | one line of the table, and the item's |
//! | a change of a key | one line of the table |
//! | a lookup of one key during a bypass | a subtraction in memory and a jump: 1 to 2 ns if the index takes 55 ns |
//! | lookups of many keys in a call ([`OwnedBuffer::get_each`]), during a bypass | the same once a call |
//!
//! `bench index --structure slb` measures it in front of six indexes.
//!
//! # Where we differ from the thesis
//!
//! - Readers take no lock, and a line's own version replaces the 1,024 spinlocks: see [`Table`] for why no answer is
//!   stale. Locks need not be taken in any order, because changes do not exclude each other.
//! - Counters have four bits instead of eight, which makes room for that version in the same line, and hits are sampled
//!   like misses: hot lines stay clean in all processors' caches.
//! - The log is as large as the cache table instead of four times.
//! - Whether the table is full, and so whether an item must be hot to enter, is decided by its line, not by the table.
//! - Lookups of many keys in one call load the lines of the next sixteen ahead (decision 0042).
//! - It is bypassed where it does not pay, for example on a short chain: [`Stats::is_aside`], `pilot`.

mod access;
mod batch;
mod clock;
mod config;
mod head;
mod large_memory;
mod line;
mod log_table;
mod lookup;
mod mode;
mod owned;
mod pilot;
mod place;
mod reference;
mod shared;
mod stats;
mod table;
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
mod tags;
mod trial;

pub use clock::{Clock, SystemClock};
pub use config::{Config, Pace};
pub use lookup::Lookup;
pub use mode::{Mode, Owned, Shared};
pub use owned::OwnedBuffer;
pub use reference::Reference;
pub use shared::{Reader, SharedBuffer};
pub use stats::Stats;
pub use table::{Change, Outcome, Table, Ticket, Way};
