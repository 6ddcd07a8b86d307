//! The public interface of store mode: nothing is forgotten, and items for which there is no room are refused.

mod builder;
mod handle;
mod writer;

pub use builder::StoreBuilder;
pub use handle::{Store, StoreStats};
pub use writer::StoreWriter;
