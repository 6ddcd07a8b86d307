"""Arrays of numpy whose rows are keys or values of one width. Needs numpy, imported when the first array comes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy


def _numpy() -> Any:
    try:
        import numpy
    except ImportError as error:
        raise ImportError("arrays need numpy: pip install alluvium-db[numpy]") from error
    return numpy


def _column(rows: Any) -> tuple[Any, int, int, int]:
    """The bytes of an array, and the width of a row: see ``columns.rs``."""
    np = _numpy()
    array = np.ascontiguousarray(rows)
    if array.ndim == 0 or array.dtype.hasobject:
        raise TypeError("give an array with one row for each item, of a type with a fixed number of bytes")
    count = array.shape[0]
    width = array.dtype.itemsize
    for length in array.shape[1:]:
        width *= length
    data = array.reshape(-1).view(np.uint8) if array.size else b""
    return (data, width, 0, count)


def put(target: Any, keys: Any, values: Any, **extras: Any) -> None:
    """Stores two arrays: see :meth:`Keyspace.put_fixed`."""
    target._put_columns(_column(keys), _column(values), **extras)


def get(source: Any, keys: Any, like: Any) -> tuple[numpy.ndarray, numpy.ndarray]:
    """The values of an array of keys, and whether each is present: see :meth:`Keyspace.get_fixed`."""
    np = _numpy()
    dtype = np.dtype(like)
    base, shape = (dtype.base, dtype.shape)
    column = _column(keys)
    data, present = source._get_fixed(column, dtype.itemsize)
    count = column[3]
    if dtype.itemsize == 0:
        raise ValueError("values have at least one byte")
    values = np.frombuffer(data, dtype=base).reshape((count, *shape))
    return values, np.frombuffer(present, dtype=np.bool_)
