//! The works, each of which yields rows of the table.

mod absent;
mod durable;
mod groups;
mod hot_key;
mod memory;
mod puts;
mod queue;
mod values;
mod zipf;

use alluvium_bench::{BenchError, WorkDirectories};

use super::Options;
use super::row::Row;

/// Bytes of a value, where nothing else is said.
const VALUE_BYTES: usize = 100;

/// What the engines do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Work {
    /// Gets of items that are all in memory
    Memory,
    /// Gets of keys that do not exist
    Absent,
    /// Gets by Zipf's law, with room in caches for 5 % of the items
    Zipf,
    /// A queue: an item is put at the tail, the head is found and removed
    Queue,
    /// Scans of groups of 10 items with a common prefix
    Groups,
    /// Gets of values of 4 KiB and 1 MiB
    Values,
    /// Single puts while loading: their rate and their slowest
    Puts,
    /// One key overwritten many times: what is left on disk
    HotKey,
    /// Single puts that wait for the device
    Durable,
}

impl Work {
    /// Lets all engines do it.
    ///
    /// # Errors
    /// The first wrong answer, or another failure.
    pub fn run(self, options: &Options, directories: &WorkDirectories) -> Result<Vec<Row>, BenchError> {
        match self {
            Self::Memory => memory::run(options, directories),
            Self::Absent => absent::run(options, directories),
            Self::Zipf => zipf::run(options, directories),
            Self::Queue => queue::run(options, directories),
            Self::Groups => groups::run(options, directories),
            Self::Values => values::run(options, directories),
            Self::Puts => puts::run(options, directories),
            Self::HotKey => hot_key::run(options, directories),
            Self::Durable => durable::run(options, directories),
        }
    }
}
