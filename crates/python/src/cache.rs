//! The class `Cache`: items in memory, which may be forgotten.

use std::path::PathBuf;

use alluvium_cache::{
    Cache as InMemory, Compressed, Concurrent, IncrementError, ItemView, Outcome, SetOptions, Survive,
    SurvivingCache, TooLarge,
};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::batches::{listed, slices};
use crate::bytes_like::{self, BytesLike};
use crate::failure::{self, OrRaise};
use crate::fork::Living;
use crate::metadata::WithMetadata;
use crate::settings::{codec, duration};

/// Partitions, so that threads rarely wait for each other's writes.
const PARTITIONS: usize = 16;

/// A cache of a given size in memory: it forgets items when it is full. Keys and values are as those of a keyspace.
///
/// With `compress` ("lz4" or "zstd"), items that would be forgotten stay in compressed blocks, so it holds more of
/// them. With `survive`, the cache is in a file of that path, where the next process that opens it with the same
/// settings finds its content again; `survive_loss` is "process" (the default), "power" or "pmem". `item_bytes` is the
/// mean number of bytes of key and value, by which memory is divided.
#[pyclass(frozen, module = "alluvium_db")]
#[derive(Debug)]
pub struct Cache {
    of: Living<Kind>,
}

/// The two forms.
#[derive(Debug)]
enum Kind {
    Memory(Box<InMemory<Concurrent>>),
    File(Box<SurvivingCache>),
}

/// Calls the same method of either form.
macro_rules! either {
    ($kind:expr, $cache:ident => $call:expr) => {
        match $kind {
            Kind::Memory($cache) => $call,
            Kind::File($cache) => $call,
        }
    };
}

impl Cache {
    /// Memory is read at once; a file may have to be waited for.
    fn found<'py>(&self, py: Python<'py>, key: &BytesLike<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let key = key.as_slice();
        let value = match self.of.get(py)? {
            Kind::Memory(cache) => cache.get_with(key, |item| PyBytes::new(py, item.value)),
            Kind::File(cache) => py.detach(|| cache.get(key)).map(|value| PyBytes::new(py, &value)),
        };
        Ok(value.map(Bound::into_any))
    }
}

fn options(py: Python<'_>, ttl: Option<f64>, flags: u32) -> PyResult<SetOptions> {
    let time_to_live = ttl.map(|ttl| duration(py, ttl)).transpose()?;
    Ok(SetOptions { time_to_live, flags })
}

#[pymethods]
impl Cache {
    #[new]
    #[pyo3(signature = (
        memory_bytes = 64 << 20, *, item_bytes = 200, item_bytes_max = None, compress = None, survive = None,
        survive_loss = "process", reset = false
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new(
        py: Python<'_>,
        memory_bytes: usize,
        item_bytes: usize,
        item_bytes_max: Option<usize>,
        compress: Option<&Bound<'_, PyAny>>,
        survive: Option<PathBuf>,
        survive_loss: &str,
        reset: bool,
    ) -> PyResult<Self> {
        let mut builder = InMemory::builder()
            .memory_limit(memory_bytes)
            .partitions((memory_bytes >> 22).clamp(1, PARTITIONS))
            .payload_bytes_mean(item_bytes);
        if let Some(bytes) = item_bytes_max {
            builder = builder.item_bytes_max(bytes);
        }
        let codec = compress.map(codec).transpose()?;
        let kind = match survive {
            None => {
                if let Some(codec) = codec {
                    builder = builder.compressed(Compressed { codec, ..Compressed::default() });
                }
                Kind::Memory(Box::new(py.detach(|| builder.build()).or_raise(py)?))
            }
            Some(path) => {
                let survive = match survive_loss {
                    "process" => Survive::Process,
                    "power" => Survive::Power,
                    "pmem" => Survive::Pmem,
                    other => {
                        let message =
                            format!("survive_loss {other:?}: give \"process\", \"power\" or \"pmem\"");
                        return Err(failure::settings(py, &message));
                    }
                };
                let mut builder = builder.survive(path, survive).reset(reset);
                if let Some(codec) = codec {
                    builder = builder.compressed(codec);
                }
                Kind::File(Box::new(py.detach(|| builder.open()).or_raise(py)?))
            }
        };
        Ok(Self { of: Living::new(kind) })
    }

