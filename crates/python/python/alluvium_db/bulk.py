"""Bulk builds for any job runner: what the modules ``spark`` and ``ray`` and the example for Dask share.

A *root* is a directory of versions, ``ROOT/0001``, ``ROOT/0002``, …, from which ``alluvium serve --versions ROOT``
serves one. A build is made in ``ROOT/building-…``, and its commit renames that to the next version. So nobody sees a
part of it, and what a driver that was killed has left is known by its name and can be removed.

>>> import tempfile, pyarrow
>>> from alluvium_db import bulk
>>> building = bulk.Building.start(tempfile.mkdtemp(), shards=2, hash_key="000102030405060708090a0b0c0d0e0f")
>>> batch = pyarrow.table({"key": ["a", "b", "c"], "value": ["1", "2", "3"]})
>>> written = building.write([batch])  # in a task of the job: all items of some shards
>>> building.commit(written)  # in the driver: the number of the new version
1
"""

from __future__ import annotations

import os
import pathlib
import shutil
import time
import uuid
import warnings
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from . import BuildJob, BuildError, ShardWriter, arrow, build_shards, commit_build, versions
from . import open as open_database

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Building", "WrittenShard", "scan_shard", "shard_paths"]

#: Maximum number of shards that one attempt of a task writes: each takes memory while it is written.
SHARDS_PER_TASK_MAX = 32

#: Seconds for which an abort waits for attempts that still write.
ABORT_SECONDS_MAX = 10.0


class WrittenShard(NamedTuple):
    """A shard that an attempt of a task has finished: plain data, which the task returns to the driver."""

    #: Its number, from 0.
    shard: int
    #: The name of its directory, below that of the build.
    directory: str
    #: Number of items that were added, including those that a later one of the same key replaced.
    items: int
    #: Bytes of their keys and values.
    bytes: int
    #: Bytes of its files.
    file_bytes: int


