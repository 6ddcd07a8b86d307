//! The class `Keyspace`: single items. Batches of items are in `batches` and `columns`.

use alluvium::{Keyspace as Stored, Metadata, Order, PrefixRule, Update};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::bytes_like::BytesLike;
use crate::failure::{self, OrRaise};
use crate::fork::Living;
use crate::iterator::{ItemIterator, Kind};
use crate::metadata::{Extras, WithMetadata, expires_at};
use crate::opened::Opened;
use crate::settings::duration;
use crate::write_batch::Batch;

/// A named set of items: a mutable mapping from bytes to bytes.
///
/// Keys and values are given as bytes, str (stored as UTF-8) or any contiguous buffer, and always returned as bytes.
/// Keys have up to 64 KiB, values up to 64 MiB. Made by `Database.keyspace`; a database is its keyspace "default".
///
/// All methods may be called from many threads, and let other threads run while they read or wait.
#[pyclass(frozen, subclass, mapping, module = "alluvium_db")]
#[derive(Debug)]
pub struct Keyspace {
    pub(crate) opened: Living<Opened>,
}

impl Keyspace {
    /// The keyspace.
    pub fn of(opened: Opened) -> Self {
        Self { opened: Living::new(opened) }
    }

    #[inline]
    pub(crate) fn opened(&self, py: Python<'_>) -> PyResult<&Opened> {
        self.opened.get(py)
    }

    /// The engine's keyspace.
    #[inline]
    pub(crate) fn stored(&self, py: Python<'_>) -> PyResult<&Stored> {
        let opened = self.opened(py)?;
        match opened.known() {
            Some(stored) => Ok(stored),
            None => py.detach(|| opened.keyspace()).or_raise(py),
        }
    }

    fn iterator(&self, py: Python<'_>, kind: Kind) -> PyResult<ItemIterator> {
        let stored = self.stored(py)?;
        Ok(ItemIterator::over(py.detach(|| stored.iter()), kind))
    }

    fn found<'py>(&self, py: Python<'py>, key: &BytesLike<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let (stored, key) = (self.stored(py)?, key.as_slice());
        let value = py.detach(|| stored.get(key)).or_raise(py)?;
        Ok(value.map(|value| PyBytes::new(py, &value)))
    }

    /// Removes an item and returns its value, if there is one.
    fn taken<'py>(&self, py: Python<'py>, key: &BytesLike<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let (stored, key) = (self.stored(py)?, key.as_slice());
        let value = py.detach(|| stored.update(key, |_| Update::Remove)).or_raise(py)?;
        Ok(value.map(|value| PyBytes::new(py, &value)))
    }
}

/// The exception for an absent key.
fn absent(key: &BytesLike<'_>) -> PyErr {
    match key {
        BytesLike::Bytes(key) => PyKeyError::new_err(key.clone().unbind()),
        BytesLike::Text(key) => PyKeyError::new_err(key.clone().unbind()),
        BytesLike::Copy(key) => PyKeyError::new_err(key.clone()),
    }
}

#[pymethods]
impl Keyspace {
    /// Its name.
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<&str> {
        Ok(self.opened(py)?.name())
    }

    /// Its order: "hashed", or the rule by which keys have prefixes.
    #[getter]
    fn order(&self, py: Python<'_>) -> PyResult<String> {
        Ok(match self.stored(py)?.order() {
            Order::Hashed => "hashed".to_owned(),
            Order::SemiSorted { prefix, .. } => match prefix {
                PrefixRule::Delimiter { byte } => format!("delimiter {:?}", char::from(byte)),
                PrefixRule::Length { bytes } => format!("prefix of {bytes} bytes"),
                PrefixRule::Function(function) => format!("function {function:?}"),
            },
        })
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: BytesLike<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.found(py, &key)?.ok_or_else(|| absent(&key))
    }

