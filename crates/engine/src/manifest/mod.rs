//! The manifest: which tables and log segments make up the database, as a file of edits.
//!
//! `CURRENT` names the manifest in use. Each opening for writing starts a new manifest with the whole state, so that no
//! record ever follows the leftovers of a crash. A record is atomic: all of its edits take effect, or none.

mod appending;
mod check;
mod current;
mod edit;
mod file;
mod keyspace_state;
mod levels_state;
mod named_files;
mod plan_state;
mod salvage;
mod state;
mod state_edits;
mod torn;

pub(crate) use current::{CURRENT, Current, parse_current};
pub(crate) use edit::Edit;
#[cfg(any(test, feature = "simulation"))]
pub(crate) use file::sample;
pub(crate) use file::{
    CURRENT_NEW, Manifest, file_name as manifest_file_name, is_file_name as is_manifest_file_name, parse,
    parse_file_name as parse_manifest_file_name, read_all, read_current,
};
pub(crate) use keyspace_state::{ChainedSegment, KeyspaceState, SavedDirectory};
pub(crate) use levels_state::{LevelsState, PlacedTableState, RunState};
pub(crate) use plan_state::{PlanSource, PlanState};
pub(crate) use salvage::{Scraps, salvage};
pub(crate) use state::DatabaseState;
