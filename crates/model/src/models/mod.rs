//! What designs cost, and how many reads their lookups take; with the model of SkimpyStash, which is a plan without
//! levels.
//!
//! Sizes are items, as in the papers: an item has one size, and a level of s items costs s units to write. The plan
//! model ([`crate::plan_model`]) counts bytes.

mod cost;
mod lookup;
mod skimpy_chain;
mod skimpy_stash;

pub use cost::{Component, Cost, Wear};
pub use lookup::{Lookup, Stage, bloom_false_positive_rate};
pub use skimpy_stash::{ChainDirectory, SkimpyStash};

pub(crate) use skimpy_chain::ChainLengths;
