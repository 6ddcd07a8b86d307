//! The classes `Snapshot` and `KeyspaceSnapshot`.

use std::sync::{Mutex, PoisonError};

use alluvium::{KeyspaceSnapshot as StoredSnapshot, Snapshot as Taken};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::batches::{listed, slices};
use crate::bytes_like::{self, BytesLike};
use crate::failure::{self, OrRaise};
use crate::fork::Living;
use crate::iterator::{ItemIterator, Kind};
use crate::opened::DEFAULT;

/// All keyspaces as they were at one moment. It keeps their tables until it is closed or dropped.
#[pyclass(frozen, module = "alluvium_db")]
#[derive(Debug)]
pub struct Snapshot {
    /// `None` once it was closed.
    taken: Living<Mutex<Option<Taken>>>,
}

impl Snapshot {
    /// The snapshot.
    pub fn of(taken: Taken) -> Self {
        Self { taken: Living::new(Mutex::new(Some(taken))) }
    }

    fn with<R>(&self, py: Python<'_>, read: impl FnOnce(&Taken) -> R) -> PyResult<R> {
        let taken = self.taken.get(py)?.lock().unwrap_or_else(PoisonError::into_inner);
        taken.as_ref().map(read).ok_or_else(|| failure::closed(py, "the snapshot"))
    }
}

#[pymethods]
impl Snapshot {
    /// The keyspace of this name; KeyError if there was none.
    #[pyo3(signature = (name = DEFAULT))]
    fn keyspace(&self, py: Python<'_>, name: &str) -> PyResult<KeyspaceSnapshot> {
        let found = self.with(py, |taken| taken.keyspace(name))?;
        let keyspace = found.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        Ok(KeyspaceSnapshot { keyspace: Living::new(keyspace), name: name.to_owned() })
    }

    /// The names of all keyspaces.
    fn keyspaces(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with(py, Taken::keyspace_names)
    }

    /// When it was taken, in seconds since 1970.
    #[getter]
    fn taken_at(&self, py: Python<'_>) -> PyResult<f64> {
        self.with(py, |taken| taken.taken_at_ms() as f64 / 1000.0)
    }

    /// Gives it up. Keyspaces of it that are in use stay.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let taken = self.taken.get(py)?.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(taken));
        Ok(())
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _exception: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.close(py)
    }

    fn __reduce_ex__(&self, _protocol: i32) -> PyResult<()> {
        Err(failure::pickled("a snapshot"))
    }
}

/// A keyspace of a snapshot: a mapping that does not change.
#[pyclass(frozen, mapping, module = "alluvium_db")]
#[derive(Debug)]
pub struct KeyspaceSnapshot {
    pub(crate) keyspace: Living<StoredSnapshot>,
    name: String,
}

impl KeyspaceSnapshot {
    fn iterator(&self, py: Python<'_>, kind: Kind) -> PyResult<ItemIterator> {
        let keyspace = self.keyspace.get(py)?;
        Ok(ItemIterator::over(py.detach(|| keyspace.iter()), kind))
    }

    fn found<'py>(&self, py: Python<'py>, key: &BytesLike<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let (keyspace, key) = (self.keyspace.get(py)?, key.as_slice());
        let value = py.detach(|| keyspace.get(key)).or_raise(py)?;
        Ok(value.map(|value| PyBytes::new(py, &value)))
    }
}

#[pymethods]
impl KeyspaceSnapshot {
    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: BytesLike<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.found(py, &key)?.ok_or_else(|| PyKeyError::new_err(key.as_slice().to_vec()))
    }

    fn __contains__(&self, py: Python<'_>, key: BytesLike<'_>) -> PyResult<bool> {
        let (keyspace, key) = (self.keyspace.get(py)?, key.as_slice());
        py.detach(|| keyspace.contains_key(key)).or_raise(py)
    }

    /// The exact number of items. Reads all of them.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let keyspace = self.keyspace.get(py)?;
        let count = || keyspace.iter().try_fold(0, |count: usize, item| item.map(|_| count + 1));
        py.detach(count).or_raise(py)
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<ItemIterator> {
        self.iterator(py, Kind::Keys)
    }

    fn __eq__<'py>(&self, py: Python<'py>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        py.import("alluvium_db.views")?.call_method1("is_equal", (self.iterator(py, Kind::Items)?, other))
    }

    /// The value that `key` had, or `default` if it was absent.
    #[pyo3(signature = (key, default = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: BytesLike<'py>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.found(py, &key)?.map(Bound::into_any).or(default))
    }

    /// The values that many keys had, in their order; `default` for absent ones.
    #[pyo3(signature = (keys, default = None))]
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let keys = bytes_like::all(keys)?;
        let (keyspace, keys) = (self.keyspace.get(py)?, slices(&keys));
        let values = py.detach(|| keyspace.multi_get(&keys)).or_raise(py)?;
        listed(py, values, default)
    }

    /// All keys, as a set-like view.
    fn keys<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("alluvium_db.views")?.call_method1("Keys", (slf,))
    }

    /// All values, as a view.
    fn values<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("alluvium_db.views")?.call_method1("Values", (slf,))
    }

    /// All items as pairs, as a view.
    fn items<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("alluvium_db.views")?.call_method1("Items", (slf,))
    }

    fn _iter_values(&self, py: Python<'_>) -> PyResult<ItemIterator> {
        self.iterator(py, Kind::Values)
    }

    fn _iter_items(&self, py: Python<'_>) -> PyResult<ItemIterator> {
        self.iterator(py, Kind::Items)
    }

    /// The items of one prefix, as an iterator of pairs.
    fn scan_prefix(&self, py: Python<'_>, prefix: BytesLike<'_>) -> PyResult<ItemIterator> {
        let (keyspace, prefix) = (self.keyspace.get(py)?, prefix.as_slice());
        let items = py.detach(|| keyspace.scan_prefix(prefix)).or_raise(py)?;
        Ok(ItemIterator::over(items, Kind::Items))
    }

    /// The prefixes that had items, in the order of their bytes, from `start` on.
    #[pyo3(signature = (start = None))]
    fn prefixes(&self, py: Python<'_>, start: Option<BytesLike<'_>>) -> PyResult<ItemIterator> {
        let keyspace = self.keyspace.get(py)?;
        let start = start.as_ref().map_or(&[][..], BytesLike::as_slice);
        Ok(ItemIterator::over_prefixes(py.detach(|| keyspace.prefixes_from(start)).or_raise(py)?))
    }

    fn __reduce_ex__(&self, _protocol: i32) -> PyResult<()> {
        Err(failure::pickled("a snapshot"))
    }
}
