//! [`BytesLike`]: a key or a value as Python gives it.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyMemoryView, PyString, PyTuple};

/// Bytes, text (as UTF-8), or the content of a buffer.
///
/// `bytes` and `str` never change, so they are read where they are, even while other threads run Python. Other buffers
/// may change at any time and are copied.
#[derive(Debug)]
pub enum BytesLike<'py> {
    /// A `bytes` object.
    Bytes(Bound<'py, PyBytes>),
    /// Text that can be encoded.
    Text(Bound<'py, PyString>),
    /// A copy of a buffer.
    Copy(Vec<u8>),
}

impl BytesLike<'_> {
    /// The bytes.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes.as_bytes(),
            Self::Text(text) => text.to_str().map_or(&[], str::as_bytes),
            Self::Copy(bytes) => bytes,
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for BytesLike<'py> {
    type Error = PyErr;

    #[inline]
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Self::Bytes((*bytes).clone()));
        }
        if let Ok(text) = object.cast::<PyString>() {
            // Fails here if it has surrogates, and is cached for later.
            text.to_str()?;
            return Ok(Self::Text((*text).clone()));
        }
        copied(&object).map(Self::Copy)
    }
}

/// A copy of the content of a contiguous buffer of any element type.
fn copied(object: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let py = object.py();
    if let Ok(buffer) = PyBuffer::<u8>::get(object) {
        return buffer.to_vec(py);
    }
    let refused = || {
        let name = object.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string());
        PyTypeError::new_err(format!("expected bytes, str or a contiguous buffer, not {name}"))
    };
    let view = PyMemoryView::from(object).map_err(|_| refused())?;
    let bytes = view.call_method1("cast", ("B",)).map_err(|_| refused())?;
    PyBuffer::<u8>::get(&bytes)?.to_vec(py)
}

/// All of `objects`, an iterable of bytes-like objects.
pub fn all<'py>(objects: &Bound<'py, PyAny>) -> PyResult<Vec<BytesLike<'py>>> {
    if let Ok(list) = objects.cast::<PyList>() {
        return list.iter().map(|object| object.extract()).collect();
    }
    if let Ok(tuple) = objects.cast::<PyTuple>() {
        return tuple.iter().map(|object| object.extract()).collect();
    }
    if objects.is_instance_of::<PyString>() || objects.is_instance_of::<PyBytes>() {
        return Err(PyTypeError::new_err("expected many keys, not a single one"));
    }
    objects.try_iter()?.map(|object| object?.extract()).collect()
}

/// All pairs of `items`, a mapping or an iterable of pairs.
pub fn all_pairs<'py>(items: &Bound<'py, PyAny>) -> PyResult<Vec<(BytesLike<'py>, BytesLike<'py>)>> {
    if items.hasattr("keys")? {
        return items.call_method0("items")?.try_iter()?.map(|pair| pair?.extract()).collect();
    }
    items.try_iter()?.map(|pair| pair?.extract()).collect()
}
