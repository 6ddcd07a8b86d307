//! The class `ShardWriter`: one shard of a bulk build.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use alluvium::{ShardOptions, ShardWriter as Writer, WrittenShard};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::build_job::BuildJob;
use crate::bytes_like::{self, BytesLike};
use crate::columns::{Column, check_lengths};
use crate::failure::{self, OrRaise};
use crate::fork::Living;
use crate::metadata::Extras;

/// Writes one shard of a job into the directory `path`, from items in any order; the last item of a key counts. As a
/// context manager, it finishes at the end of the block, unless that raised an exception.
///
/// Nothing counts before it has finished. A directory with the rest of an attempt that failed is cleared; one with a
/// finished shard is refused, unless `replace` is true. Without `memory_bytes_max`, it takes up to 34 MiB while items
/// are added, and 144 MiB while they are sorted.
#[pyclass(frozen, module = "alluvium_db")]
#[derive(Debug)]
pub struct ShardWriter {
    /// `None` once it was finished or given up.
    writer: Living<Mutex<Option<Writer>>>,
    shard: u32,
}

impl ShardWriter {
    /// Adds by `add`, while other threads may run. Threads that add to the same shard take turns.
    fn with(
        &self,
        py: Python<'_>,
        add: impl FnOnce(&mut Writer) -> alluvium::Result<()> + Send,
    ) -> PyResult<()> {
        let writer = self.writer.get(py)?;
        let outcome = py.detach(|| writer.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(add));
        outcome.ok_or_else(|| failure::closed(py, "the shard"))?.or_raise(py)
    }

    fn take(&self, py: Python<'_>) -> PyResult<Option<Writer>> {
        let writer = self.writer.get(py)?;
        Ok(py.detach(|| writer.lock().unwrap_or_else(PoisonError::into_inner).take()))
    }
}

#[pymethods]
impl ShardWriter {
    #[new]
    #[pyo3(signature = (path, job, shard, *, replace = false, memory_bytes_max = None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        job: &Bound<'_, BuildJob>,
        shard: u32,
        replace: bool,
        memory_bytes_max: Option<u64>,
    ) -> PyResult<Self> {
        let options = ShardOptions { memory_bytes_max, replace };
        let job = &job.get().job;
        let writer = py.detach(|| Writer::create(path, job, shard, &options)).or_raise(py)?;
        Ok(Self { writer: Living::new(Mutex::new(Some(writer))), shard })
    }

    /// The number of the shard, from 0.
    #[getter]
    fn shard(&self) -> u32 {
        self.shard
    }

    /// Adds an item. It replaces one that was added under the same key. BuildError if the key is of another shard.
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
        self.with(py, |writer| writer.insert_with(key, value, metadata))
    }

    /// Adds all items of a mapping or an iterable of pairs.
    fn put_many(&self, py: Python<'_>, items: &Bound<'_, PyAny>) -> PyResult<()> {
        let items = bytes_like::all_pairs(items)?;
        let items: Vec<_> = items.iter().map(|(key, value)| (key.as_slice(), value.as_slice())).collect();
        self.with(py, |writer| items.iter().try_for_each(|(key, value)| writer.insert(key, value)))
    }

    fn _put_columns(&self, py: Python<'_>, keys: Column<'_>, values: Column<'_>) -> PyResult<()> {
        check_lengths(py, &keys, &values)?;
        let (keys, values) = (keys.slices(py)?, values.slices(py)?);
        self.with(py, |writer| {
            (0..keys.len()).try_for_each(|row| writer.insert(keys.get(row), values.get(row)))
        })
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

    /// Writes the tables and, as the last file, that which makes the shard count, durably. Returns the number of
    /// `items` that were added and their `bytes`, and the number of `files` and their bytes, `file_bytes`.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let writer = self.take(py)?.ok_or_else(|| failure::closed(py, "the shard"))?;
        let WrittenShard { items, bytes, files, file_bytes } = py.detach(|| writer.finish()).or_raise(py)?;
        let report = PyDict::new(py);
        for (name, value) in
            [("items", items), ("bytes", bytes), ("files", files), ("file_bytes", file_bytes)]
        {
            report.set_item(name, value)?;
        }
        Ok(report)
    }

    /// Gives the attempt up, and removes what it wrote.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        let writer = self.take(py)?;
        py.detach(|| drop(writer));
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
            Some(writer) if exception.is_none() => py.detach(|| writer.finish()).or_raise(py).map(drop),
            writer => {
                py.detach(|| drop(writer));
                Ok(())
            }
        }
    }

    fn __reduce_ex__(&self, _protocol: i32) -> PyResult<()> {
        Err(failure::pickled("a shard that is written"))
    }
}
