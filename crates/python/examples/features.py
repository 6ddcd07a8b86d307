"""Looks up the features of the entities in batches of training rows.

    python features.py --entities 1000000 --batches 100

Each entity has a vector of 16 numbers. The first part stores them; the second draws batches of rows, as a training loop
would, and gets an array with the features of each row. Each batch is one call, and its reads are in flight together.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import numpy

import alluvium_db

WIDTH = 16
CHUNK = 100_000


def features_of(entities: numpy.ndarray) -> numpy.ndarray:
    """What the example stores: numbers that can be recomputed, so that the lookups can be checked."""
    return (entities[:, None] * numpy.arange(1, WIDTH + 1)[None, :] % 9973).astype("float32")


def store(db: alluvium_db.Keyspace, entities: int) -> None:
    """Stores the features of all entities: a bulk load, in any order of the keys."""
    with db.ingest() as load:
        for start in range(0, entities, CHUNK):
            ids = numpy.arange(start, min(start + CHUNK, entities), dtype="<u8")
            load.put_fixed(ids, features_of(ids))


def lookups(
    db: alluvium_db.Keyspace, batches: Iterator[numpy.ndarray]
) -> Iterator[tuple[numpy.ndarray, numpy.ndarray]]:
    """For each batch of entities, an array with a row of features for each, and which of them are known."""
    for ids in batches:
        yield db.get_fixed(ids, ("float32", WIDTH))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entities", type=int, default=1_000_000)
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--rows", type=int, default=8192, help="rows of a batch")
    parser.add_argument("--path", default="features", help="directory of the database")
    arguments = parser.parse_args()
    with alluvium_db.open(arguments.path, expected_items=arguments.entities, durability="process") as db:
        if not db:
            store(db, arguments.entities)
        random = numpy.random.default_rng(1)
        # A tenth of the rows name entities that are not there.
        end = arguments.entities * 10 // 9
        drawn = [random.integers(0, end, arguments.rows, dtype="u8").astype("<u8") for _ in range(arguments.batches)]
        start, known = time.perf_counter(), 0
        for ids, (found, present) in zip(drawn, lookups(db, iter(drawn)), strict=True):
            assert (present == (ids < arguments.entities)).all()
            assert (found[present] == features_of(ids[present])).all()
            known += int(present.sum())
        seconds = time.perf_counter() - start
        rows = arguments.batches * arguments.rows
        print(f"{rows} rows looked up and checked, {rows / seconds:,.0f} a second; {known} known")


if __name__ == "__main__":
    main()
