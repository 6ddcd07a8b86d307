"""Stores the rows of frames of pandas and polars, and gets them back.

    python frames.py

A row is an item: the key column is its key, and the other columns are its value, as a JSON object for polars and as
the bytes of a numpy record for frames of numbers in pandas. Keys and values go in and out as columns or arrays, so
there is no loop over the rows.
"""

from __future__ import annotations

import tempfile

import pandas
import polars

import alluvium_db


def put_polars(db: alluvium_db.Keyspace, frame: polars.DataFrame, key: str) -> None:
    """Stores each row under its key column; the other columns as a JSON object."""
    values = frame.select(polars.struct(polars.exclude(key)).struct.json_encode().alias("value"))["value"]
    db.put_arrow(frame[key].to_arrow(), values.to_arrow())


def get_polars(db: alluvium_db.Keyspace, keys: polars.Series, schema: dict[str, polars.DataType]) -> polars.DataFrame:
    """The rows of keys, in their order; nulls for those that are not there."""
    found = polars.from_arrow(db.get_arrow(keys.to_arrow()))
    values = found.cast(polars.String).str.json_decode(polars.Struct(schema))
    return polars.DataFrame([keys, values.alias("value")]).unnest("value")


def put_pandas(db: alluvium_db.Keyspace, frame: pandas.DataFrame) -> None:
    """Stores each row of numbers under its index, as the bytes of its columns."""
    rows = frame.to_records(index=False)
    db.put_fixed(frame.index.to_numpy(), rows.view(("u1", rows.dtype.itemsize)))


def get_pandas(db: alluvium_db.Keyspace, index: pandas.Index, like: pandas.DataFrame) -> pandas.DataFrame:
    """The rows of an index that are there, with the columns of another frame."""
    types = like.to_records(index=False).dtype
    found, present = db.get_fixed(index.to_numpy(), ("u1", types.itemsize))
    return pandas.DataFrame(found[present].copy().view(types)[:, 0], index=index[present])


def main() -> None:
    with tempfile.TemporaryDirectory() as path, alluvium_db.open(path + "/db", durability="buffered") as db:
        people = {"city": ["Bern", "Oslo", "Rome"], "people": [134_794, 717_710, 2_748_109]}
        cities = polars.DataFrame({**people, "sea": [False, True, True]})
        put_polars(db, cities, "city")
        schema = {"people": polars.Int64(), "sea": polars.Boolean()}
        found = get_polars(db, polars.Series("city", ["Rome", "Bern", "Mars"]), schema)
        print(found)
        assert found["people"].to_list() == [2_748_109, 134_794, None]

        names = pandas.Index([17, 18, 19], name="well")
        readings = pandas.DataFrame({"level": [8.25, 8.5, 9.0], "count": [1, 2, 3]}, index=names)
        wells = db.keyspace("wells")
        put_pandas(wells, readings)
        back = get_pandas(wells, pandas.Index([19, 20, 17], name="well"), readings)
        print(back)
        pandas.testing.assert_frame_equal(back, readings.loc[[19, 17]])


if __name__ == "__main__":
    main()
