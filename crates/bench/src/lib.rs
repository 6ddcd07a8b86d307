//! Benchmarks of Alluvium as a library; the command `alluvium bench` is their face.
#![forbid(unsafe_code)]

pub mod index;
pub mod measurement;

pub use measurement::Measurement;
