"""Bulk builds: jobs, shards, commits, versions, and what does not fit."""

import os
import pickle
import subprocess
import sys

import pytest

import alluvium_db
from alluvium_db import BuildError, BuildJob, ShardWriter

HASH_KEY = "000102030405060708090a0b0c0d0e0f"
ITEMS = {b"key%d" % n: b"value%d" % n for n in range(1000)}


def job(shards=4, **options):
    return BuildJob("nightly", HASH_KEY, shards, **options)


def write_shard(root, job, shard, items=ITEMS, **options):
    with ShardWriter(root / f"shard-{shard:05}", job, shard, **options) as writer:
        writer.put_many({key: value for key, value in items.items() if job.shard_of(key) == shard})


def build(root, job, items=ITEMS):
    for shard in range(job.shards):
        write_shard(root, job, shard, items)
    return alluvium_db.commit_build(root, job=job)


def part_of(raised):
    assert raised.value.file and raised.value.expected and raised.value.found
    return raised.value.part


def test_a_build_is_written_committed_read_and_adopted(tmp_path):
    root, jobs = tmp_path / "0001", job()
    committed = build(root, jobs)
    assert (committed["job"], committed["shards"], committed["items"]) == ("nightly", 4, 1000)
    assert committed["hash_key_fingerprint"] == jobs.hash_key_fingerprint
    assert alluvium_db.check_build(root, checksums=True) == committed
    with alluvium_db.open(root, read_only=True) as db:
        assert db == ITEMS
        with pytest.raises(alluvium_db.ReadOnlyError):
            db["key"] = "value"
    for number, shard in enumerate(alluvium_db.build_shards(root)):
        with alluvium_db.open(shard, read_only=True) as db:
            assert db and all(jobs.shard_of(key) == number for key in db)
    report = alluvium_db.adopt(root, tmp_path / "db")
    assert report["shards"] == 4 and report["copied_files"] == 0
    with alluvium_db.open(tmp_path / "db") as db:
        db["new"] = "item"
        assert db == ITEMS | {b"new": b"item"}
    (tmp_path / "0002").mkdir()
    assert [found["state"] for found in alluvium_db.versions(tmp_path)] == ["build", "incomplete"]
    assert alluvium_db.versions(tmp_path)[0]["items"] == 1000
    (root / "BUILD").write_bytes(b"damaged")
    assert alluvium_db.versions(tmp_path)[0]["state"] == "damaged" and alluvium_db.versions(tmp_path)[0]["reason"]


def test_the_shards_of_keys():
    # The example of the engine's documentation.
    jobs = BuildJob("nightly", bytes([7] * 16), 8)
    assert jobs.shard_of("apple") == 7 and jobs.shards_of(["apple", b"apple"]) == [7, 7]
    keys = list(ITEMS)
    assert set(jobs.shards_of(keys)) == set(range(8)) and jobs.shards_of([]) == []
    grouped = job(delimiter="/", listed_prefixes=True)
    assert len({grouped.shard_of(f"album/{n}") for n in range(100)}) == 1
    pa = pytest.importorskip("pyarrow")
    for column in (pa.array(keys), pa.chunked_array([keys[:7], keys[7:]]), pa.array(keys)[3:]):
        shards = jobs.shards_of_arrow(column)
        assert shards.type == pa.uint32() and shards.to_pylist() == jobs.shards_of(column.to_pylist())
    with pytest.raises(ValueError, match="must not be null"):
        jobs.shards_of_arrow(pa.array([b"a", None]))


