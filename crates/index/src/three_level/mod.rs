//! Three-level block index.

mod builder;
mod config;
mod cursor;
mod groups;
mod index;
mod partial;
mod separator;
mod suffix_trie;
mod suffixes;

pub use builder::ThreeLevelBuilder;
pub use config::{SuffixCode, ThreeLevelConfig};
pub use index::ThreeLevelIndex;