class Building:
    """A build that is being made. It can be pickled, as the driver passes it to tasks; that includes the hash key.

    Each attempt of a task writes to directories of its own, and the driver commits those of the attempts whose results
    it got. So an attempt that failed, was killed or was started twice counts for nothing.
    """

    def __init__(self, root: str, directory: str, job: BuildJob) -> None:
        #: The directory of the versions.
        self.root = root
        #: The directory in which the build is made.
        self.directory = directory
        #: The job of its shards.
        self.job = job

    @classmethod
    def start(
        cls,
        root: str | os.PathLike[str],
        *,
        shards: int,
        hash_key: Any,
        id: str | None = None,
        **options: Any,
    ) -> Building:
        """Starts a build, in the driver. ``options`` are those of :class:`BuildJob`; ``id`` is random by default.

        Raises :class:`BuildError` if the youngest version in ``root`` has another hash key, number of shards or
        keyspace: a server would refuse to replace it. Build such data in another root.
        """
        name = f"building-{uuid.uuid4().hex[:12]}"
        job = BuildJob(id or name, hash_key, shards, **options)
        root = os.fspath(root)
        os.makedirs(root, exist_ok=True)
        built = [version for version in versions(root) if version["state"] == "build"]
        if built:
            wanted = {
                "keyspace": ("keyspace", job.keyspace),
                "hash_key": ("hash_key_fingerprint", job.hash_key_fingerprint),
                "shard_count": ("shards", job.shards),
            }
            for part, (field, found) in wanted.items():
                if built[-1][field] != found:
                    raise _mismatch(str(built[-1]["path"]), part, built[-1][field], found)
        directory = os.path.join(root, name)
        os.mkdir(directory)
        return cls(root, directory, job)

    def write(self, batches: Iterable[Any], *, key: str = "key", value: str = "value") -> list[WrittenShard]:
        """Writes all items of one or some shards, in a task. Each batch is a table or a record batch of Arrow.

        All items of a shard must be in one task: :meth:`commit` refuses a shard that two tasks have written. The last
        item of a key counts, in the order of the batches and their rows. Removes what it wrote if it raises.
        """
        with _Attempt(self) as attempt:
            for batch in batches:
                attempt.add(batch.column(key), batch.column(value))
            return attempt.finish()

    def commit(self, written: Iterable[WrittenShard], *, checksums: bool = False) -> int:
        """Commits the build, in the driver, once all tasks have succeeded; returns the number of the new version.

        ``written`` are the results of all tasks, one for each. A shard that none of them has written has no items.
        ``checksums`` reads all files before and checks them; otherwise they are checked by their lengths.
        """
        directories: dict[int, str] = {}
        for shard, directory, *_ in written:
            other = directories.setdefault(shard, directory)
            if other != directory:
                hint = "; all rows of a shard must be placed in one task, by the same hash key and number of shards"
                raise _mismatch(self.directory, "shard", f"shard {shard} in {other} alone", directory, hint)
        for shard in set(range(self.job.shards)) - directories.keys():
            directories[shard] = f"shard-{shard:05}-empty"
            ShardWriter(os.path.join(self.directory, directories[shard]), self.job, shard, replace=True).finish()
        named = [directories[shard] for shard in sorted(directories)]
        commit_build(self.directory, job=self.job, directories=named, checksums=checksums)
        for name in os.listdir(self.directory):
            if name.startswith("shard-") and name not in named:
                # What other attempts left. One that still writes fails, and counts for nothing.
                shutil.rmtree(os.path.join(self.directory, name), ignore_errors=True)
        return self._publish()

    def versions(self) -> list[dict[str, Any]]:
        """The complete versions in the root, old to young."""
        return [found for found in versions(self.root) if found["state"] in ("build", "database")]

    def _publish(self) -> int:
        number = 1 + max((version["number"] for version in versions(self.root)), default=0)
        while True:
            target = os.path.join(self.root, f"{number:04}")
            try:
                os.rename(self.directory, target)
                break
            except OSError:
                # Otherwise another job has just taken the number; its directory is not empty, so it stays.
                if not os.path.exists(target):
                    raise
                number += 1
        descriptor = os.open(self.root, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return number

    def abort(self) -> None:
        """Gives the build up, in the driver, and removes everything that was written. Does nothing after a commit."""
        end = time.monotonic() + ABORT_SECONDS_MAX
        while os.path.isdir(self.directory):
            shutil.rmtree(self.directory, ignore_errors=True)
            if os.path.isdir(self.directory):
                if time.monotonic() > end:
                    warnings.warn(f"{self.directory} could not be removed: a task may still write there", stacklevel=2)
                    return
                time.sleep(0.1)

    def __repr__(self) -> str:
        return f"<alluvium_db.bulk.Building {self.directory!r}>"


class _Attempt:
    """An attempt of a task: a writer for each shard of which it gets items."""

    def __init__(self, building: Building) -> None:
        self._building = building
        self._name = uuid.uuid4().hex[:12]
        self._writers: dict[int, ShardWriter] = {}

    def _writer(self, shard: int) -> ShardWriter:
        if shard not in self._writers:
            if len(self._writers) >= SHARDS_PER_TASK_MAX:
                expected = f"at most {SHARDS_PER_TASK_MAX} shards in a task"
                hint = "; place the rows by their shards before they are written"
                raise _mismatch(self._building.directory, "shard", expected, "more", hint)
            directory = self._directory(shard)
            try:
                # Not the directories above: without them the job has ended.
                os.mkdir(directory)
            except FileNotFoundError:
                expected = "a build that was started"
                raise _mismatch(directory, "manifest", expected, "one that was committed or aborted") from None
            self._writers[shard] = ShardWriter(directory, self._building.job, shard)
        return self._writers[shard]

    def _directory(self, shard: int) -> str:
        return os.path.join(self._building.directory, f"shard-{shard:05}-{self._name}")

    def add(self, keys: Any, values: Any) -> None:
        """Adds two columns, whose items may be of several shards."""
        import pyarrow.compute as compute

        keys, values = arrow._chunk(keys, "keys"), arrow._chunk(values, "values")
        if not len(keys):
            return
        shards = self._building.job.shards_of_arrow(keys)
        first, last = compute.min_max(shards).values()
        if first == last:
            self._writer(first.as_py()).put_arrow(keys, values)
            return
        # Stable, so that the last item of a key stays the last.
        order = compute.sort_indices(shards)
        runs = compute.run_end_encode(shards.take(order))
        keys, values = keys.take(order), values.take(order)
        start = 0
        for shard, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            self._writer(shard).put_arrow(keys[start:end], values[start:end])
            start = end

    def finish(self) -> list[WrittenShard]:
        """Finishes all shards, one after the other."""
        written = []
        for shard, writer in sorted(self._writers.items()):
            report = writer.finish()
            name = os.path.basename(self._directory(shard))
            written.append(WrittenShard(shard, name, report["items"], report["bytes"], report["file_bytes"]))
        self._writers.clear()
        return written

    def __enter__(self) -> _Attempt:
        return self

    def __exit__(self, exception: Any, _value: Any, _traceback: Any) -> None:
        for shard, writer in self._writers.items():
            writer.abort()
            shutil.rmtree(self._directory(shard), ignore_errors=True)
        self._writers.clear()


def shard_paths(path: str | os.PathLike[str], version: int | None = None) -> list[pathlib.Path]:
    """The directories in which the data of ``path`` is, for one reader each: see :func:`scan_shard`.

    ``path`` is a committed build, a closed database, or a directory of versions, of which the youngest complete one or
    number ``version`` is taken.
    """
    path = pathlib.Path(path)
    if (path / "CURRENT").exists():
        return [path]
    if (path / "BUILD").exists():
        return build_shards(path)
    complete = [found for found in versions(path) if found["state"] in ("build", "database")]
    if version is not None:
        complete = [found for found in complete if found["number"] == version]
    if not complete:
        what = "a complete version" if version is None else f"a complete version {version}"
        raise _mismatch(str(path), "manifest", f"a build, a database or {what}", "none")
    return shard_paths(complete[-1]["path"])


def scan_shard(
    path: str | os.PathLike[str], keyspace: str | None = None, rows: int = 65536
) -> Iterator[pyarrow.RecordBatch]:
    """All items of a directory of :func:`shard_paths`, as record batches with columns "key" and "value".

    Without ``keyspace``, that of the shard, or "default". Any number of processes may read it together.
    """
    with open_database(path, read_only=True) as db:
        names = db.keyspaces()
        name = keyspace or (names[0] if len(names) == 1 else "default")
        if name not in names:
            raise _mismatch(str(path), "keyspace", name, ", ".join(names) or "none")
        yield from db.keyspace(name).scan_arrow(rows)


def _mismatch(file: str, part: str, expected: Any, found: Any, hint: str = "") -> BuildError:
    message = f"{file}: {part}: expected {expected}, found {found}{hint}"
    return BuildError(message, file=file, part=part, expected=str(expected), found=str(found))
