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
pub use scan::{Cursor, OwnedItem};
pub use stats::Stats;
pub use update::{IncrementError, Outcome, Update};
pub use writer::Writer;