    fn __setitem__(&self, py: Python<'_>, key: BytesLike<'_>, value: BytesLike<'_>) -> PyResult<()> {
        let (stored, key, value) = (self.stored(py)?, key.as_slice(), value.as_slice());
        py.detach(|| stored.insert(key, value)).or_raise(py)
    }

    fn __delitem__(&self, py: Python<'_>, key: BytesLike<'_>) -> PyResult<()> {
        self.taken(py, &key)?.map(drop).ok_or_else(|| absent(&key))
    }

    fn __contains__(&self, py: Python<'_>, key: BytesLike<'_>) -> PyResult<bool> {
        let (stored, key) = (self.stored(py)?, key.as_slice());
        py.detach(|| stored.contains_key(key)).or_raise(py)
    }

    /// The exact number of items. Reads all of them: see `approximate_len`.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let stored = self.stored(py)?;
        let count = py.detach(|| stored.count()).or_raise(py)?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// Whether there is any item.
    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        let stored = self.stored(py)?;
        Ok(py.detach(|| stored.iter().next().transpose()).or_raise(py)?.is_some())
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<ItemIterator> {
        self.iterator(py, Kind::Keys)
    }

    fn __eq__<'py>(&self, py: Python<'py>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        py.import("alluvium_db.views")?.call_method1("is_equal", (self.iterator(py, Kind::Items)?, other))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<alluvium_db.Keyspace {:?}>", self.opened(py)?.name()))
    }

    /// The number of items, estimated from above. Costs nothing.
    fn approximate_len(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.stored(py)?.approximate_len())
    }

    /// The value of `key`, or `default` if it is absent. Costs at most one read of a page.
    #[pyo3(signature = (key, default = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: BytesLike<'py>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.found(py, &key)?.map(Bound::into_any).or(default))
    }

    /// The value, the flags and the expiry (seconds since 1970, or None) of `key`; None if it is absent.
    fn get_with_metadata<'py>(
        &self,
        py: Python<'py>,
        key: BytesLike<'py>,
    ) -> PyResult<Option<WithMetadata<'py>>> {
        let (stored, key) = (self.stored(py)?, key.as_slice());
        let item = py.detach(|| stored.get_with_metadata(key)).or_raise(py)?;
        Ok(item.map(|(value, metadata)| (PyBytes::new(py, &value), metadata.flags, expires_at(metadata))))
    }

    /// The value of `key` (or None) and its version, which stands for value, flags and expiry.
    fn get_with_version<'py>(
        &self,
        py: Python<'py>,
        key: BytesLike<'py>,
    ) -> PyResult<(Option<Bound<'py, PyBytes>>, Bound<'py, PyBytes>)> {
        let (stored, key) = (self.stored(py)?, key.as_slice());
        let found = py.detach(|| stored.get_with_version(key)).or_raise(py)?;
        let value = found.item.map(|(value, _)| PyBytes::new(py, &value));
        Ok((value, PyBytes::new(py, &found.version.to_bytes())))
    }

    /// Stores `value` under `key`: for `ttl` seconds, until `expires_at` (seconds since 1970), or for good.
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
        let (stored, key, value) = (self.stored(py)?, key.as_slice(), value.as_slice());
        py.detach(|| stored.insert_with(key, value, metadata)).or_raise(py)
    }

    /// Removes `key`, whether or not it is present. Unlike `del`, it reads nothing.
    fn delete(&self, py: Python<'_>, key: BytesLike<'_>) -> PyResult<()> {
        let (stored, key) = (self.stored(py)?, key.as_slice());
        py.detach(|| stored.remove(key)).or_raise(py)
    }

    /// Removes `key` and returns its value, or `default` if it is absent; without a default, KeyError.
    #[pyo3(signature = (key, *default))]
    fn pop<'py>(
        &self,
        py: Python<'py>,
        key: BytesLike<'py>,
        default: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.taken(py, &key)? {
            Some(value) => Ok(value.into_any()),
            None => default.get_item(0).map_err(|_| absent(&key)),
        }
    }

    /// Removes any item and returns its key and value.
    fn popitem<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let stored = self.stored(py)?;
        loop {
            let first = py.detach(|| stored.iter().next().transpose()).or_raise(py)?;
            let Some((key, _)) = first else { return Err(PyKeyError::new_err("the keyspace is empty")) };
            // Another thread may have removed it meanwhile.
            if let Some(value) = py.detach(|| stored.update(&key, |_| Update::Remove)).or_raise(py)? {
                return Ok((PyBytes::new(py, &key), PyBytes::new(py, &value)));
            }
        }
    }

    /// The value of `key`; if it is absent, stores `default` and returns that. Atomic.
    fn setdefault<'py>(
        &self,
        py: Python<'py>,
        key: BytesLike<'py>,
        default: BytesLike<'py>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (stored, key, default) = (self.stored(py)?, key.as_slice(), default.as_slice());
        let change = |before: Option<&[u8]>| match before {
            Some(_) => Update::Keep,
            None => Update::Insert(default.to_vec()),
        };
        let before = py.detach(|| stored.update(key, change)).or_raise(py)?;
        Ok(PyBytes::new(py, before.as_deref().unwrap_or(default)))
    }

    /// Stores all items of a mapping or an iterable of pairs, and the keyword arguments, by `put_many`.
    #[pyo3(signature = (other = None, **items))]
    fn update(
        slf: &Bound<'_, Self>,
        other: Option<&Bound<'_, PyAny>>,
        items: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        for items in other.into_iter().chain(items.map(|items| items.as_any())) {
            slf.call_method1("put_many", (items,))?;
        }
        Ok(())
    }

    /// Removes all items; frees their space at once.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let stored = self.stored(py)?;
        py.detach(|| stored.clear()).or_raise(py)
    }

    /// Atomically replaces the value of `key` by `function(value)` and returns the new value. Both are None if there
    /// is none. `function` is called again if another thread wrote the key meanwhile. Flags and expiry are kept.
    fn modify<'py>(
        &self,
        py: Python<'py>,
        key: BytesLike<'py>,
        function: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let (stored, key) = (self.stored(py)?, key.as_slice());
        let function = function.clone().unbind();
        let mut outcome: PyResult<Option<Vec<u8>>> = Ok(None);
        let change = |before: Option<(&[u8], Metadata)>| {
            let called = Python::attach(|py| {
                let value = before.map(|(value, _)| PyBytes::new(py, value));
                let after = function.call1(py, (value,))?;
                let after: Option<BytesLike<'_>> = after.extract(py)?;
                Ok(after.map(|after| after.as_slice().to_vec()))
            });
            let update = match &called {
                Err(_) => Update::Keep,
                Ok(None) => Update::Remove,
                Ok(Some(value)) => Update::InsertWith(
                    value.clone(),
                    before.map(|(_, metadata)| metadata).unwrap_or_default(),
                ),
            };
            outcome = called;
            update
        };
        py.detach(|| stored.update_with_metadata(key, change)).or_raise(py)?;
        Ok(outcome?.map(|value| PyBytes::new(py, &value)))
    }

    /// Stores `new` (None: removes the key) if the value is `expected` (None: if it is absent); returns whether it was.
    fn compare_and_swap(
        &self,
        py: Python<'_>,
        key: BytesLike<'_>,
        expected: Option<BytesLike<'_>>,
        new: Option<BytesLike<'_>>,
    ) -> PyResult<bool> {
        let (stored, key) = (self.stored(py)?, key.as_slice());
        let expected = expected.as_ref().map(BytesLike::as_slice);
        let new = new.as_ref().map(BytesLike::as_slice);
        py.detach(|| stored.compare_and_swap(key, expected, new)).or_raise(py)
    }

    /// Atomically adds `by` to the number under `key` (8 bytes, lowest first; absent counts as 0); returns the sum.
    #[pyo3(signature = (key, by = 1))]
    fn increment(&self, py: Python<'_>, key: BytesLike<'_>, by: i64) -> PyResult<i64> {
        let (stored, key) = (self.stored(py)?, key.as_slice());
        py.detach(|| stored.increment(key, by)).or_raise(py)
    }

    /// Atomically appends `value` to the value of `key` (absent counts as empty); returns the new length.
    fn append(&self, py: Python<'_>, key: BytesLike<'_>, value: BytesLike<'_>) -> PyResult<usize> {
        let (stored, key, value) = (self.stored(py)?, key.as_slice(), value.as_slice());
        py.detach(|| stored.append(key, value)).or_raise(py)
    }

    /// Lets `key` expire in `ttl` seconds, or never (None); returns whether it is present.
    fn touch(&self, py: Python<'_>, key: BytesLike<'_>, ttl: Option<f64>) -> PyResult<bool> {
        let expiry = Extras { ttl, expires_at: None, flags: 0 }.metadata(py)?;
        ttl.map(|ttl| duration(py, ttl)).transpose()?;
        let (stored, key) = (self.stored(py)?, key.as_slice());
        let change = |before: Option<(&[u8], Metadata)>| match before {
            Some((value, Metadata { flags, .. })) => {
                Update::InsertWith(value.to_vec(), Metadata { flags, ..expiry })
            }
            None => Update::Keep,
        };
        Ok(py.detach(|| stored.update_with_metadata(key, change)).or_raise(py)?.is_some())
    }

    /// All keys, as a set-like view.
    fn keys<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("alluvium_db.views")?.call_method1("Keys", (slf,))
    }

    /// All values, as a view.
    fn values<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("alluvium_db.views")?.call_method1("Values", (slf,))
    }

    /// All items as pairs, as a view. The order is that of hashes.
    fn items<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("alluvium_db.views")?.call_method1("Items", (slf,))
    }

    fn _iter_values(&self, py: Python<'_>) -> PyResult<ItemIterator> {
        self.iterator(py, Kind::Values)
    }

    fn _iter_items(&self, py: Python<'_>) -> PyResult<ItemIterator> {
        self.iterator(py, Kind::Items)
    }

    /// The items of one prefix, as an iterator of pairs: what the keyspace's rule says is the prefix of their keys.
    fn scan_prefix(&self, py: Python<'_>, prefix: BytesLike<'_>) -> PyResult<ItemIterator> {
        let (stored, prefix) = (self.stored(py)?, prefix.as_slice());
        let items = py.detach(|| stored.scan_prefix(prefix)).or_raise(py)?;
        Ok(ItemIterator::over(items, Kind::Items))
    }

    /// Removes all items of one prefix, atomically.
    fn delete_prefix(&self, py: Python<'_>, prefix: BytesLike<'_>) -> PyResult<()> {
        let (stored, prefix) = (self.stored(py)?, prefix.as_slice());
        py.detach(|| stored.delete_prefix(prefix)).or_raise(py)
    }

    /// The prefixes that have items, in the order of their bytes, from `start` on.
    #[pyo3(signature = (start = None))]
    fn prefixes(&self, py: Python<'_>, start: Option<BytesLike<'_>>) -> PyResult<ItemIterator> {
        let stored = self.stored(py)?;
        let start = start.as_ref().map_or(&[][..], BytesLike::as_slice);
        Ok(ItemIterator::over_prefixes(py.detach(|| stored.prefixes_from(start)).or_raise(py)?))
    }

    /// An empty batch of writes that take effect together. Writes without a keyspace go to this one.
    fn batch(slf: &Bound<'_, Self>) -> PyResult<Batch> {
        Batch::new(slf.py(), slf.clone().unbind())
    }

    fn __reduce_ex__(&self, _protocol: i32) -> PyResult<()> {
        Err(failure::pickled("a database or keyspace"))
    }
}
