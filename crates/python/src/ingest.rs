//! The class `Ingest`: a bulk load.

use std::sync::{Mutex, PoisonError};

use alluvium::Ingest as Load;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::bytes_like::{self, BytesLike};
use crate::columns::{Column, check_lengths};
use crate::failure::{self, OrRaise};
use crate::fork::Living;
use crate::metadata::Extras;

/// A bulk load. As a context manager, it finishes at the end of the block, unless that raised an exception.
#[pyclass(frozen, module = "alluvium_db")]
#[derive(Debug)]
pub struct Ingest {
    /// `None` once it was finished or given up.
    load: Living<Mutex<Option<Load>>>,
}

impl Ingest {
    /// The load.
    pub fn of(load: Load) -> Self {
        Self { load: Living::new(Mutex::new(Some(load))) }
    }

    /// Adds by `add`, while other threads may run. Threads that add to the same load take turns.
    fn with(
        &self,
        py: Python<'_>,
        add: impl FnOnce(&mut Load) -> alluvium::Result<()> + Send,
    ) -> PyResult<()> {
        let load = self.load.get(py)?;
        let outcome = py.detach(|| load.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(add));
        outcome.ok_or_else(|| failure::closed(py, "the ingest"))?.or_raise(py)
    }

    fn take(&self, py: Python<'_>) -> PyResult<Option<Load>> {
        let load = self.load.get(py)?;
        Ok(py.detach(|| load.lock().unwrap_or_else(PoisonError::into_inner).take()))
    }
}

#[pymethods]
impl Ingest {
    /// Adds an item. It replaces one that was added under the same key.
    #[pyo3(signature = (key, value, *, ttl = None, expires_at = None, flags = 0))]
    fn put(
        &self,
        py: Python<'_>,
        key: BytesLike<'_>,
        value: BytesLike<'_>,
        ttl: Option<f64>,
        expires_at: Option<f64>,
        flags: u32,
    ) -> PyResult<()> {
        let metadata = Extras { ttl, expires_at, flags }.metadata(py)?;
        let (key, value) = (key.as_slice(), value.as_slice());
        self.with(py, |load| load.insert_with(key, value, metadata))
    }

    /// Adds all items of a mapping or an iterable of pairs.
    fn put_many(&self, py: Python<'_>, items: &Bound<'_, PyAny>) -> PyResult<()> {
        let items = bytes_like::all_pairs(items)?;
        let items: Vec<_> = items.iter().map(|(key, value)| (key.as_slice(), value.as_slice())).collect();
        self.with(py, |load| items.iter().try_for_each(|(key, value)| load.insert(key, value)))
    }

    fn _put_columns(&self, py: Python<'_>, keys: Column<'_>, values: Column<'_>) -> PyResult<()> {
        check_lengths(py, &keys, &values)?;
        let (keys, values) = (keys.slices(py)?, values.slices(py)?);
        self.with(py, |load| (0..keys.len()).try_for_each(|row| load.insert(keys.get(row), values.get(row))))
    }

    /// Adds two columns of Arrow: see `Keyspace.put_arrow`.
    fn put_arrow<'py>(
        slf: &Bound<'py, Self>,
        keys: &Bound<'py, PyAny>,
        values: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("alluvium_db.arrow")?.call_method1("put", (slf, keys, values))
    }

    /// Adds two arrays of numpy: see `Keyspace.put_fixed`.
    fn put_fixed<'py>(
        slf: &Bound<'py, Self>,
        keys: &Bound<'py, PyAny>,
        values: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("alluvium_db.fixed")?.call_method1("put", (slf, keys, values))
    }

    /// Makes the items visible, durably; returns how many there were, and whether they went through the log because
    /// they were few.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let load = self.take(py)?.ok_or_else(|| failure::closed(py, "the ingest"))?;
        let ingested = py.detach(|| load.finish()).or_raise(py)?;
        let report = PyDict::new(py);
        report.set_item("items", ingested.items)?;
        report.set_item("bytes", ingested.bytes)?;
        report.set_item("logged", ingested.logged)?;
        Ok(report)
    }

    /// Gives the load up: its items are discarded.
    fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        let load = self.take(py)?;
        py.detach(|| drop(load));
        Ok(())
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        exception: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        match self.take(py)? {
            Some(load) if exception.is_none() => py.detach(|| load.finish()).or_raise(py).map(drop),
            load => {
                py.detach(|| drop(load));
                Ok(())
            }
        }
    }

    fn __reduce_ex__(&self, _protocol: i32) -> PyResult<()> {
        Err(failure::pickled("an ingest"))
    }
}
