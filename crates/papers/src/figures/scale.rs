//! [`Scale`]: the size of the experiments behind figures.

use std::path::PathBuf;

use alluvium_bench::WorkDirectories;

/// The size of the experiments.
#[derive(Clone, Debug)]
pub struct Scale {
    /// Maximum keys of a simulation.
    pub simulated_keys_max: u64,
    /// Maximum items of a store.
    pub stored_items_max: u64,
    /// Where stores are created, and removed again.
    pub directory: PathBuf,
    /// Makes and removes their directories.
    pub directories: WorkDirectories,
    /// Seed of simulations.
    pub seed: u64,
}
