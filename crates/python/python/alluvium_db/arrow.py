"""Columns of Arrow. Needs pyarrow, which is imported when the first column comes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError("columns of Arrow need pyarrow: pip install alluvium-db[arrow]") from error
    return pyarrow


def _chunk(column: Any, what: str) -> pyarrow.Array:
    """A column as one array of a binary type."""
    pa = _pyarrow()
    if not isinstance(column, (pa.Array, pa.ChunkedArray)):
        if hasattr(column, "to_arrow"):  # polars
            column = column.to_arrow()
        else:
            column = pa.array(column)
    if isinstance(column, pa.ChunkedArray):
        # The offsets of several chunks together may not fit in 32 bits.
        if column.num_chunks > 1 and not pa.types.is_fixed_size_binary(column.type):
            column = column.cast(pa.large_binary())
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.null_count:
        raise ValueError(f"{what} must not be null: {column.null_count} of {len(column)} are")
    types = pa.types
    is_binary = (
        types.is_binary(column.type)
        or types.is_string(column.type)
        or types.is_large_binary(column.type)
        or types.is_large_string(column.type)
        or types.is_fixed_size_binary(column.type)
    )
    if not is_binary:
        if str(column.type) in ("binary_view", "string_view") or types.is_null(column.type) and len(column) == 0:
            column = column.cast(pa.large_binary())
        else:
            raise TypeError(f"{what} of type {column.type}: give binary or text elements")
    return column


def _column(array: pyarrow.Array) -> tuple[Any, Any, int, int]:
    """The buffers of an array: see ``columns.rs``."""
    types = _pyarrow().types
    if types.is_fixed_size_binary(array.type):
        _, data = array.buffers()
        return (data or b"", array.type.byte_width, array.offset, len(array))
    _, offsets, data = array.buffers()
    wide = types.is_large_binary(array.type) or types.is_large_string(array.type)
    return (data or b"", (offsets or b"", 8 if wide else 4), array.offset, len(array))


def put(target: Any, keys: Any, values: Any, **extras: Any) -> None:
    """Stores two columns: see :meth:`Keyspace.put_arrow`."""
    target._put_columns(_column(_chunk(keys, "keys")), _column(_chunk(values, "values")), **extras)


def get(source: Any, keys: Any) -> pyarrow.Array:
    """The values of a column of keys: see :meth:`Keyspace.get_arrow`."""
    pa = _pyarrow()
    array = _chunk(keys, "keys")
    data, offsets, present = source._get_columns(_column(array))
    buffers = [pa.py_buffer(present), pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(array), buffers)


def shards_of(job: Any, keys: Any) -> pyarrow.Array:
    """The shards of a column of keys: see :meth:`BuildJob.shards_of_arrow`."""
    pa = _pyarrow()
    array = _chunk(keys, "keys")
    shards = job._shards_of_column(_column(array))
    return pa.Array.from_buffers(pa.uint32(), len(array), [None, pa.py_buffer(shards)])


def scan(source: Any, rows: int) -> Iterator[pyarrow.RecordBatch]:
    """All items as record batches: see :meth:`Keyspace.scan_arrow`."""
    pa = _pyarrow()

    def batches(found: Any) -> Iterator[pyarrow.RecordBatch]:
        for count, *columns in found:
            yield pa.record_batch(
                [
                    pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
                    for data, offsets in columns
                ],
                names=["key", "value"],
            )

    return batches(source._scan_columns(rows))
