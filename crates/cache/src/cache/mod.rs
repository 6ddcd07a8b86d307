//! The public interface: a cache of partitions.

mod batch;
mod builder;
mod handle;
mod keyed;
mod resize;
mod scan;
mod scratch;
mod stats;
mod update;
mod writer;

pub use batch::BATCH_LEN;
pub use builder::Builder;
pub use handle::{Cache, SetOptions};
pub use scan::{Cursor, OwnedItem};
pub(crate) use scratch::Scratch;
pub use stats::{PartitionStats, Stats};
pub use update::{IncrementError, Outcome, Update};
pub use writer::Writer;
