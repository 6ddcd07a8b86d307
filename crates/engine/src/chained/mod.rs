//! Chained keyspaces: segments of the log stay, and their records are linked to chains that a directory in memory has
//! the heads of (SkimpyStash, SIGMOD 2011).

mod address;
mod append;
mod chain;
mod directory;
mod locked_region;
mod long_chains;
mod opened;
mod passes;
mod read_chain;
mod records;
mod sample;
mod saved;
#[cfg(any(test, feature = "simulation"))]
pub(crate) mod saved_bytes;
mod saving;
mod walk;

pub(crate) use address::{Address, SEGMENT_BYTES_MAX};
pub(crate) use append::{Appended, BatchItem, BatchRegions, LINKED_EXTRA_BYTES_MAX, Locked};
pub(crate) use chain::{Chain, ChainFile};
pub(crate) use directory::Directory;
pub(crate) use locked_region::Decision;
pub(crate) use opened::Opened;
pub use opened::ReplayReason;
pub(crate) use read_chain::{ReadChain, RegionHeads, are_together};
#[cfg(any(test, feature = "simulation"))]
pub(crate) use records::linked_of;
pub(crate) use records::{Linked, for_each_linked};
pub(crate) use saved::DirectoryFile;
pub(crate) use saving::SavedFile;
pub(crate) use walk::{ChainRead, ChainWalk, Step};
