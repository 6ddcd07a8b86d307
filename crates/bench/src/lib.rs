//! Benchmarks of Alluvium as a library; the command `alluvium bench` is their user interface.
//!
//! Each benchmark is a function from its options to [`Measurement`]s, which go to a [`Report`] one by one as they are
//! made. Every answer is verified: a wrong one ends the benchmark with [`BenchError::WrongAnswer`].
//!
//! Architecture invariant: bytes written to and read from the device are taken from the block device's counters, never
//! from the engine's own. If the system offers none, those numbers are absent, not estimated.
#![forbid(unsafe_code)]

pub mod cache;
pub mod crash_writer;
pub mod dedup;
pub mod device;
pub mod durability;
pub mod error;
pub mod graph;
pub mod groups;
pub mod hot_key;
pub mod index;
pub mod large;
pub mod latencies;
pub mod measurement;
pub mod metadata;
pub mod process;
pub mod queue;
pub mod random;
pub mod report;
pub mod server;
mod settled;
pub mod store;
pub mod structures;
pub mod udp;
pub mod work_directory;

pub use error::BenchError;
pub use measurement::Measurement;
pub use report::Report;
pub use work_directory::{WorkDirectories, WorkDirectory};

/// The Rust examples of the README, which are compiled and run this way.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
