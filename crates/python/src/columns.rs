//! Methods of `Keyspace` for many items given as columns: buffers of Arrow or numpy.
//!
//! The Python layer takes the buffers out of the arrays. A buffer other than `bytes` is copied once before other
//! threads may run, since they may change it; that is a few hundredths of what storing its items costs.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};

use crate::batches::insert_each;
use crate::bytes_like::BytesLike;
use crate::failure::OrRaise;
use crate::keyspace::Keyspace;
use crate::metadata::Extras;
use crate::snapshot::KeyspaceSnapshot;

/// A column as the Python layer gives it: the data of all rows, the offsets of rows in it or the width of each, the
/// number of the first row, and the number of rows.
#[derive(Debug, FromPyObject)]
pub struct Column<'py>(BytesLike<'py>, Rows<'py>, usize, usize);

/// Where rows are in the data.
#[derive(Debug, FromPyObject)]
enum Rows<'py> {
    /// Each has this number of bytes.
    Width(usize),
    /// Offsets of this number of bytes each, one more than rows.
    Offsets(BytesLike<'py>, usize),
}

/// The bytes of each row.
pub struct Slices<'a> {
    data: &'a [u8],
    starts: Starts,
    rows: usize,
}

enum Starts {
    Width(usize),
    Offsets(Vec<usize>),
}

impl Column<'_> {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.3
    }

    /// The rows, checked: none is out of bounds.
    pub fn slices(&self, py: Python<'_>) -> PyResult<Slices<'_>> {
        let Self(data, rows, first, count) = self;
        let (data, first, count) = (data.as_slice(), *first, *count);
        let outside = || PyValueError::new_err("the offsets of an array are outside its data");
        let end = first.checked_add(count).ok_or_else(outside)?;
        match rows {
            Rows::Width(width) => {
                let bytes =
                    end.checked_mul(*width).filter(|&bytes| bytes <= data.len()).ok_or_else(outside)?;
                Ok(Slices { data: &data[first * width..bytes], starts: Starts::Width(*width), rows: count })
            }
            Rows::Offsets(offsets, width) => {
                let offsets = offsets.as_slice();
                let taken = py.detach(|| offsets_of(offsets, *width, first, count)).ok_or_else(outside)?;
                let is_sound = taken.is_sorted() && taken.last().is_none_or(|&last| last <= data.len());
                if !is_sound {
                    return Err(outside());
                }
                Ok(Slices { data, starts: Starts::Offsets(taken), rows: count })
            }
        }
    }
}

/// The offsets of `count` rows from the one of number `first` on, and the end of the last.
fn offsets_of(bytes: &[u8], width: usize, first: usize, count: usize) -> Option<Vec<usize>> {
    let end = first.checked_add(count)?.checked_add(1)?.checked_mul(width)?;
    if count == 0 {
        return Some(vec![0]);
    }
    let bytes = bytes.get(first * width..end)?;
    match width {
        4 => bytes.as_chunks().0.iter().map(|&offset| i32::from_le_bytes(offset).try_into().ok()).collect(),
        8 => bytes.as_chunks().0.iter().map(|&offset| i64::from_le_bytes(offset).try_into().ok()).collect(),
        _ => None,
    }
}

impl Slices<'_> {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// The bytes of a row.
    #[inline]
    pub fn get(&self, row: usize) -> &[u8] {
        match &self.starts {
            Starts::Width(width) => &self.data[row * width..(row + 1) * width],
            Starts::Offsets(offsets) => &self.data[offsets[row]..offsets[row + 1]],
        }
    }

    fn all(&self) -> Vec<&[u8]> {
        (0..self.rows).map(|row| self.get(row)).collect()
    }
}

/// Refuses columns of different lengths.
pub fn check_lengths(_py: Python<'_>, keys: &Column<'_>, values: &Column<'_>) -> PyResult<()> {
    if keys.len() == values.len() {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("{} keys, but {} values", keys.len(), values.len())))
}

/// Values in one buffer: the buffer, the 64-bit offsets of rows in it (one more than rows), and a bit for each row
/// that says whether it is there, as Arrow has them.
type Gathered<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

fn gathered<'py>(py: Python<'py>, values: Vec<Option<Vec<u8>>>) -> Gathered<'py> {
    let (data, offsets, present) = py.detach(move || {
        let mut data = Vec::with_capacity(values.iter().flatten().map(Vec::len).sum());
        let mut offsets = Vec::with_capacity((values.len() + 1) * 8);
        let mut present = vec![0_u8; values.len().div_ceil(8)];
        offsets.extend(0_i64.to_le_bytes());
        for (row, value) in values.iter().enumerate() {
            if let Some(value) = value {
                data.extend_from_slice(value);
                present[row / 8] |= 1 << (row % 8);
            }
            offsets.extend((data.len() as i64).to_le_bytes());
        }
        (data, offsets, present)
    });
    (PyBytes::new(py, &data), PyBytes::new(py, &offsets), PyBytes::new(py, &present))
}

