//! The class `ColumnIterator`: all items of a keyspace as columns, some ten thousand at a time.

use std::sync::{Mutex, PoisonError};

use alluvium::{Iter, Result};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::failure::OrRaise;
use crate::fork::Living;
use crate::keyspace::Keyspace;
use crate::snapshot::KeyspaceSnapshot;

/// Bytes of keys and values from which on a batch is not extended. With an item of the maximum size behind that, the
/// offsets still fit in 32 bits.
const BATCH_BYTES: usize = 16 << 20;

/// The data of a column of Arrow and its 32-bit offsets.
type Buffers<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);

struct Buffer {
    data: Vec<u8>,
    offsets: Vec<u8>,
}

impl Buffer {
    fn new() -> Self {
        Self { data: Vec::new(), offsets: 0_u32.to_le_bytes().to_vec() }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.data.extend_from_slice(bytes);
        self.offsets.extend((self.data.len() as u32).to_le_bytes());
    }

    fn taken<'py>(&self, py: Python<'py>) -> Buffers<'py> {
        (PyBytes::new(py, &self.data), PyBytes::new(py, &self.offsets))
    }
}

/// Batches of items as buffers of Arrow.
#[pyclass(frozen, module = "alluvium_db")]
pub struct ColumnIterator {
    /// `None` at the end.
    items: Living<Mutex<Option<Box<Iter>>>>,
    rows_max: usize,
}

impl ColumnIterator {
    fn of(items: Iter, rows_max: usize) -> Self {
        Self { items: Living::new(Mutex::new(Some(Box::new(items)))), rows_max: rows_max.max(1) }
    }

    /// The next batch: its rows, keys and values.
    fn batch(&self, items: &mut Option<Box<Iter>>) -> Result<(usize, Buffer, Buffer)> {
        let (mut rows, mut keys, mut values) = (0, Buffer::new(), Buffer::new());
        while let Some(iter) = items.as_mut()
            && rows < self.rows_max
            && keys.data.len() + values.data.len() < BATCH_BYTES
        {
            match iter.next() {
                Some(Ok((key, value))) => {
                    keys.push(&key);
                    values.push(&value);
                    rows += 1;
                }
                last => {
                    // Frees what the iterator kept.
                    *items = None;
                    last.transpose()?;
                }
            }
        }
        Ok((rows, keys, values))
    }
}

#[pymethods]
impl ColumnIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<(usize, Buffers<'py>, Buffers<'py>)>> {
        let items = self.items.get(py)?;
        let batch = py.detach(|| self.batch(&mut items.lock().unwrap_or_else(PoisonError::into_inner)));
        let (rows, keys, values) = batch.or_raise(py)?;
        Ok((rows > 0).then(|| (rows, keys.taken(py), values.taken(py))))
    }

    fn __reduce_ex__(&self, _protocol: i32) -> PyResult<()> {
        Err(crate::failure::pickled("an iterator"))
    }
}

impl std::fmt::Debug for ColumnIterator {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ColumnIterator").field("rows_max", &self.rows_max).finish_non_exhaustive()
    }
}

#[pymethods]
impl Keyspace {
    fn _scan_columns(&self, py: Python<'_>, rows: usize) -> PyResult<ColumnIterator> {
        let stored = self.stored(py)?;
        Ok(ColumnIterator::of(py.detach(|| stored.iter()), rows))
    }

    /// All items as record batches of Arrow with columns "key" and "value", of at most `rows` rows and some 16 MiB
    /// each. They are those of the moment when it is called.
    #[pyo3(signature = (rows = 65536))]
    fn scan_arrow<'py>(slf: &Bound<'py, Self>, rows: usize) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("alluvium_db.arrow")?.call_method1("scan", (slf, rows))
    }
}

#[pymethods]
impl KeyspaceSnapshot {
    fn _scan_columns(&self, py: Python<'_>, rows: usize) -> PyResult<ColumnIterator> {
        let keyspace = self.keyspace.get(py)?;
        Ok(ColumnIterator::of(py.detach(|| keyspace.iter()), rows))
    }

    /// As `Keyspace.scan_arrow`.
    #[pyo3(signature = (rows = 65536))]
    fn scan_arrow<'py>(slf: &Bound<'py, Self>, rows: usize) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("alluvium_db.arrow")?.call_method1("scan", (slf, rows))
    }
}
