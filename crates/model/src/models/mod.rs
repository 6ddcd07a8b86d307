//! The cost models of the papers, each with its published figures as tests.
//!
//! Sizes are items, as in the papers: an item has one size, and a level of s items costs s units to write. The plan
//! model ([`crate::plan_model`]) counts bytes.

mod cola;
mod cost;
mod leveldb;
mod lookup;
mod lsm_trie;
mod samt;
mod silt;
mod silt_closed_form;
mod skimpy_chain;
mod skimpy_stash;
mod slimdb;
mod slimdb_search;

pub use cola::Cola;
pub use cost::{Component, Cost, Wear};
pub use leveldb::LevelDb;
pub use lsm_trie::{LsmTrie, bloom_false_positive_rate};
pub use samt::Samt;
pub use silt::Silt;
pub use silt_closed_form::SiltClosedForm;
pub use skimpy_stash::{ChainDirectory, SkimpyStash};
pub use slimdb::{SlimDb, SlimDbCost, SlimDbLayout, SlimDbMix};

pub(crate) use lookup::{Lookup, Stage};
pub(crate) use skimpy_chain::ChainLengths;
