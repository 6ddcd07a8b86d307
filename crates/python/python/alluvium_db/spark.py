"""A data source for PySpark 4: ``df.write.format("alluvium")`` and ``spark.read.format("alluvium")``.

    from alluvium_db import spark as alluvium_spark

    spark.dataSource.register(alluvium_spark.AlluviumDataSource)
    job = {"shards": 8, "hash_key": "000102030405060708090a0b0c0d0e0f"}
    placed = alluvium_spark.by_shard(df.select("key", "value"), **job)
    placed.write.format("alluvium").options(**job).mode("overwrite").save(ROOT)
    spark.read.format("alluvium").load(ROOT)

Options of a write, to a directory of versions, ROOT, which all executors share:

- ``shards``: number of shards. ``hash_key``: 32 hexadecimal digits, or ``hash_key_file``: a file of the driver whose
  first line they are, which keeps the key out of plans and logs of Spark.
- ``key``, ``value``: names of the columns, binary or string. Others are refused. Default "key" and "value".
- ``job``: identifier of the job. ``keyspace``, ``delimiter``, ``prefix_bytes``, ``plan``: as for ``BuildJob``; a plan
  is a name or JSON.
- ``checksums``: "true" to read and check all files before the commit.

Each successful write is a new version, the youngest; the older ones stay. That is what mode "overwrite" means here.
Mode "append" adds the first version and is refused later, since rows are not added to those of another version.

Options of a read, from a directory of versions, a build, or a closed database: ``version``: a number, by default the
youngest; ``key`` and ``value``: names of the columns; ``decode``: "true" for columns of type string instead of binary;
``keyspace``. There is one partition for each shard.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

try:
    import pyarrow
    from pyspark.sql import functions
    from pyspark.sql.datasource import (
        DataSource,
        DataSourceReader,
        DataSourceWriter,
        InputPartition,
        WriterCommitMessage,
    )
except ImportError as error:
    raise ImportError("the data source needs PySpark 4 and pyarrow: pip install alluvium-db[spark]") from error

try:
    from pyspark.sql.datasource import DataSourceArrowWriter
except ImportError:  # Spark 4.0
    DataSourceArrowWriter = None

from . import BuildError, BuildJob, SettingsError, bulk

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

__all__ = ["AlluviumDataSource", "by_shard"]

#: Rows that are made one batch if Spark gives single rows.
BATCH_ROWS = 10_000

_PLACE = "alluvium_shard"


def by_shard(
    df: DataFrame,
    *,
    shards: Any,
    hash_key: Any = None,
    hash_key_file: Any = None,
    key: str = "key",
    order_by: Any = None,
    **options: Any,
) -> DataFrame:
    """``df`` with all rows of a shard in one partition, as a write needs it.

    From Spark 4.1 on, each partition is a shard; before, a partition may have several. The arguments are those of the
    write, whose options may all be given. If a key is in several rows, the last row of the partition counts; which one
    that is, Spark leaves open, unless ``order_by``, one or more columns, sorts each partition.
    """
    if unknown := options.keys() - {*_JOB_OPTIONS, "value", "checksums"}:
        raise TypeError(f"by_shard() has no option {sorted(unknown)[0]!r}")
    secret = _hash_key({"hash_key": hash_key, "hash_key_file": hash_key_file})
    job = BuildJob(**{"id": "placement", **_job_options(options)}, hash_key=secret, shards=int(shards))
    placed = df.withColumn(_PLACE, _shard_function(job)(functions.col(key)))
    if hasattr(placed, "repartitionById"):
        placed = placed.repartitionById(job.shards, functions.col(_PLACE))
    else:
        placed = placed.repartition(job.shards, functions.col(_PLACE))
    if order_by is not None:
        columns = list(order_by) if isinstance(order_by, (list, tuple)) else [order_by]
        placed = placed.sortWithinPartitions(*columns)
    return placed.drop(_PLACE)


def _shard_function(job: BuildJob) -> Any:
    """A function of Spark from a key to its shard."""
    if hasattr(functions, "arrow_udf"):

        def of_arrow(keys: pyarrow.Array) -> pyarrow.Array:
            return job.shards_of_arrow(keys).cast(pyarrow.int32())

        return functions.arrow_udf(of_arrow, "int")
    import pandas

    def of_pandas(keys: pandas.Series) -> pandas.Series:
        return pandas.Series(job.shards_of_arrow(pyarrow.Array.from_pandas(keys)).to_numpy(), dtype="int32")

    of_pandas.__annotations__ = {"keys": pandas.Series, "return": pandas.Series}
    return functions.pandas_udf(of_pandas, "int")


_JOB_OPTIONS = ("job", "keyspace", "delimiter", "prefix_bytes", "plan")


def _job_options(options: Any) -> dict[str, Any]:
    """The options of a job, which Spark gives as text."""
    found: dict[str, Any] = {}
    for name in _JOB_OPTIONS:
        value = options.get(name)
        if value is None:
            continue
        if name == "prefix_bytes":
            value = int(value)
        elif name == "plan" and isinstance(value, str) and value.lstrip().startswith("{"):
            import json

            value = json.loads(value)
        found["id" if name == "job" else name] = value
    return found


def _is_set(options: Any, name: str) -> bool:
    return str(options.get(name, "false")).lower() in ("true", "1", "yes")


def _hash_key(options: Any) -> str:
    if options.get("hash_key_file") is not None:
        with open(options["hash_key_file"], encoding="ascii") as file:
            return file.readline().strip()
    if options.get("hash_key") is None:
        raise SettingsError("give the option hash_key or hash_key_file: 32 hexadecimal digits")
    return options["hash_key"]


@dataclass
class _Written(WriterCommitMessage):
    """What a task has written."""

    shards: list[bulk.WrittenShard]


@dataclass
class _Shard(InputPartition):
    """A directory that one task reads."""

    path: str


class AlluviumDataSource(DataSource):
    """The data source "alluvium": see the module. Register it by ``spark.dataSource.register``."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "alluvium"

    def _columns(self) -> tuple[str, str]:
        return self.options.get("key", "key"), self.options.get("value", "value")

    def _path(self) -> str:
        path = self.options.get("path")
        if not path:
            raise SettingsError("give a path: save(ROOT) or load(PATH)")
        return path.removeprefix("file://")

    def schema(self) -> StructType:
        """The two columns."""
        from pyspark.sql.types import BinaryType, StringType, StructType

        kind = StringType() if _is_set(self.options, "decode") else BinaryType()
        key, value = self._columns()
        return StructType().add(key, kind, False).add(value, kind, False)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of the columns in ``schema``, each binary or string."""
        names = dict(zip(self._columns(), ("key", "value"), strict=True))
        columns = []
        for field in schema.fields:
            if field.name not in names or field.dataType.typeName() not in ("binary", "string"):
                raise SettingsError(f"no column {field.name} of type {field.dataType.simpleString()} can be read")
            kind = pyarrow.string() if field.dataType.typeName() == "string" else pyarrow.binary()
            # Spark compares this with its own schema.
            columns.append((names[field.name], pyarrow.field(field.name, kind, field.nullable)))
        version = self.options.get("version")
        paths = bulk.shard_paths(self._path(), None if version is None else int(version))
        return _Reader([str(path) for path in paths], columns, self.options.get("keyspace"))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A writer of the next version."""
        key, value = self._columns()
        types = {field.name: field.dataType.typeName() for field in schema.fields}
        if types.keys() != {key, value} or not set(types.values()) <= {"binary", "string"}:
            found = ", ".join(f"{name} {kind}" for name, kind in types.items())
            raise SettingsError(f"give two columns, {key} and {value}, of type binary or string, not {found}")
        if self.options.get("shards") is None:
            raise SettingsError("give the option shards")
        shards, options = int(self.options["shards"]), _job_options(self.options)
        building = bulk.Building.start(self._path(), shards=shards, hash_key=_hash_key(self.options), **options)
        if not overwrite and (complete := building.versions()):
            building.abort()
            path = str(complete[-1]["path"])
            message = f'{path} is complete, and rows are not added to it: mode("overwrite") makes the next version'
            raise BuildError(message, file=path, part="manifest", expected="no version", found="a complete version")
        kind = _RowWriter if DataSourceArrowWriter is None else _ArrowWriter
        return kind(building, key, value, _is_set(self.options, "checksums"))


