//! The class `Batch`: writes that take effect together, under conditions.

use std::sync::{Mutex, PoisonError};

use alluvium::{Batch as Writes, Condition, Error, ItemVersion, Keyspace as Stored};
use pyo3::prelude::*;

use crate::bytes_like::BytesLike;
use crate::failure::{self, OrRaise};
use crate::fork::Living;
use crate::keyspace::Keyspace;
use crate::metadata::Extras;

/// Writes of one database that take effect together or not at all. As a context manager, it commits at the end of the
/// block, unless that raised an exception.
///
/// Conditions (`require_...`) are checked against the state before the batch: if one does not hold, `commit` writes
/// nothing and raises ConditionFailedError.
#[pyclass(frozen, module = "alluvium_db")]
#[derive(Debug)]
pub struct Batch {
    /// `None` once it was committed.
    writes: Living<Mutex<Option<Writes>>>,
    /// Where writes without a keyspace go.
    keyspace: Py<Keyspace>,
    database: u64,
}

impl Batch {
    /// An empty batch.
    pub fn new(py: Python<'_>, keyspace: Py<Keyspace>) -> PyResult<Self> {
        let of = &keyspace.get().opened(py)?.of;
        let (writes, database) = (of.db.batch(), of.number);
        Ok(Self { writes: Living::new(Mutex::new(Some(writes))), keyspace, database })
    }

    fn with(
        &self,
        py: Python<'_>,
        keyspace: Option<&Py<Keyspace>>,
        add: impl FnOnce(&mut Writes, &Stored),
    ) -> PyResult<()> {
        let keyspace = keyspace.unwrap_or(&self.keyspace).get();
        if keyspace.opened(py)?.of.number != self.database {
            return Err(failure::settings(py, "the keyspace belongs to another database"));
        }
        let stored = keyspace.stored(py)?;
        let mut writes = self.writes.get(py)?.lock().unwrap_or_else(PoisonError::into_inner);
        let writes = writes.as_mut().ok_or_else(|| failure::closed(py, "the batch"))?;
        add(writes, stored);
        Ok(())
    }

    fn require(
        &self,
        py: Python<'_>,
        key: &BytesLike<'_>,
        condition: Condition,
        keyspace: Option<&Py<Keyspace>>,
    ) -> PyResult<()> {
        self.with(py, keyspace, |writes, stored| writes.require(stored, key.as_slice(), condition))
    }
}

#[pymethods]
impl Batch {
    /// Stores `value` under `key`, in the batch's keyspace or the given one.
    #[pyo3(signature = (key, value, *, keyspace = None, ttl = None, expires_at = None, flags = 0))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn put(
        &self,
        py: Python<'_>,
        key: BytesLike<'_>,
        value: BytesLike<'_>,
        keyspace: Option<Py<Keyspace>>,
        ttl: Option<f64>,
        expires_at: Option<f64>,
        flags: u32,
    ) -> PyResult<()> {
        let metadata = Extras { ttl, expires_at, flags }.metadata(py)?;
        self.with(py, keyspace.as_ref(), |writes, stored| {
            writes.insert_with(stored, key.as_slice(), value.as_slice(), metadata);
        })
    }

    /// Removes `key`, whether or not it is present.
    #[pyo3(signature = (key, *, keyspace = None))]
    fn delete(&self, py: Python<'_>, key: BytesLike<'_>, keyspace: Option<Py<Keyspace>>) -> PyResult<()> {
        self.with(py, keyspace.as_ref(), |writes, stored| writes.remove(stored, key.as_slice()))
    }

    fn __setitem__(&self, py: Python<'_>, key: BytesLike<'_>, value: BytesLike<'_>) -> PyResult<()> {
        self.with(py, None, |writes, stored| writes.insert(stored, key.as_slice(), value.as_slice()))
    }

    fn __delitem__(&self, py: Python<'_>, key: BytesLike<'_>) -> PyResult<()> {
        self.with(py, None, |writes, stored| writes.remove(stored, key.as_slice()))
    }

    /// Demands that there is no item under `key`.
    #[pyo3(signature = (key, *, keyspace = None))]
    fn require_absent(
        &self,
        py: Python<'_>,
        key: BytesLike<'_>,
        keyspace: Option<Py<Keyspace>>,
    ) -> PyResult<()> {
        self.require(py, &key, Condition::Absent, keyspace.as_ref())
    }

    /// Demands that there is an item under `key`.
    #[pyo3(signature = (key, *, keyspace = None))]
    fn require_present(
        &self,
        py: Python<'_>,
        key: BytesLike<'_>,
        keyspace: Option<Py<Keyspace>>,
    ) -> PyResult<()> {
        self.require(py, &key, Condition::Present, keyspace.as_ref())
    }

    /// Demands that `key` has this value.
    #[pyo3(signature = (key, value, *, keyspace = None))]
    fn require_value(
        &self,
        py: Python<'_>,
        key: BytesLike<'_>,
        value: BytesLike<'_>,
        keyspace: Option<Py<Keyspace>>,
    ) -> PyResult<()> {
        self.require(py, &key, Condition::Value(value.as_slice().to_vec()), keyspace.as_ref())
    }

    /// Demands that the item of `key`, or its absence, is as when `get_with_version` returned `version`.
    #[pyo3(signature = (key, version, *, keyspace = None))]
    fn require_unchanged(
        &self,
        py: Python<'_>,
        key: BytesLike<'_>,
        version: [u8; 32],
        keyspace: Option<Py<Keyspace>>,
    ) -> PyResult<()> {
        self.require(py, &key, Condition::Unchanged(ItemVersion::from_bytes(version)), keyspace.as_ref())
    }

    /// Number of writes collected.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let writes = self.writes.get(py)?.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(writes.as_ref().map_or(0, Writes::len))
    }

    /// Performs the writes if all conditions hold. After that the batch is over.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        let writes = self.writes.get(py)?.lock().unwrap_or_else(PoisonError::into_inner).take();
        let writes = writes.ok_or_else(|| failure::closed(py, "the batch"))?;
        py.detach(|| writes.commit()).or_raise(py)
    }

    /// As `commit`, but returns whether all conditions held instead of raising ConditionFailedError.
    fn try_commit(&self, py: Python<'_>) -> PyResult<bool> {
        let writes = self.writes.get(py)?.lock().unwrap_or_else(PoisonError::into_inner).take();
        let writes = writes.ok_or_else(|| failure::closed(py, "the batch"))?;
        match py.detach(|| writes.commit()) {
            Err(Error::ConditionFailed(_)) => Ok(false),
            outcome => outcome.or_raise(py).map(|()| true),
        }
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
        let writes = self.writes.get(py)?.lock().unwrap_or_else(PoisonError::into_inner).take();
        match writes {
            Some(writes) if exception.is_none() => py.detach(|| writes.commit()).or_raise(py),
            _ => Ok(()),
        }
    }

    fn __reduce_ex__(&self, _protocol: i32) -> PyResult<()> {
        Err(failure::pickled("a batch"))
    }
}