/// Values of one width in one writable buffer, zeros for absent ones, and a byte for each row that says whether it is
/// there.
fn gathered_fixed<'py>(
    py: Python<'py>,
    values: Vec<Option<Vec<u8>>>,
    width: usize,
) -> PyResult<(Bound<'py, PyByteArray>, Bound<'py, PyByteArray>)> {
    let gathered = py.detach(move || {
        let mut data = vec![0_u8; values.len() * width];
        let mut present = vec![0_u8; values.len()];
        for (row, value) in values.iter().enumerate() {
            let Some(value) = value else { continue };
            if value.len() != width {
                return Err((row, value.len()));
            }
            data[row * width..(row + 1) * width].copy_from_slice(value);
            present[row] = 1;
        }
        Ok((data, present))
    });
    let (data, present) = gathered.map_err(|(row, bytes)| {
        PyValueError::new_err(format!("the value of key {row} has {bytes} bytes instead of {width}"))
    })?;
    Ok((PyByteArray::new(py, &data), PyByteArray::new(py, &present)))
}

#[pymethods]
impl Keyspace {
    #[pyo3(signature = (keys, values, ttl = None, expires_at = None, flags = 0))]
    fn _put_columns(
        &self,
        py: Python<'_>,
        keys: Column<'_>,
        values: Column<'_>,
        ttl: Option<f64>,
        expires_at: Option<f64>,
        flags: u32,
    ) -> PyResult<()> {
        check_lengths(py, &keys, &values)?;
        let metadata = Extras { ttl, expires_at, flags }.metadata(py)?;
        let (keys, values) = (keys.slices(py)?, values.slices(py)?);
        let opened = self.opened(py)?;
        let put = || {
            let items = (0..keys.len()).map(|row| (keys.get(row), values.get(row)));
            insert_each(opened.deferred()?, items, metadata)?;
            opened.of.db.commit()
        };
        py.detach(put).or_raise(py)
    }

    fn _get_columns<'py>(&self, py: Python<'py>, keys: Column<'py>) -> PyResult<Gathered<'py>> {
        let (stored, keys) = (self.stored(py)?, keys.slices(py)?);
        let values = py.detach(|| stored.multi_get(&keys.all())).or_raise(py)?;
        Ok(gathered(py, values))
    }

    fn _get_fixed<'py>(
        &self,
        py: Python<'py>,
        keys: Column<'py>,
        width: usize,
    ) -> PyResult<(Bound<'py, PyByteArray>, Bound<'py, PyByteArray>)> {
        let (stored, keys) = (self.stored(py)?, keys.slices(py)?);
        let values = py.detach(|| stored.multi_get(&keys.all())).or_raise(py)?;
        gathered_fixed(py, values, width)
    }

    /// Stores two columns of equal length: arrays of Arrow (or whatever `pyarrow.array` takes) with binary or text
    /// elements, of fixed or variable length, without nulls. Waits once until all are durable.
    #[pyo3(signature = (keys, values, **extras))]
    fn put_arrow<'py>(
        slf: &Bound<'py, Self>,
        keys: &Bound<'py, PyAny>,
        values: &Bound<'py, PyAny>,
        extras: Option<&Bound<'py, pyo3::types::PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("alluvium_db.arrow")?.call_method("put", (slf, keys, values), extras)
    }

    /// The values of a column of keys, as an array of Arrow of type large_binary; null for absent ones.
    fn get_arrow<'py>(slf: &Bound<'py, Self>, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("alluvium_db.arrow")?.call_method1("get", (slf, keys))
    }

    /// Stores two arrays of numpy with equal numbers of rows: each row's bytes are a key, or a value. Arrays of one
    /// dimension have an element a row, of any type; others all that is behind the first dimension.
    #[pyo3(signature = (keys, values, **extras))]
    fn put_fixed<'py>(
        slf: &Bound<'py, Self>,
        keys: &Bound<'py, PyAny>,
        values: &Bound<'py, PyAny>,
        extras: Option<&Bound<'py, pyo3::types::PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("alluvium_db.fixed")?.call_method("put", (slf, keys, values), extras)
    }

    /// The values of an array of keys as an array of numpy, with one row for each key and the shape and type of
    /// `like` behind that (a type such as "float32", or a pair of type and shape); and whether each is present.
    fn get_fixed<'py>(
        slf: &Bound<'py, Self>,
        keys: &Bound<'py, PyAny>,
        like: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("alluvium_db.fixed")?.call_method1("get", (slf, keys, like))
    }
}

#[pymethods]
impl KeyspaceSnapshot {
    fn _get_columns<'py>(&self, py: Python<'py>, keys: Column<'py>) -> PyResult<Gathered<'py>> {
        let (keyspace, keys) = (self.keyspace.get(py)?, keys.slices(py)?);
        let values = py.detach(|| keyspace.multi_get(&keys.all())).or_raise(py)?;
        Ok(gathered(py, values))
    }

    fn _get_fixed<'py>(
        &self,
        py: Python<'py>,
        keys: Column<'py>,
        width: usize,
    ) -> PyResult<(Bound<'py, PyByteArray>, Bound<'py, PyByteArray>)> {
        let (keyspace, keys) = (self.keyspace.get(py)?, keys.slices(py)?);
        let values = py.detach(|| keyspace.multi_get(&keys.all())).or_raise(py)?;
        gathered_fixed(py, values, width)
    }

    /// As `Keyspace.get_arrow`.
    fn get_arrow<'py>(slf: &Bound<'py, Self>, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("alluvium_db.arrow")?.call_method1("get", (slf, keys))
    }

    /// As `Keyspace.get_fixed`.
    fn get_fixed<'py>(
        slf: &Bound<'py, Self>,
        keys: &Bound<'py, PyAny>,
        like: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("alluvium_db.fixed")?.call_method1("get", (slf, keys, like))
    }
}
