//! What readers see: the immutable list of runs of a keyspace, replaced as a whole.

mod container;
mod levels;
mod lookup;
mod open_tables;
mod place;
mod placed_level;
mod placed_table;
mod reclaimer;
mod run;
mod stored;
mod table_file;
mod version;

pub(crate) use container::{Container, pushed, relevelled, replaced};
pub(crate) use levels::{Levels, Oldest, Source};
pub(crate) use lookup::Lookup;
pub(crate) use place::Place;
pub(crate) use placed_level::Level;
pub(crate) use placed_table::PlacedTable;
pub(crate) use reclaimer::Reclaimer;
pub(crate) use run::{MergeUnit, Run, RunSection, shard_range};
pub(crate) use table_file::TableFile;
pub(crate) use version::Version;
