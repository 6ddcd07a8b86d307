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
//! [`Buffer`] is table and index together, and [`Reader`] a thread's lookups in it. [`Table`] alone has the operations
//! of the paper's interface: find (its `SLB_get`), emit, and change, which is invalidate or update.
//!
//! # Figures
//!
//! | what | figure |
//! |---|---|
//! | memory | 9.14 bytes for each item of capacity, and as much for the log |
//! | a hit | one line of the table, and the item's |
//! | a change of a key | one line of the table |
//! | a lookup of one key in a bypassed buffer | a load and a branch: 1 ns if the index takes 55 ns |
//! | lookups of many keys in a call ([`Buffer::get_each`]), bypassed | the same once a call |
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
//! - Lookups of many keys in one call load the lines of the next sixteen ahead (decision 0035).
//! - It is bypassed where it does not pay, for example on a short chain: [`Buffer::calibrate`] decides.

mod buffer;
mod calibration;
mod head;
mod large_memory;
mod line;
mod log_table;
mod lookup;
mod place;
mod reader;
mod reference;
mod table;
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
mod tags;

pub use buffer::{Buffer, Config};
pub use calibration::Calibration;
pub use lookup::Lookup;
pub use reader::{Reader, Stats};
pub use reference::Reference;
pub use table::{Change, Outcome, Table, Ticket, Way};
