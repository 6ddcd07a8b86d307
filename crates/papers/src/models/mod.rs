//! The cost models of the papers, each with its published figures as tests.
//!
//! Sizes are items, as in the papers: an item has one size, and a level of s items costs s units to write. The plan
//! model ([`alluvium_model::plan_model`]) counts bytes.

mod cola;
mod leveldb;
mod lsm_trie;
mod samt;
mod silt;
mod silt_closed_form;
mod slimdb;
mod slimdb_search;

pub use cola::Cola;
pub use leveldb::LevelDb;
pub use lsm_trie::LsmTrie;
pub use samt::Samt;
pub use silt::Silt;
pub use silt_closed_form::SiltClosedForm;
pub use slimdb::{SlimDb, SlimDbCost, SlimDbLayout, SlimDbMix};

/// Name of the writes that move data from the level above into a level; level 1 is made from memory.
fn transition(level: u32) -> String {
    if level == 1 { "memory to level 1".to_owned() } else { format!("level {} to {level}", level - 1) }
}