def test_jobs_are_pickled_and_hide_their_key():
    for jobs in (
        job(),
        job(keyspace="other", plan="silt-tiering"),
        job(delimiter=b"/", listed_prefixes=True),
        job(prefix_bytes=3),
    ):
        copy = pickle.loads(pickle.dumps(jobs))
        keys = [b"abc/%d" % n for n in range(100)]
        assert copy.shards_of(keys) == jobs.shards_of(keys)
        assert (copy.id, copy.shards, copy.keyspace) == (jobs.id, jobs.shards, jobs.keyspace)
        assert copy.hash_key_fingerprint == jobs.hash_key_fingerprint
        assert HASH_KEY not in repr(jobs) and "nightly" in repr(jobs)
    assert job().hash_key_fingerprint == BuildJob("x", bytes(range(16)), 1).hash_key_fingerprint
    for key in ("1234", "x" * 32, "+" + "0" * 32, "+" + "0" * 31, b"short", bytes(17)):
        with pytest.raises(alluvium_db.SettingsError, match="hash key") as raised:
            BuildJob("nightly", key, 1)
        assert str(key) not in str(raised.value)


def test_jobs_that_cannot_be_built():
    for id, shards in (("", 1), ("a\nb", 1), ("a" * 256, 1), ("a", 0), ("a", 1 << 17)):
        with pytest.raises(BuildError) as raised:
            BuildJob(id, HASH_KEY, shards)
        assert part_of(raised) == ("job" if shards == 1 else "shard_count")
    with pytest.raises(alluvium_db.SettingsError):
        job(plan="skimpystash")
    with pytest.raises(alluvium_db.SettingsError):
        job(listed_prefixes=True)


def test_what_does_not_fit_is_refused_by_name(tmp_path):
    jobs = job()
    with pytest.raises(BuildError) as raised:
        ShardWriter(tmp_path / "x", jobs, 4)
    assert part_of(raised) == "shard"
    writer = ShardWriter(tmp_path / "shard-00000", jobs, 0)
    other = next(key for key in ITEMS if jobs.shard_of(key) == 3)
    with pytest.raises(BuildError) as raised:
        writer.put(other, "value")
    assert (part_of(raised), raised.value.expected, raised.value.found) == ("key", "0", "3")
    with pytest.raises(alluvium_db.LockedError):
        ShardWriter(tmp_path / "shard-00000", jobs, 0)
    writer.abort()
    with pytest.raises(alluvium_db.ClosedError):
        writer.put(other, "value")
    with pytest.raises(BuildError) as raised:
        alluvium_db.commit_build(tmp_path)
    assert part_of(raised) == "shard_count"
    for shard in range(4):
        write_shard(tmp_path, jobs, shard)
    for other, part in (
        (BuildJob("other", HASH_KEY, 4), "job"),
        (BuildJob("nightly", bytes(16), 4), "hash_key"),
        (job(5), "shard_count"),
        (job(keyspace="other"), "keyspace"),
        (job(prefix_bytes=1), "order"),
        (job(plan="silt-tiering"), "plan"),
    ):
        with pytest.raises(BuildError) as raised:
            alluvium_db.commit_build(tmp_path, job=other)
        assert part_of(raised) == part
    with pytest.raises(BuildError) as raised:
        alluvium_db.build_shards(tmp_path)
    assert part_of(raised) == "manifest"
    assert isinstance(pickle.loads(pickle.dumps(raised.value)), BuildError)
    assert pickle.loads(pickle.dumps(raised.value)).part == "manifest"
    assert alluvium_db.abort_build(tmp_path) == 4
    build(tmp_path, jobs)
    with pytest.raises(BuildError):
        alluvium_db.abort_build(tmp_path)
    table = next((tmp_path / "shard-00001").glob("table-*"))
    table.write_bytes(bytes(table.stat().st_size))
    assert alluvium_db.check_build(tmp_path)["items"] == 1000
    with pytest.raises(BuildError) as raised:
        alluvium_db.check_build(tmp_path, checksums=True)
    assert part_of(raised) == "checksum" and table.name in raised.value.file