class _Writer:
    """What both writers have in common."""

    def __init__(self, building: bulk.Building, key: str, value: str, checksums: bool) -> None:
        self._building = building
        self._key = key
        self._value = value
        self._checksums = checksums

    def _write(self, batches: Iterable[pyarrow.RecordBatch]) -> _Written:
        return _Written(self._building.write(batches, key=self._key, value=self._value))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Makes what the tasks have written the next version."""
        written = [shard for message in messages if isinstance(message, _Written) for shard in message.shards]
        self._building.commit(written, checksums=self._checksums)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Removes what the tasks have written."""
        self._building.abort()


if DataSourceArrowWriter is not None:

    class _ArrowWriter(_Writer, DataSourceArrowWriter):
        """Gets record batches."""

        def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> WriterCommitMessage:
            """Writes the rows of one partition."""
            return self._write(iterator)


class _RowWriter(_Writer, DataSourceWriter):
    """Gets single rows, before Spark 4.1."""

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Writes the rows of one partition."""
        return self._write(self._batches(iterator))

    def _batches(self, rows: Iterator[Any]) -> Iterator[pyarrow.RecordBatch]:
        from itertools import islice

        while chunk := list(islice(rows, BATCH_ROWS)):
            # Large, so that the offsets of long values fit.
            columns = [
                pyarrow.array([_bytes(row[name]) for row in chunk], pyarrow.large_binary())
                for name in (self._key, self._value)
            ]
            yield pyarrow.record_batch(columns, names=[self._key, self._value])


def _bytes(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else bytes(value)


class _Reader(DataSourceReader):
    """Reads one directory in each task."""

    def __init__(self, paths: list[str], columns: list[tuple[str, pyarrow.Field]], keyspace: str | None) -> None:
        self._paths = paths
        self._columns = columns
        self._keyspace = keyspace

    def partitions(self) -> list[InputPartition]:
        """One for each shard."""
        return [_Shard(path) for path in self._paths]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """The items of a shard."""
        schema = pyarrow.schema([field for _, field in self._columns])
        for batch in bulk.scan_shard(partition.path, self._keyspace):
            columns = [batch.column(name).cast(field.type) for name, field in self._columns]
            yield pyarrow.record_batch(columns, schema=schema)
