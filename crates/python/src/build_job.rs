//! The class `BuildJob`: what all shards of a bulk build have in common.

use alluvium::{BuildJob as Job, HashKey, Order, PrefixRule};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use crate::batches::slices;
use crate::bytes_like::{self, BytesLike};
use crate::columns::Column;
use crate::failure::{self, OrRaise};
use crate::opened::DEFAULT;
use crate::settings;

/// A bulk build: each task that writes a shard gets the same job, which can be pickled. A pickled job has the hash key.
///
/// `id` distinguishes the job from others. `hash_key`, 16 bytes or 32 hexadecimal digits, is secret and places items in
/// shards; programs that route keys, and versions that replace each other, share it. With `delimiter` or
/// `prefix_bytes`, items whose keys have the same prefix are stored together, in one shard.
#[pyclass(frozen, module = "alluvium_db")]
#[derive(Debug)]
pub struct BuildJob {
    pub(crate) job: Job,
    /// As it was given.
    plan: Option<Py<PyAny>>,
}

#[pymethods]
impl BuildJob {
    #[new]
    #[pyo3(signature = (id, hash_key, shards, *, keyspace = DEFAULT, delimiter = None, prefix_bytes = None,
        listed_prefixes = false, plan = None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn new(
        py: Python<'_>,
        id: String,
        hash_key: &Bound<'_, PyAny>,
        shards: u32,
        keyspace: &str,
        delimiter: Option<BytesLike<'_>>,
        prefix_bytes: Option<u16>,
        listed_prefixes: bool,
        plan: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let order = settings::order(py, delimiter.as_ref(), prefix_bytes, listed_prefixes)?;
        let mut job = Job::new(id, key(hash_key)?, shards);
        keyspace.clone_into(&mut job.keyspace);
        job.order = order.unwrap_or(Order::Hashed);
        job.plan = plan.as_ref().map(settings::plan).transpose()?;
        job.check().or_raise(py)?;
        Ok(Self { job, plan: plan.map(Bound::unbind) })
    }

    /// Distinguishes the job from others.
    #[getter]
    fn id(&self) -> &str {
        &self.job.id
    }

    /// Number of shards.
    #[getter]
    fn shards(&self) -> u32 {
        self.job.shards
    }

    /// The name of the keyspace that is built.
    #[getter]
    fn keyspace(&self) -> &str {
        &self.job.keyspace
    }

    /// Says whether two hash keys are the same, without showing them: builds and versions have it, too.
    #[getter]
    fn hash_key_fingerprint(&self) -> String {
        self.job.hash_key.fingerprint()
    }

    /// The number, from 0, of the shard that has `key`.
    fn shard_of(&self, key: BytesLike<'_>) -> u32 {
        self.job.shard_of(key.as_slice())
    }

    /// The shards of many keys, in their order.
    fn shards_of<'py>(&self, py: Python<'py>, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let keys = bytes_like::all(keys)?;
        let keys = slices(&keys);
        let shards: Vec<u32> = py.detach(|| keys.iter().map(|key| self.job.shard_of(key)).collect());
        PyList::new(py, shards)
    }

    fn _shards_of_column<'py>(&self, py: Python<'py>, keys: Column<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let keys = keys.slices(py)?;
        let shard = |row| self.job.shard_of(keys.get(row)).to_le_bytes();
        let shards: Vec<u8> = py.detach(|| (0..keys.len()).flat_map(shard).collect());
        Ok(PyBytes::new(py, &shards))
    }

    /// The shards of a column of keys, as an array of Arrow of type uint32, which numpy reads without a copy.
    fn shards_of_arrow<'py>(slf: &Bound<'py, Self>, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("alluvium_db.arrow")?.call_method1("shards_of", (slf, keys))
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<NewArguments<'_, 'py>> {
        let options = PyDict::new(py);
        options.set_item("keyspace", &self.job.keyspace)?;
        options.set_item("plan", self.plan.as_ref())?;
        if let Order::SemiSorted { prefix, lists_prefixes } = self.job.order {
            options.set_item("listed_prefixes", lists_prefixes)?;
            match prefix {
                PrefixRule::Delimiter { byte } => options.set_item("delimiter", PyBytes::new(py, &[byte]))?,
                PrefixRule::Length { bytes } => options.set_item("prefix_bytes", bytes)?,
                PrefixRule::Function(_) => return Err(failure::pickled("a job with a prefix function")),
            }
        }
        Ok(((&self.job.id, PyBytes::new(py, &self.job.hash_key.to_bytes()), self.job.shards), options))
    }

    // Without the hash key.
    fn __repr__(&self) -> String {
        format!("<alluvium_db.BuildJob {:?}, {} shards>", self.job.id, self.job.shards)
    }
}

/// What makes a job when it is unpickled: its id, hash key and number of shards, and options by name.
type NewArguments<'job, 'py> = ((&'job str, Bound<'py, PyBytes>, u32), Bound<'py, PyDict>);

/// A hash key: 16 bytes or 32 hexadecimal digits. It is secret, so it is in no message.
fn key(given: &Bound<'_, PyAny>) -> PyResult<HashKey> {
    let refused = || failure::settings(given.py(), "a hash key has 16 bytes, or 32 hexadecimal digits");
    if let Ok(text) = given.cast::<PyString>() {
        let text = text.to_str()?.trim();
        let digits = u128::from_str_radix(text, 16).map_err(|_| refused())?;
        let is_plain = text.len() == 32 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        return if is_plain { Ok(HashKey::from_bytes(digits.to_be_bytes())) } else { Err(refused()) };
    }
    let bytes: BytesLike<'_> = given.extract()?;
    bytes.as_slice().try_into().map(HashKey::from_bytes).map_err(|_| refused())
}