def test_attempts_are_repeated_and_chosen(tmp_path):
    jobs = job(1)
    with pytest.raises(RuntimeError):
        with ShardWriter(tmp_path / "a", jobs, 0) as writer:
            writer.put("half", "done")
            raise RuntimeError
    with ShardWriter(tmp_path / "a", jobs, 0) as writer:
        writer.put("a", "1", ttl=1000, flags=7)
        writer.put("a", "2")
        report = writer.finish()
    assert report["items"] == 2 and report["bytes"] == 4 and report["files"] > 0 and report["file_bytes"] > 0
    with pytest.raises(BuildError) as raised:
        ShardWriter(tmp_path / "a", jobs, 0)
    assert part_of(raised) == "manifest"
    with ShardWriter(tmp_path / "a", jobs, 0, replace=True, memory_bytes_max=32 << 20) as writer:
        writer.put("a", "3")
    ShardWriter(tmp_path / "b", jobs, 0).finish()
    with pytest.raises(BuildError) as raised:
        alluvium_db.commit_build(tmp_path)
    assert part_of(raised) == "shard"
    alluvium_db.commit_build(tmp_path, directories=["a"], checksums=True)
    with alluvium_db.open(tmp_path, read_only=True) as db:
        assert db == {b"a": b"3"}


def test_columns_are_written_and_scanned(tmp_path):
    pa = pytest.importorskip("pyarrow")
    np = pytest.importorskip("numpy")
    jobs = job(1)
    with ShardWriter(tmp_path / "a", jobs, 0) as writer:
        writer.put_arrow(pa.array(list(ITEMS)), pa.array([value.decode() for value in ITEMS.values()]))
        writer.put_fixed(np.arange(10, dtype="<u8"), np.arange(10, dtype="<u4"))
        writer.put("large", bytes(20 << 20))
        with pytest.raises(ValueError, match="must not be null"):
            writer.put_arrow(pa.array(["a"]), pa.array([None], pa.string()))
        assert writer.shard == 0
    alluvium_db.commit_build(tmp_path)
    expected = {n.tobytes(): np.uint32(n).tobytes() for n in np.arange(10, dtype="<u8")}
    expected |= ITEMS | {b"large": bytes(20 << 20)}
    with alluvium_db.open(tmp_path, read_only=True) as db:
        for rows in (1, 7, 65536):
            found = list(db.scan_arrow(rows))
            assert all(0 < batch.num_rows <= rows for batch in found)
            table = pa.Table.from_batches(found)
            table.validate(full=True)
            assert table.schema == pa.schema([("key", pa.binary()), ("value", pa.binary())])
            keys = table.column("key").to_pylist()
            assert dict(zip(keys, table.column("value").to_pylist(), strict=True)) == expected and len(keys) == 1011
        with db.snapshot() as snapshot:
            assert sum(batch.num_rows for batch in snapshot.keyspace().scan_arrow()) == 1011


def test_a_writer_stays_in_its_process(tmp_path):
    writer = ShardWriter(tmp_path / "a", job(), 0)
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(writer)
    writer.abort()
    program = f"""
import os, alluvium_db
job = alluvium_db.BuildJob("nightly", {HASH_KEY!r}, 1)
writer = alluvium_db.ShardWriter({str(tmp_path / "b")!r}, job, 0)
writer.put("a", "1")
if (child := os.fork()) == 0:
    try:
        writer.put("b", "2")
    except alluvium_db.ForkedError:
        os._exit(7)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert writer.finish()["items"] == 1
"""
    subprocess.run([sys.executable, "-c", program], check=True, env=os.environ)


def test_a_killed_attempt_is_cleared_by_the_next(tmp_path):
    program = f"""
import os, signal, alluvium_db
job = alluvium_db.BuildJob("nightly", {HASH_KEY!r}, 1)
writer = alluvium_db.ShardWriter({str(tmp_path / "a")!r}, job, 0)
writer.put_many((b"%d" % n, bytes(100)) for n in range(10000))
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", program], env=os.environ).returncode == -9
    with pytest.raises(BuildError):
        alluvium_db.commit_build(tmp_path)
    with ShardWriter(tmp_path / "a", job(1), 0) as writer:
        writer.put("a", "1")
    assert alluvium_db.commit_build(tmp_path)["items"] == 1
