//! The native part of the Python package `alluvium_db`: databases and caches of very many small items.
//!
//! The package is built by maturin (`pyproject.toml`); `README.md` beside it is its documentation.
//!
//! Architecture invariant: whatever may read, write or wait runs detached from the interpreter, with borrowed `bytes`
//! and `str` (which never change) and copies of everything else. No lock is held while the interpreter is waited for.
//!
//! Architecture invariant: a value of the engine is reached through `fork::Living`, which refuses it in a forked
//! process.
#![forbid(unsafe_code)]

mod batches;
mod build;
mod build_job;
mod bytes_like;
mod cache;
mod columns;
mod database;
mod failure;
mod fork;
mod ingest;
mod iterator;
mod keyspace;
mod metadata;
mod opened;
mod scan;
mod settings;
mod shard_writer;
mod snapshot;
mod write_batch;

use pyo3::prelude::*;

/// Counts a fork; called in the child.
#[pyfunction]
fn _note_fork() {
    fork::note_fork();
}

/// The native part of the package.
#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::_note_fork;
    #[pymodule_export]
    use super::build::{abort_build, adopt, build_shards, check_build, commit_build, versions};
    #[pymodule_export]
    use super::build_job::BuildJob;
    #[pymodule_export]
    use super::cache::Cache;
    #[pymodule_export]
    use super::database::{Database, backups, open, repair, restore};
    #[pymodule_export]
    use super::ingest::Ingest;
    #[pymodule_export]
    use super::iterator::ItemIterator;
    #[pymodule_export]
    use super::keyspace::Keyspace;
    #[pymodule_export]
    use super::shard_writer::ShardWriter;
    #[pymodule_export]
    use super::snapshot::{KeyspaceSnapshot, Snapshot};
    #[pymodule_export]
    use super::write_batch::Batch;
}
