//! A cache whose content survives: NVMcached (Wu's thesis, chapter 5).
mod beside;
mod clean;
mod core;
mod descriptor;
mod file_medium;
mod geometry;
mod medium;
mod part;
mod shared;
#[cfg(any(test, feature = "simulation"))]
mod simulated;
#[cfg(any(test, feature = "simulation"))]
pub mod simulation;
mod stored_item;
mod write;
