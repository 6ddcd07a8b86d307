"""The module ``bulk``: builds of tasks and a driver, as all job runners make them."""

import doctest
import os
import pickle
import threading

import pytest

import alluvium_db
from alluvium_db import BuildError

pa = pytest.importorskip("pyarrow")
bulk = pytest.importorskip("alluvium_db.bulk")

HASH_KEY = "000102030405060708090a0b0c0d0e0f"
ROUTING = {"shards": 4, "hash_key": HASH_KEY}


def table(numbers, text="value"):
    return pa.table({"key": [b"key%d" % n for n in numbers], "value": [f"{text}{n}" for n in numbers]})


def of_shards(table, job, *shards):
    return table.filter(pa.array([shard in shards for shard in job.shards_of(table["key"].to_pylist())]))


def content(path):
    with alluvium_db.open(path, read_only=True) as db:
        return dict(db.items())


def left(root):
    return sorted(name for name in os.listdir(root) if not name.isdigit())


def test_tasks_write_and_the_driver_commits(tmp_path):
    building = bulk.Building.start(tmp_path, **ROUTING, id="first")
    rows = table(range(1000))
    in_task = pickle.loads(pickle.dumps(building))
    first = in_task.write([of_shards(rows, building.job, 0)])
    second = in_task.write(of_shards(rows, building.job, 1, 2, 3).to_batches(max_chunksize=100))
    assert [shard.shard for shard in first + second] == [0, 1, 2, 3]
    assert sum(shard.items for shard in first + second) == 1000 and first[0].file_bytes > 0
    assert alluvium_db.versions(tmp_path) == []
    assert building.commit(first + second, checksums=True) == 1
    assert left(tmp_path) == [] and alluvium_db.versions(tmp_path)[0]["job"] == "first"
    expected = {b"key%d" % n: b"value%d" % n for n in range(1000)}
    assert content(tmp_path / "0001") == expected
    building.abort()
    assert content(tmp_path / "0001") == expected
    with pytest.raises(BuildError, match="committed or aborted"):
        in_task.write([rows])
    second = bulk.Building.start(tmp_path, **ROUTING)
    assert second.commit(second.write([table(range(10), "new")])) == 2
    assert [path.name[:11] for path in bulk.shard_paths(tmp_path)] == [f"shard-{n:05}" for n in range(4)]
    assert bulk.shard_paths(tmp_path)[0].parent.name == "0002"
    assert bulk.shard_paths(tmp_path, 1)[0].parent.name == "0001"
    found = [batch for path in bulk.shard_paths(tmp_path / "0002") for batch in bulk.scan_shard(path)]
    assert sum(batch.num_rows for batch in found) == 10


