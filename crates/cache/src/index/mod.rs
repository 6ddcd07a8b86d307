//! Indexes: from a key's hash to the position of its item.
//!
//! [`lossy`] is MICA's lossy concurrent hash index (Lim's thesis, §5.3.3, Figure 5.6), for caches.

pub(crate) mod bucket;
mod counts;
mod entry;
pub(crate) mod lossy;
mod place;
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
mod tags;
mod version;

pub(crate) use counts::AccessCounts;
pub(crate) use entry::Entry;
pub(crate) use lossy::LossyIndex;
pub(crate) use place::{Place, first_hash, owner_of, partition_of};
pub(crate) use version::{Version, VersionCounter, Versioned};