    /// The value of `key`, or `default` if there is none.
    #[pyo3(signature = (key, default = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: BytesLike<'py>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.found(py, &key)?.or(default))
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: BytesLike<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.found(py, &key)?.ok_or_else(|| PyKeyError::new_err(key.as_slice().to_vec()))
    }

    /// The value, the flags and the seconds left (None for no limit) of `key`; None if there is none.
    fn get_with_metadata<'py>(
        &self,
        py: Python<'py>,
        key: BytesLike<'py>,
    ) -> PyResult<Option<WithMetadata<'py>>> {
        let take = |item: ItemView<'_>| {
            (PyBytes::new(py, item.value), item.flags, item.time_to_live.map(|left| left.as_secs_f64()))
        };
        Ok(either!(self.of.get(py)?, cache => cache.get_with(key.as_slice(), take)))
    }

    /// The values of many keys, in their order; `default` for absent ones.
    #[pyo3(signature = (keys, default = None))]
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let keys = bytes_like::all(keys)?;
        let (kind, keys) = (self.of.get(py)?, slices(&keys));
        let values = py.detach(|| either!(kind, cache => cache.get_many(&keys)));
        listed(py, values, default)
    }

    /// Stores `value` under `key`, for at most `ttl` seconds.
    #[pyo3(signature = (key, value, *, ttl = None, flags = 0))]
    fn set(
        &self,
        py: Python<'_>,
        key: BytesLike<'_>,
        value: BytesLike<'_>,
        ttl: Option<f64>,
        flags: u32,
    ) -> PyResult<()> {
        let options = options(py, ttl, flags)?;
        let (kind, key, value) = (self.of.get(py)?, key.as_slice(), value.as_slice());
        py.detach(|| either!(kind, cache => cache.set_with(key, value, options))).or_raise(py)
    }

    fn __setitem__(&self, py: Python<'_>, key: BytesLike<'_>, value: BytesLike<'_>) -> PyResult<()> {
        self.set(py, key, value, None, 0)
    }

    /// Stores all items of a mapping or an iterable of pairs, for at most `ttl` seconds.
    #[pyo3(signature = (items, *, ttl = None, flags = 0))]
    fn set_many(
        &self,
        py: Python<'_>,
        items: &Bound<'_, PyAny>,
        ttl: Option<f64>,
        flags: u32,
    ) -> PyResult<()> {
        let options = options(py, ttl, flags)?;
        let items = bytes_like::all_pairs(items)?;
        let items: Vec<_> = items.iter().map(|(key, value)| (key.as_slice(), value.as_slice())).collect();
        let kind = self.of.get(py)?;
        let set = || -> Result<(), TooLarge> {
            if options == SetOptions::default() {
                return either!(kind, cache => cache.set_many(&items));
            }
            items
                .iter()
                .try_for_each(|(key, value)| either!(kind, cache => cache.set_with(key, value, options)))
        };
        py.detach(set).or_raise(py)
    }

    /// Stores `value` unless `key` has an item; returns whether it did.
    #[pyo3(signature = (key, value, *, ttl = None, flags = 0))]
    fn add(
        &self,
        py: Python<'_>,
        key: BytesLike<'_>,
        value: BytesLike<'_>,
        ttl: Option<f64>,
        flags: u32,
    ) -> PyResult<bool> {
        let options = options(py, ttl, flags)?;
        let (kind, key, value) = (self.of.get(py)?, key.as_slice(), value.as_slice());
        let outcome = py.detach(|| either!(kind, cache => cache.add(key, value, options))).or_raise(py)?;
        Ok(outcome == Outcome::Done)
    }

    /// Stores `value` if `key` has an item; returns whether it did.
    #[pyo3(signature = (key, value, *, ttl = None, flags = 0))]
    fn replace(
        &self,
        py: Python<'_>,
        key: BytesLike<'_>,
        value: BytesLike<'_>,
        ttl: Option<f64>,
        flags: u32,
    ) -> PyResult<bool> {
        let options = options(py, ttl, flags)?;
        let (kind, key, value) = (self.of.get(py)?, key.as_slice(), value.as_slice());
        let outcome =
            py.detach(|| either!(kind, cache => cache.replace(key, value, options))).or_raise(py)?;
        Ok(outcome == Outcome::Done)
    }

    /// Stores `new` if the value is `expected`; returns whether it was.
    #[pyo3(signature = (key, expected, new, *, ttl = None, flags = 0))]
    fn compare_and_swap(
        &self,
        py: Python<'_>,
        key: BytesLike<'_>,
        expected: BytesLike<'_>,
        new: BytesLike<'_>,
        ttl: Option<f64>,
        flags: u32,
    ) -> PyResult<bool> {
        let options = options(py, ttl, flags)?;
        let (kind, key) = (self.of.get(py)?, key.as_slice());
        let (expected, new) = (expected.as_slice(), new.as_slice());
        let swapped =
            py.detach(|| either!(kind, cache => cache.compare_and_swap(key, expected, new, options)));
        Ok(swapped.or_raise(py)? == Outcome::Done)
    }

    /// Adds `by` to the decimal number under `key` and returns the sum. An absent key counts as `initial`; None if
    /// that is None.
    #[pyo3(signature = (key, by = 1, initial = Some(0)))]
    fn increment(
        &self,
        py: Python<'_>,
        key: BytesLike<'_>,
        by: i64,
        initial: Option<i64>,
    ) -> PyResult<Option<i64>> {
        let (kind, key) = (self.of.get(py)?, key.as_slice());
        let sum: Result<_, IncrementError> =
            py.detach(|| either!(kind, cache => cache.increment(key, by, initial)));
        sum.or_raise(py)
    }

    /// Lets `key` expire in `ttl` seconds, or never (None); returns whether it has an item.
    fn touch(&self, py: Python<'_>, key: BytesLike<'_>, ttl: Option<f64>) -> PyResult<bool> {
        let ttl = ttl.map(|ttl| duration(py, ttl)).transpose()?;
        let (kind, key) = (self.of.get(py)?, key.as_slice());
        py.detach(|| either!(kind, cache => cache.touch(key, ttl))).or_raise(py)
    }

    /// Removes `key`; returns whether it had an item.
    fn delete(&self, py: Python<'_>, key: BytesLike<'_>) -> PyResult<bool> {
        let (kind, key) = (self.of.get(py)?, key.as_slice());
        Ok(py.detach(|| either!(kind, cache => cache.remove(key))))
    }

    fn __delitem__(&self, py: Python<'_>, key: BytesLike<'_>) -> PyResult<()> {
        let (kind, bytes) = (self.of.get(py)?, key.as_slice());
        match py.detach(|| either!(kind, cache => cache.remove(bytes))) {
            true => Ok(()),
            false => Err(PyKeyError::new_err(bytes.to_vec())),
        }
    }

    fn __contains__(&self, py: Python<'_>, key: BytesLike<'_>) -> PyResult<bool> {
        let kind = self.of.get(py)?;
        Ok(either!(kind, cache => cache.contains(key.as_slice())))
    }

    /// The number of items; of a cache in a file, an estimate.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(match self.of.get(py)? {
            Kind::Memory(cache) => cache.len(),
            Kind::File(cache) => usize::try_from(cache.len_estimate()).unwrap_or(usize::MAX),
        })
    }

    /// A cache is always true, also an empty one.
    fn __bool__(&self) -> bool {
        true
    }

    /// All items as pairs, in no order: a list, since items come and go.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let kind = self.of.get(py)?;
        let items: Vec<_> = py.detach(|| either!(kind, cache => cache.iter().collect()));
        let pair =
            |item: alluvium_cache::OwnedItem| (PyBytes::new(py, &item.key), PyBytes::new(py, &item.value));
        PyList::new(py, items.into_iter().map(pair))
    }

    /// Removes all items.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let kind = self.of.get(py)?;
        py.detach(|| either!(kind, cache => cache.clear()));
        Ok(())
    }

    /// Waits until all that was stored in a file is on the device; does nothing for a cache in memory.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        match self.of.get(py)? {
            Kind::Memory(_) => Ok(()),
            Kind::File(cache) => Ok(py.detach(|| cache.sync())?),
        }
    }

    /// Figures: items, hits and misses, evictions, bytes.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let figures = PyDict::new(py);
        match self.of.get(py)? {
            Kind::Memory(cache) => {
                let total = cache.stats().total();
                figures.set_item("hits", total.hits)?;
                figures.set_item("misses", total.misses)?;
                figures.set_item("items", total.items)?;
                figures.set_item("inserted", total.inserted)?;
                figures.set_item("replaced", total.replaced)?;
                figures.set_item("removed", total.removed)?;
                figures.set_item("evicted", total.evicted)?;
                figures.set_item("expired", total.expired)?;
                figures.set_item("too_large", total.too_large)?;
                figures.set_item("memory_bytes", total.memory_bytes)?;
                figures.set_item("compressed_items", total.zone.items)?;
            }
            Kind::File(cache) => {
                let stats = cache.stats();
                figures.set_item("opened", format!("{:?}", cache.opened()).to_lowercase())?;
                figures.set_item("items", cache.len_estimate())?;
                figures.set_item("hits", stats.hits)?;
                figures.set_item("misses", stats.misses)?;
                figures.set_item("file_bytes", stats.file_bytes)?;
            }
        }
        Ok(figures)
    }

    fn __reduce_ex__(&self, _protocol: i32) -> PyResult<()> {
        Err(failure::pickled("a cache"))
    }
}
