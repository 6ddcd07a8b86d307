//! The manifest: which tables and log segments make up the database, as a file of edits.
//!
//! `CURRENT` names the manifest in use. Each opening for writing starts a new manifest with the whole state, so that
//! no record ever follows what a crash left behind. A record is atomic: all of its edits hold or none.

mod edit;
mod file;
mod state;

pub(crate) use edit::Edit;
pub(crate) use file::{Manifest, is_file_name as is_manifest_file_name, read_current};
#[cfg(any(test, feature = "simulation"))]
pub(crate) use file::{parse, parse_current, sample};
pub(crate) use state::{DatabaseState, KeyspaceState, RunState, SortedTableState};
