//! The papers that Alluvium is built on: the cost models of their designs, simulations that check the models, and their
//! figures drawn again. The command `alluvium-papers` is the user interface.
//!
//! Architecture invariant: nothing of the product depends on this crate.
#![forbid(unsafe_code)]

pub mod figures;
pub mod models;
pub mod optimizer;
pub mod simulator;
