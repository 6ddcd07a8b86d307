"""Bulk builds by Ray Data: rows are grouped by shard, and each group is written by one task.

    from alluvium_db import ray as alluvium_ray

    version = alluvium_ray.write(dataset, ROOT, shards=8, hash_key="000102030405060708090a0b0c0d0e0f")

:func:`write` is made of parts that a program can use by itself::

    building = alluvium_db.bulk.Building.start(ROOT, shards=8, hash_key=HASH_KEY)
    grouped = alluvium_ray.by_shard(dataset, building.job)
    task = functools.partial(alluvium_ray.write_shard, building=building)
    results = grouped.map_groups(task, batch_format="pyarrow").take_all()
    building.commit(alluvium_ray.written(results))

All nodes must share the file system of ROOT. A group must fit in the memory of its node.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from . import bulk

if TYPE_CHECKING:
    import pyarrow

    from . import BuildJob

__all__ = ["by_shard", "write", "write_shard", "written"]

_PLACE = "alluvium_shard"


def _place(table: pyarrow.Table, job: BuildJob, key: str) -> pyarrow.Table:
    """A table with the shard of each row."""
    import pyarrow

    shards = job.shards_of_arrow(table.column(key))
    return table.append_column(_PLACE, shards.cast(pyarrow.int32()))


def write_shard(table: pyarrow.Table, building: bulk.Building, key: str = "key", value: str = "value") -> pyarrow.Table:
    """Writes a group, and returns a row that says so: for ``map_groups(write_shard, batch_format="pyarrow", …)``."""
    import pyarrow

    shards = building.write([table], key=key, value=value)
    return pyarrow.Table.from_pylist([shard._asdict() for shard in shards], schema=_schema())


def _schema() -> pyarrow.Schema:
    import pyarrow

    names = bulk.WrittenShard._fields
    types = [pyarrow.string() if name == "directory" else pyarrow.int64() for name in names]
    return pyarrow.schema(list(zip(names, types, strict=True)))


def by_shard(dataset: Any, job: BuildJob, key: str = "key") -> Any:
    """The rows of a dataset, grouped by shard.

    If a key is in several rows, the last row of its group counts; which one that is, Ray leaves open. So remove
    duplicates before, if it matters.
    """
    place = functools.partial(_place, job=job, key=key)
    return dataset.map_batches(place, batch_format="pyarrow", zero_copy_batch=True).groupby(_PLACE)


def written(results: Iterable[dict[str, Any]]) -> list[bulk.WrittenShard]:
    """What the rows of :func:`write_shard` say, for ``Building.commit``."""
    return [bulk.WrittenShard(**row) for row in results]


def write(
    dataset: Any,
    root: str | os.PathLike[str],
    *,
    shards: int,
    hash_key: Any,
    key: str = "key",
    value: str = "value",
    checksums: bool = False,
    task_options: dict[str, Any] | None = None,
    **options: Any,
) -> int:
    """Writes a dataset as the next version in ``root``, and returns its number. Removes everything if it fails.

    ``key`` and ``value`` are the names of columns with bytes or text. ``task_options`` are arguments for ``map_groups``
    such as ``num_cpus`` or ``memory``; other ``options`` are those of ``BuildJob``. Ray starts tasks anew whose worker
    or node was lost, and those that raised an exception if ``DataContext`` says so.
    """
    building = bulk.Building.start(root, shards=shards, hash_key=hash_key, **options)
    try:
        grouped = by_shard(dataset.select_columns([key, value]), building.job, key)
        task = functools.partial(write_shard, building=building, key=key, value=value)
        results = grouped.map_groups(task, batch_format="pyarrow", **(task_options or {})).take_all()
        return building.commit(written(results), checksums=checksums)
    except BaseException:
        building.abort()
        raise
