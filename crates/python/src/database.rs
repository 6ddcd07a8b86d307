//! The class `Database`.

use std::path::PathBuf;

use alluvium::{BackupOptions, CheckpointOptions, Health, KeyspaceOptions};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;

use crate::failure::{self, OrRaise};
use crate::keyspace::Keyspace;
use crate::opened::{OpenDb, Opened};
use crate::settings;
use crate::snapshot::Snapshot;

/// An open database: its keyspaces, and, as a mapping, its keyspace "default".
///
/// Made by `open`. As a context manager, it closes at the end of the block.
#[pyclass(frozen, extends = Keyspace, mapping, module = "alluvium_db")]
#[derive(Debug)]
pub struct Database {
    path: PathBuf,
}

/// Opens the database in the directory `path`, and creates it if there is none. The README lists the options.
#[pyfunction]
#[pyo3(signature = (path, **options))]
pub fn open(py: Python<'_>, path: PathBuf, options: Option<&Bound<'_, PyDict>>) -> PyResult<Py<Database>> {
    let builder = settings::builder(path.clone(), options)?;
    let db = py.detach(|| builder.open()).or_raise(py)?;
    let keyspace = Keyspace::of(Opened::default_of(OpenDb::new(db)));
    Py::new(py, PyClassInitializer::from(keyspace).add_subclass(Database { path }))
}

/// Makes a damaged database usable again, with everything that can still be read; returns a report.
#[pyfunction]
#[pyo3(signature = (path, **options))]
pub fn repair<'py>(
    py: Python<'py>,
    path: PathBuf,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = settings::repair(options)?;
    let report = py.detach(|| alluvium::repair(path, &options)).or_raise(py)?;
    as_dict(py, &report)
}

/// Copies a backup, or the youngest of a directory of backups, to `target`, and checks the copy.
#[pyfunction]
pub fn restore(py: Python<'_>, source: PathBuf, target: PathBuf) -> PyResult<Bound<'_, PyAny>> {
    let backup = py.detach(|| alluvium::restore(source, target, |_, _| {})).or_raise(py)?;
    as_dict(py, &backup)
}

/// The backups in `root`, old to young.
#[pyfunction]
pub fn backups(py: Python<'_>, root: PathBuf) -> PyResult<Bound<'_, PyAny>> {
    let backups = py.detach(|| alluvium::backups(root)).or_raise(py)?;
    as_dict(py, &backups)
}

/// What the engine reports, as Python's plain types.
pub fn as_dict<'py>(py: Python<'py>, report: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(report).map_err(|error| failure::settings(py, &error.to_string()))?;
    py.import("json")?.call_method1("loads", (text,))
}

impl Database {
    fn of<'a>(slf: &'a PyRef<'_, Self>, py: Python<'_>) -> PyResult<&'a OpenDb> {
        Ok(&slf.as_super().opened(py)?.of)
    }
}

