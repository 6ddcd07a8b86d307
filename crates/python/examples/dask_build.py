"""Dask builds a version in shards: rows are shuffled by shard, and each partition is written by one task.

    python crates/python/examples/dask_build.py --rows 1000000

The package must be installed with its extra "dask". The last line is the verdict.
"""

import argparse
import secrets
import sys
import tempfile

import dask
import dask.dataframe
import pandas
import pyarrow
from alluvium_db import bulk
from serving import items, say, wrong_items

#: Rows of a partition of the input.
PART_ROWS = 100_000


def make(start, rows):
    """The items of a partition."""
    return items(range(start, min(start + PART_ROWS, rows)), 1).to_pandas()


def place(part, job):
    """A partition with the shard of each row."""
    return part.assign(shard=job.shards_of(part["key"].tolist()))


def write(part, building):
    """Writes all rows of some shards; returns a row for each."""
    columns = {name: pyarrow.array(part[name], pyarrow.binary()) for name in ("key", "value")}
    return pandas.DataFrame(building.write([pyarrow.table(columns)]), columns=bulk.WrittenShard._fields)


def main():
    """Builds a version and reads it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--shards", type=int, default=8)
    options = parser.parse_args()
    # Keys are bytes, which Dask would otherwise make text.
    dask.config.set({"dataframe.convert-string": False})
    with tempfile.TemporaryDirectory() as root:
        building = bulk.Building.start(root, shards=options.shards, hash_key=secrets.token_bytes(16))
        try:
            starts = range(0, options.rows, PART_ROWS)
            table = dask.dataframe.from_map(make, starts, rows=options.rows)
            meta = table._meta.assign(shard=pandas.Series(dtype="int64"))
            placed = table.map_partitions(place, building.job, meta=meta)
            placed = placed.shuffle("shard", npartitions=options.shards)
            meta = pandas.DataFrame([(0, "", 0, 0, 0)], columns=bulk.WrittenShard._fields).iloc[:0]
            written = placed.map_partitions(write, building, meta=meta).compute()
            version = building.commit(bulk.WrittenShard(*row) for row in written.itertuples(index=False))
        except BaseException:
            building.abort()
            raise
        say(f"Dask {dask.__version__}: {options.rows:,} rows in {options.shards} shards are version {version}")
        count, wrong = wrong_items(f"{root}/{version:04}", building.job, 1)
    print("verdict: " + ("all right" if (count, wrong) == (options.rows, 0) else f"{count} items, {wrong} wrong"))
    return 0 if (count, wrong) == (options.rows, 0) else 1


if __name__ == "__main__":
    sys.exit(main())
