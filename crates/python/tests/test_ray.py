"""Bulk builds by Ray. Runs where Ray is installed: ``cargo xtask python --connectors``."""

import functools
import os
import signal

import pytest

import alluvium_db

ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")
pa = pytest.importorskip("pyarrow")

from alluvium_db import bulk  # noqa: E402
from alluvium_db import ray as alluvium_ray  # noqa: E402

JOB = {"shards": 8, "hash_key": "000102030405060708090a0b0c0d0e0f"}
ROWS = 10_000


@pytest.fixture(scope="module", autouse=True)
def cluster():
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=256 << 20)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


def dataset(rows=ROWS):
    def make(batch):
        numbers = batch["id"].tolist()
        return pa.table({"key": [b"key%d" % n for n in numbers], "value": [f"value{n}" for n in numbers]})

    return ray.data.range(rows, override_num_blocks=4).map_batches(make)


def expected(rows=ROWS):
    return {b"key%d" % n: b"value%d" % n for n in range(rows)}


def content(path):
    with alluvium_db.open(path, read_only=True) as db:
        return dict(db.items())


def test_a_killed_worker_is_replaced(tmp_path):
    building = bulk.Building.start(tmp_path, **JOB)
    marker = str(tmp_path / "killed")

    def write_or_die(table):
        if table["alluvium_shard"][0].as_py() == 1 and not os.path.exists(marker):
            open(marker, "w").close()
            building.write([table.slice(0, len(table) // 2)])
            os.kill(os.getpid(), signal.SIGKILL)
        return alluvium_ray.write_shard(table, building)

    grouped = alluvium_ray.by_shard(dataset(), building.job)
    results = grouped.map_groups(write_or_die, batch_format="pyarrow").take_all()
    os.remove(marker)
    assert building.commit(alluvium_ray.written(results)) == 1
    assert content(tmp_path / "0001") == expected()
    assert len([name for name in os.listdir(tmp_path / "0001") if name.startswith("shard-")]) == 8


def test_a_dataset_is_written_in_one_call(tmp_path):
    assert alluvium_ray.write(dataset(), tmp_path, **JOB, id="nightly", checksums=True) == 1
    assert alluvium_db.versions(tmp_path)[0]["job"] == "nightly"
    assert content(tmp_path / "0001") == expected()
    renamed = dataset(3).rename_columns({"key": "id", "value": "text"})
    assert alluvium_ray.write(renamed, tmp_path, key="id", value="text", **JOB) == 2
    assert content(tmp_path / "0002") == expected(3)


def test_a_failed_job_leaves_nothing(tmp_path):
    def with_null(table):
        return table.set_column(0, "key", pa.array([None] * len(table), pa.binary()))

    with pytest.raises(Exception, match="must not be null"):
        alluvium_ray.write(dataset(100).map_batches(with_null, batch_format="pyarrow"), tmp_path, **JOB)
    assert os.listdir(tmp_path) == []


def test_an_unplaced_dataset_is_refused(tmp_path):
    building = bulk.Building.start(tmp_path, **JOB)
    task = functools.partial(alluvium_ray.write_shard, building=building)
    results = dataset().map_batches(task, batch_format="pyarrow", batch_size=None).take_all()
    with pytest.raises(alluvium_db.BuildError, match="placed in one task"):
        building.commit(alluvium_ray.written(results))
    building.abort()
    assert os.listdir(tmp_path) == []
