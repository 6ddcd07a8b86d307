//! Methods of `Keyspace` for many items given as Python objects.

use alluvium::{Keyspace as Stored, Metadata};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::bytes_like::{self, BytesLike};
use crate::failure::OrRaise;
use crate::ingest::Ingest;
use crate::keyspace::Keyspace;
use crate::metadata::Extras;

/// The bytes of each.
pub fn slices<'a>(all: &'a [BytesLike<'_>]) -> Vec<&'a [u8]> {
    all.iter().map(BytesLike::as_slice).collect()
}

/// A list of values; `default` for absent ones.
pub fn listed<'py>(
    py: Python<'py>,
    values: Vec<Option<Vec<u8>>>,
    default: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyList>> {
    let default = default.unwrap_or_else(|| py.None().into_bound(py));
    let object = |value: Option<Vec<u8>>| match value {
        Some(value) => PyBytes::new(py, &value).into_any(),
        None => default.clone(),
    };
    PyList::new(py, values.into_iter().map(object))
}

/// Stores items one after the other, without waiting for each.
pub fn insert_each<'a>(
    stored: &Stored,
    items: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    metadata: Metadata,
) -> alluvium::Result<()> {
    let has_extras = metadata != Metadata::default();
    for (key, value) in items {
        match has_extras {
            true => stored.insert_with(key, value, metadata)?,
            false => stored.insert(key, value)?,
        }
    }
    Ok(())
}

#[pymethods]
impl Keyspace {
    /// The values of many keys, in their order; `default` for absent ones. All reads are in flight together.
    #[pyo3(signature = (keys, default = None))]
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let keys = bytes_like::all(keys)?;
        let (stored, keys) = (self.stored(py)?, slices(&keys));
        let values = py.detach(|| stored.multi_get(&keys)).or_raise(py)?;
        listed(py, values, default)
    }

    /// Whether each of many keys is present. All reads are in flight together.
    fn contains_many<'py>(&self, py: Python<'py>, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let keys = bytes_like::all(keys)?;
        let (stored, keys) = (self.stored(py)?, slices(&keys));
        let found = py.detach(|| stored.multi_get_short(&keys, 0)).or_raise(py)?;
        PyList::new(py, found.iter().map(Option::is_some))
    }

    /// Stores all items of a mapping or an iterable of pairs; waits once until all are durable. With `atomic`, all of
    /// them take effect together; otherwise an exception or a crash leaves some stored.
    #[pyo3(signature = (items, *, ttl = None, expires_at = None, flags = 0, atomic = false))]
    fn put_many(
        &self,
        py: Python<'_>,
        items: &Bound<'_, PyAny>,
        ttl: Option<f64>,
        expires_at: Option<f64>,
        flags: u32,
        atomic: bool,
    ) -> PyResult<()> {
        let metadata = Extras { ttl, expires_at, flags }.metadata(py)?;
        let items = bytes_like::all_pairs(items)?;
        let items: Vec<_> = items.iter().map(|(key, value)| (key.as_slice(), value.as_slice())).collect();
        let opened = self.opened(py)?;
        let put = || {
            let db = &opened.of.db;
            if atomic {
                let (mut batch, stored) = (db.batch(), opened.keyspace()?);
                items.iter().for_each(|&(key, value)| batch.insert_with(stored, key, value, metadata));
                return batch.commit();
            }
            insert_each(opened.deferred()?, items.iter().copied(), metadata)?;
            db.commit()
        };
        py.detach(put).or_raise(py)
    }

    /// Removes many keys, whether or not they are present; waits once. `atomic` as for `put_many`.
    #[pyo3(signature = (keys, *, atomic = false))]
    fn delete_many(&self, py: Python<'_>, keys: &Bound<'_, PyAny>, atomic: bool) -> PyResult<()> {
        let keys = bytes_like::all(keys)?;
        let (opened, keys) = (self.opened(py)?, slices(&keys));
        let delete = || {
            let db = &opened.of.db;
            if atomic {
                let (mut batch, stored) = (db.batch(), opened.keyspace()?);
                keys.iter().for_each(|&key| batch.remove(stored, key));
                return batch.commit();
            }
            let stored = opened.deferred()?;
            keys.iter().try_for_each(|key| stored.remove(key))?;
            db.commit()
        };
        py.detach(delete).or_raise(py)
    }

    /// Begins a bulk load: items that are added, in any order, go straight to tables, at a fraction of the cost of
    /// puts. They are visible when the load is finished, at the end of the `with` block or by `finish()`.
    fn ingest(&self, py: Python<'_>) -> PyResult<Ingest> {
        let stored = self.stored(py)?;
        Ok(Ingest::of(py.detach(|| stored.ingest()).or_raise(py)?))
    }
}
