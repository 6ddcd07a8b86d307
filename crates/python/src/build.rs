//! Functions for bulk builds as a whole.

use std::path::PathBuf;

use alluvium::{AdoptOptions, CommitOptions, Version, VersionState};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::build_job::BuildJob;
use crate::database::as_dict;
use crate::failure::OrRaise;

/// Commits the build whose shards are in directories below `root`: checks that there is one of each, of one job and
/// complete, then writes the file that makes the build count. Returns a dict with its `job`, `keyspace`, `shards`,
/// `items`, `bytes` and `hash_key_fingerprint`. A build that is committed already is checked again.
///
/// With `job`, shards of others are refused. `directories` names those that count, for jobs whose attempts write to
/// directories of their own. `checksums` reads all files and checks them. BuildError names what does not fit.
#[pyfunction]
#[pyo3(signature = (root, *, job = None, directories = None, checksums = false))]
pub fn commit_build<'py>(
    py: Python<'py>,
    root: PathBuf,
    job: Option<&Bound<'py, BuildJob>>,
    directories: Option<Vec<String>>,
    checksums: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let options = CommitOptions { job: job.map(|job| job.get().job.clone()), directories, checksums };
    let build = py.detach(|| alluvium::commit_build(root, &options)).or_raise(py)?;
    as_dict(py, &build)
}

/// Checks that the build in `root` is committed and complete, by the lengths of its files, with `checksums` by reading
/// them. Returns a dict as `commit_build` does.
#[pyfunction]
#[pyo3(signature = (root, *, checksums = false))]
pub fn check_build(py: Python<'_>, root: PathBuf, checksums: bool) -> PyResult<Bound<'_, PyAny>> {
    let build = py.detach(|| alluvium::check_build(root, checksums)).or_raise(py)?;
    as_dict(py, &build)
}

/// Removes the shards of a build that is not committed, finished or not, and returns how many there were.
#[pyfunction]
pub fn abort_build(py: Python<'_>, root: PathBuf) -> PyResult<usize> {
    py.detach(|| alluvium::abort_build(root)).or_raise(py)
}

/// The directories of the shards of the committed build in `root`, in order. Each can be opened with
/// `read_only=True`, as the build itself can.
#[pyfunction]
pub fn build_shards(py: Python<'_>, root: PathBuf) -> PyResult<Vec<PathBuf>> {
    py.detach(|| alluvium::build_shards(root)).or_raise(py)
}

/// Makes the committed build in `root` a database in the directory `path`, which takes writes: by links, without
/// rewriting it, if both are on one file system. `verify` reads and checks all of it first. Returns a report.
#[pyfunction]
#[pyo3(signature = (root, path, *, verify = true))]
pub fn adopt(py: Python<'_>, root: PathBuf, path: PathBuf, verify: bool) -> PyResult<Bound<'_, PyAny>> {
    let options = AdoptOptions { verify, ..AdoptOptions::default() };
    let adopted = py.detach(|| alluvium::adopt(root, path, &options)).or_raise(py)?;
    as_dict(py, &adopted)
}

/// The versions in the directory `root`, by number: a dict for each, with `number`, `path` and `state`, which is
/// "build", "database", "incomplete" or "damaged". A build also has what `commit_build` returns, a damaged one
/// `reason`.
#[pyfunction]
pub fn versions(py: Python<'_>, root: PathBuf) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let versions = py.detach(|| alluvium::versions(root)).or_raise(py)?;
    versions.into_iter().map(|version| described(py, version)).collect()
}

fn described(py: Python<'_>, version: Version) -> PyResult<Bound<'_, PyDict>> {
    let Version { number, path, state } = version;
    let found = match &state {
        VersionState::Build(build) => as_dict(py, build)?.cast_into::<PyDict>()?,
        _ => PyDict::new(py),
    };
    let name = match state {
        VersionState::Build(_) => "build",
        VersionState::Database => "database",
        VersionState::Damaged { reason } => {
            found.set_item("reason", reason)?;
            "damaged"
        }
        _ => "incomplete",
    };
    found.set_item("number", number)?;
    found.set_item("path", path)?;
    found.set_item("state", name)?;
    Ok(found)
}
