//! The policy of caches: items are evicted for new ones. Its index forgets entries, its region is circular logs.

mod cells;
mod evict;
mod locality;
mod policy;
mod promotions;
mod resize;
mod shape;
mod split;
mod stats;
mod sweep;
mod tiers;

pub(crate) use policy::Evicting;
pub(crate) use shape::{Purpose, Shape};
pub use stats::PartitionStats;