def test_attempts_that_failed_or_were_started_twice_count_for_nothing(tmp_path):
    building = bulk.Building.start(tmp_path, **ROUTING)
    rows = table(range(100))

    def failing():
        yield rows
        raise RuntimeError("injected")

    with pytest.raises(RuntimeError, match="injected"):
        building.write(failing())
    assert os.listdir(building.directory) == []
    building.write([table(range(50), "lost")])
    killed = alluvium_db.ShardWriter(os.path.join(building.directory, "shard-00000-killed"), building.job, 0)
    outcomes = []
    threads = [threading.Thread(target=lambda: outcomes.append(building.write([rows]))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 4
    assert building.commit(outcomes[2]) == 1
    assert len([name for name in os.listdir(tmp_path / "0001") if name.startswith("shard-")]) == 4
    assert content(tmp_path / "0001") == {b"key%d" % n: b"value%d" % n for n in range(100)}
    with pytest.raises(alluvium_db.AlluviumError):
        killed.put_many((b"%d" % n, bytes(1000)) for n in range(100_000))
        killed.finish()
    assert left(tmp_path) == []


def test_a_shard_of_two_tasks_is_refused(tmp_path):
    building = bulk.Building.start(tmp_path, **ROUTING)
    written = building.write([table(range(50))]) + building.write([table(range(50, 100))])
    with pytest.raises(BuildError, match="all rows of a shard must be placed in one task") as raised:
        building.commit(written)
    assert raised.value.part == "shard"
    building.abort()
    assert os.listdir(tmp_path) == []


def test_rows_of_a_wrong_placement_are_refused(tmp_path):
    building = bulk.Building.start(tmp_path, shards=100, hash_key=HASH_KEY)
    with pytest.raises(BuildError, match="at most 32 shards") as raised:
        building.write([table(range(1000))])
    assert raised.value.part == "shard" and os.listdir(building.directory) == []
    other = alluvium_db.BuildJob(building.job.id, bytes(16), 100)
    wrong = bulk.Building(building.root, building.directory, other)
    written = wrong.write([of_shards(table(range(1000)), other, 5)])
    with pytest.raises(BuildError) as raised:
        building.commit(written)
    assert raised.value.part == "hash_key"


def test_empty_shards_and_builds(tmp_path):
    building = bulk.Building.start(tmp_path, **ROUTING)
    one = building.write([table([]), table([7])])
    assert len(one) == 1 and building.write([]) == [] and building.write([table([])]) == []
    assert building.commit(one) == 1
    assert content(tmp_path / "0001") == {b"key7": b"value7"}
    assert bulk.Building.start(tmp_path, **ROUTING).commit([]) == 2
    assert content(tmp_path / "0002") == {}
    assert all(list(bulk.scan_shard(path)) == [] for path in bulk.shard_paths(tmp_path))


def test_null_and_long_keys_and_repeated_ones(tmp_path):
    building = bulk.Building.start(tmp_path, **ROUTING)
    for key, value in (([b"a", None], ["1", "2"]), ([b"a", b"b"], ["1", None])):
        with pytest.raises(ValueError, match="must not be null"):
            building.write([pa.table({"key": key, "value": value})])
    with pytest.raises(TypeError, match="int64"):
        building.write([pa.table({"key": [1], "value": ["1"]})])
    with pytest.raises(alluvium_db.TooLargeError):
        building.write([pa.table({"key": [b"k" * 70_000], "value": ["1"]})])
    assert os.listdir(building.directory) == []
    # The last one of a key counts, within a batch and across batches.
    first = pa.table({"key": ["a", "b", "a", "c"] * 50, "value": [str(n) for n in range(200)]})
    last = pa.table({"key": ["a"], "value": ["last"]})
    building.commit(building.write([first, last]))
    assert content(tmp_path / "0001") == {b"a": b"last", b"b": b"197", b"c": b"199"}


def test_versions_that_would_be_refused_are_not_started(tmp_path):
    building = bulk.Building.start(tmp_path, **ROUTING)
    building.commit(building.write([table(range(10))]))
    for part, change in {
        "hash_key": {"hash_key": bytes(16)},
        "shard_count": {"shards": 5},
        "keyspace": {"keyspace": "other"},
    }.items():
        with pytest.raises(BuildError) as raised:
            bulk.Building.start(tmp_path, **ROUTING | change)
        assert raised.value.part == part
    assert left(tmp_path) == []


def test_numbers_are_not_taken_twice(tmp_path):
    buildings = [bulk.Building.start(tmp_path, **ROUTING) for _ in range(4)]
    written = [building.write([table([n])]) for n, building in enumerate(buildings)]
    numbers = []

    def commit(n):
        numbers.append(buildings[n].commit(written[n]))

    threads = [threading.Thread(target=commit, args=(n,)) for n in range(len(buildings))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == [1, 2, 3, 4] and left(tmp_path) == []


def test_what_can_be_read(tmp_path):
    for path, version in ((tmp_path, None), (tmp_path, 3)):
        with pytest.raises(BuildError) as raised:
            bulk.shard_paths(path, version)
        assert raised.value.part == "manifest"
    with alluvium_db.open(tmp_path / "0001") as db:
        db.keyspace("a")["x"] = "1"
        db.keyspace("b")["y"] = "2"
    assert bulk.shard_paths(tmp_path) == [tmp_path / "0001"]
    (batch,) = bulk.scan_shard(tmp_path / "0001", "b")
    assert batch.to_pydict() == {"key": [b"y"], "value": [b"2"]}
    with pytest.raises(BuildError) as raised:
        list(bulk.scan_shard(tmp_path / "0001"))
    assert raised.value.part == "keyspace"


def test_the_example_of_the_module_runs():
    assert doctest.testmod(bulk).failed == 0
