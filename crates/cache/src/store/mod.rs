//! Store mode: nothing is forgotten, and items for which there is no room are refused (Lim's thesis, §5.3.3, "Store
//! Mode").
//!
//! [`space`] allocates items of any size in one space, by segregated fits with boundary tags; [`chains`] is the index
//! that adds spare buckets to full ones; [`gather`] joins fragmented free space. Readers run beside the writer as in a
//! cache: see `index::bucket`.

mod builder;
mod chains;
mod change;
mod gather;
mod grow;
mod handle;
mod moves;
mod partition;
mod size_class;
mod sizes;
mod space;
mod writer;

pub use builder::StoreBuilder;
pub use handle::{OutOfSpace, Store, StoreStats};
pub use writer::StoreWriter;
