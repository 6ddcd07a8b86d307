//! Indexes: from a key's hash to the position of its item.
//!
//! [`lossy`] is MICA's lossy concurrent hash index (Lim's thesis, §5.3.3, Figure 5.6), for caches; [`chained`] is the
//! lossless one, for stores.

pub(crate) mod bucket;
mod chained;
mod counts;
mod entry;
mod lossy;
mod place;
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
mod tags;
mod traits;
mod version;

pub(crate) use chained::{ChainedIndex, SPARE_PERCENT, spares_for_chance};
pub(crate) use counts::AccessCounts;
pub(crate) use entry::Entry;
pub(crate) use lossy::LossyIndex;
pub(crate) use place::{Place, first_hash, owner_of, partition_of};
pub(crate) use traits::{Index, Slot};
pub(crate) use version::{Version, VersionCounter, Versioned};