#[pymethods]
impl Database {
    /// The directory.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __exit__(
        slf: PyRef<'_, Self>,
        py: Python<'_>,
        _exception: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        Self::close(slf, py)
    }

    fn __repr__(&self) -> String {
        format!("<alluvium_db.Database {:?}>", self.path)
    }

    /// Closes it: makes all writes durable and releases the directory. Everything made from it is closed, too.
    fn close(slf: PyRef<'_, Self>, py: Python<'_>) -> PyResult<()> {
        let db = Self::of(&slf, py)?.db.clone();
        if matches!(db.health(), Health::Closed) {
            return Ok(());
        }
        py.detach(|| db.close()).or_raise(py)
    }

    /// The keyspace of this name. If there is none, it is created.
    ///
    /// With `delimiter` (one byte) or `prefix_bytes`, items whose keys have the same prefix are stored together; with
    /// `listed_prefixes` also, the prefixes can be listed. Such a keyspace must be opened with the same arguments
    /// again, or without any. `plan` is that of a new keyspace.
    #[pyo3(signature = (name, *, delimiter = None, prefix_bytes = None, listed_prefixes = false, plan = None))]
    fn keyspace(
        slf: PyRef<'_, Self>,
        py: Python<'_>,
        name: &str,
        delimiter: Option<crate::bytes_like::BytesLike<'_>>,
        prefix_bytes: Option<u16>,
        listed_prefixes: bool,
        plan: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Keyspace> {
        let of = Self::of(&slf, py)?.clone();
        let order = settings::order(py, delimiter.as_ref(), prefix_bytes, listed_prefixes)?;
        let mut options = order.map(|order| KeyspaceOptions { order, ..KeyspaceOptions::default() });
        if let Some(plan) = plan {
            options = Some(options.unwrap_or_default().with_plan(settings::plan(plan)?));
        }
        let opened = py.detach(|| match options {
            Some(options) => Opened::with(of, name, &options),
            None => Opened::named(of, name),
        });
        Ok(Keyspace::of(opened.or_raise(py)?))
    }

    /// The names of all keyspaces.
    fn keyspaces(slf: PyRef<'_, Self>, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(Self::of(&slf, py)?.db.keyspace_names())
    }

    /// Removes a keyspace with all its items; returns whether there was one.
    fn drop_keyspace(slf: PyRef<'_, Self>, py: Python<'_>, name: &str) -> PyResult<bool> {
        let db = &Self::of(&slf, py)?.db;
        py.detach(|| db.drop_keyspace(name)).or_raise(py)
    }

    /// A snapshot of all keyspaces as they are now. As a context manager, it is given up at the end of the block.
    fn snapshot(slf: PyRef<'_, Self>, py: Python<'_>) -> PyResult<Snapshot> {
        let db = &Self::of(&slf, py)?.db;
        Ok(Snapshot::of(py.detach(|| db.snapshot()).or_raise(py)?))
    }

    /// Calls `function(transaction)` and commits what it wrote; if another write came between, repeats both, at most
    /// `attempts` times. Returns the function's result.
    #[pyo3(signature = (function, *, attempts = 1000))]
    fn transaction<'py>(
        slf: &Bound<'py, Self>,
        function: &Bound<'py, PyAny>,
        attempts: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("alluvium_db.transaction")?.call_method1("run", (slf, function, attempts))
    }

    /// Makes all writes so far survive a power cut, whatever the durability.
    fn persist(slf: PyRef<'_, Self>, py: Python<'_>) -> PyResult<()> {
        let db = &Self::of(&slf, py)?.db;
        py.detach(|| db.persist()).or_raise(py)
    }

    /// Moves the items of the log to tables.
    fn flush(slf: PyRef<'_, Self>, py: Python<'_>) -> PyResult<()> {
        let db = &Self::of(&slf, py)?.db;
        py.detach(|| db.flush()).or_raise(py)
    }

    /// Merges everything into the last levels and drops what no read can return.
    fn compact(slf: PyRef<'_, Self>, py: Python<'_>) -> PyResult<()> {
        let db = &Self::of(&slf, py)?.db;
        py.detach(|| db.compact()).or_raise(py)
    }

    /// Waits until background work has nothing to do.
    fn wait_idle(slf: PyRef<'_, Self>, py: Python<'_>) -> PyResult<()> {
        let db = &Self::of(&slf, py)?.db;
        py.detach(|| db.wait_idle()).or_raise(py)
    }

    /// Figures about the database, as the engine's `Stats` names them.
    fn stats<'py>(slf: PyRef<'py, Self>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let db = &Self::of(&slf, py)?.db;
        as_dict(py, &py.detach(|| db.stats()))
    }

    /// Whether writes are accepted, and if not, why.
    fn health<'py>(slf: PyRef<'py, Self>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        as_dict(py, &Self::of(&slf, py)?.db.health())
    }

    /// Accepts writes again at once, if there is room after the disk was full.
    fn resume(slf: PyRef<'_, Self>, py: Python<'_>) -> PyResult<()> {
        let db = &Self::of(&slf, py)?.db;
        py.detach(|| db.resume()).or_raise(py)
    }

    /// Reads and checks everything that is stored. The report lists damage under "problems"; that is no exception.
    fn verify<'py>(slf: PyRef<'py, Self>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let db = &Self::of(&slf, py)?.db;
        let report = py.detach(|| db.verify()).or_raise(py)?;
        as_dict(py, &report)
    }

    /// Makes the directory `path`, empty or absent, a database with the same content, by links where possible.
    #[pyo3(signature = (path, *, verify = true))]
    fn checkpoint<'py>(
        slf: PyRef<'py, Self>,
        py: Python<'py>,
        path: PathBuf,
        verify: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let db = &Self::of(&slf, py)?.db;
        let made = py.detach(|| db.checkpoint_with(path, CheckpointOptions { verify })).or_raise(py)?;
        let report = PyDict::new(py);
        report.set_item("linked_tables", made.linked_tables)?;
        report.set_item("linked_bytes", made.linked_bytes)?;
        report.set_item("copied_tables", made.copied_tables)?;
        report.set_item("copied_bytes", made.copied_bytes)?;
        Ok(report)
    }

    /// Makes a backup in a new directory below `root`, and removes the oldest until `keep` are left. Returns a report.
    #[pyo3(signature = (root, *, verify = true, keep = None))]
    fn backup<'py>(
        slf: PyRef<'py, Self>,
        py: Python<'py>,
        root: PathBuf,
        verify: bool,
        keep: Option<usize>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let db = &Self::of(&slf, py)?.db;
        let options = BackupOptions { verify, keep };
        let (backup, _, removed) = py.detach(|| db.backup_with(root, options)).or_raise(py)?;
        let report = as_dict(py, &backup)?;
        report.set_item("removed", removed)?;
        Ok(report)
    }
}
