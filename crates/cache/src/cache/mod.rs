//! The public interface: a cache of partitions.

mod builder;
mod era;
mod handle;
mod keyed;
mod resize;
mod scan;
mod stats;
mod update;
mod writer;

pub use builder::{Builder, Compressed};
pub use era::Era;
pub use handle::{Cache, SetOptions};
#[cfg(all(target_os = "linux", not(miri), not(loom)))]
pub(crate) use keyed::KeyedWrites;
pub use scan::{Cursor, OwnedItem};
#[cfg(all(target_os = "linux", not(miri), not(loom)))]
pub(crate) use scan::{HASH_SHIFT, copies};
pub use stats::Stats;
#[cfg(all(target_os = "linux", not(miri), not(loom)))]
pub(crate) use update::keyed_writes;
pub use update::{IncrementError, Outcome, Update};
pub use writer::Writer;
