"""Batches, conditions, transactions, expiry, numbers, snapshots, copies."""

import threading
import time

import pytest

import alluvium_db


def test_a_batch_is_atomic(db):
    other = db.keyspace("other")
    with db.batch() as batch:
        batch[b"a"] = b"1"
        batch.put(b"b", b"2", keyspace=other)
        batch.delete(b"a")
        assert len(batch) == 3
        assert b"b" not in other
    assert b"a" not in db and other[b"b"] == b"2"
    with pytest.raises(ZeroDivisionError), db.batch() as batch:
        batch[b"a"] = b"1"
        raise ZeroDivisionError
    assert b"a" not in db
    with pytest.raises(alluvium_db.ClosedError):
        batch.commit()


def test_conditions(db):
    db[b"a"] = b"1"
    value, version = db.get_with_version(b"a")
    assert value == b"1" and len(version) == 32

    def attempt(**conditions):
        batch = db.batch()
        for name, arguments in conditions.items():
            getattr(batch, name)(*arguments)
        batch[b"done"] = b"yes"
        try:
            return batch.try_commit()
        finally:
            db.delete(b"done")

    assert attempt(require_present=[b"a"], require_absent=[b"b"], require_value=[b"a", b"1"])
    assert attempt(require_unchanged=[b"a", version])
    assert not attempt(require_absent=[b"a"])
    assert not attempt(require_present=[b"b"])
    db[b"a"] = b"2"
    assert not attempt(require_unchanged=[b"a", version])
    batch = db.batch()
    batch.require_present(b"a")
    batch.require_value(b"a", b"1")
    with pytest.raises(alluvium_db.ConditionFailedError) as raised:
        batch.commit()
    assert (raised.value.number, raised.value.keyspace, raised.value.key) == (1, "default", b"a")


def test_handles_of_two_databases_are_not_mixed(db, tmp_path):
    with alluvium_db.open(tmp_path / "second") as second, pytest.raises(alluvium_db.SettingsError):
        db.batch().put(b"a", b"1", keyspace=second)


def test_transactions_of_threads_lose_nothing(db):
    db[b"from"], db[b"to"] = b"1000", b"0"

    def move(transaction):
        transaction[b"from"] = str(int(transaction[b"from"]) - 1)
        transaction[b"to"] = str(int(transaction[b"to"]) + 1)
        return int(transaction[b"from"]) + int(transaction[b"to"])

    def work():
        for _ in range(50):
            assert db.transaction(move) == 1000

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (db[b"from"], db[b"to"]) == (b"800", b"200")


def test_a_transaction_gives_up(db):
    def meddle(transaction):
        transaction.get(b"a")
        db.increment(b"a")
        transaction.put(b"b", b"1")

    with pytest.raises(alluvium_db.ConflictError):
        db.transaction(meddle, attempts=3)
    assert b"b" not in db
    with pytest.raises(KeyError):
        db.transaction(lambda transaction: transaction[b"absent"])
    assert db.transaction(lambda transaction: b"absent" in transaction) is False


def test_expiry(db):
    db.put(b"short", b"1", ttl=0.2, flags=7)
    db.put(b"long", b"2", ttl=1000)
    db.put(b"past", b"3", expires_at=time.time() - 1)
    db.put_many({b"many": b"4"}, ttl=0.2)
    value, flags, expires_at = db.get_with_metadata(b"short")
    assert (value, flags) == (b"1", 7) and 0 < expires_at - time.time() <= 0.2
    assert db.get_with_metadata(b"past") is None
    assert db.touch(b"long", None) and not db.touch(b"absent", 5)
    assert db.get_with_metadata(b"long") == (b"2", 0, None)
    time.sleep(0.25)
    assert db.get_many([b"short", b"long", b"many"]) == [None, b"2", None]
    for wrong in (-1, float("nan")):
        with pytest.raises(alluvium_db.SettingsError):
            db.put(b"a", b"b", ttl=wrong)
    with pytest.raises(ValueError):
        db.put(b"a", b"b", ttl=1, expires_at=1)


def test_numbers_and_changes(db):
    assert db.increment(b"n") == 1 and db.increment("n", 41) == 42
    db[b"text"] = b"1"
    with pytest.raises(alluvium_db.NotANumberError):
        db.increment(b"text")
    with pytest.raises(OverflowError):
        db.increment(b"n", 2**63 - 1)
    assert db.compare_and_swap(b"c", None, b"1") and not db.compare_and_swap(b"c", None, b"2")
    assert db.compare_and_swap(b"c", b"1", None) and b"c" not in db
    db.put(b"m", b"1", flags=3)
    assert db.modify(b"m", lambda value: value + b"2") == b"12"
    assert db.get_with_metadata(b"m") == (b"12", 3, None)
    assert db.modify(b"m", lambda value: None) is None and b"m" not in db
    with pytest.raises(ZeroDivisionError):
        db.modify(b"n", lambda value: 1 // 0)
    with pytest.raises(TypeError):
        db.modify(b"n", lambda value: 7)
    assert db.increment(b"n", 0) == 42


def test_snapshots(db):
    items = {b"%d" % n: b"old" for n in range(2000)}
    db.put_many(items)
    with db.snapshot() as snapshot:
        db.put_many({key: b"new" for key in items})
        db[b"more"] = b"1"
        old = snapshot.keyspace()
        assert old == items and len(old) == 2000 and b"more" not in old
        assert old.get_many([b"7", b"more"]) == [b"old", None] and old[b"7"] == b"old"
        assert snapshot.keyspaces() == ["default"] and abs(snapshot.taken_at - time.time()) < 60
        with pytest.raises(KeyError):
            snapshot.keyspace("none")
    with pytest.raises(alluvium_db.ClosedError):
        snapshot.keyspaces()
    assert db[b"7"] == b"new"


def test_ingest(db):
    with db.ingest() as load:
        load.put_many((b"%d" % n, b"%d" % (2 * n)) for n in range(10_000))
        load.put(b"last", b"1")
        assert b"last" not in db
    assert len(db) == 10_001 and db[b"4321"] == b"8642"
    load = db.ingest()
    load.put(b"given up", b"1")
    load.abandon()
    with pytest.raises(alluvium_db.ClosedError):
        load.finish()
    assert b"given up" not in db


def test_copies_and_reports(db, tmp_path):
    db.put_many({b"%d" % n: bytes(100) for n in range(1000)})
    assert db.checkpoint(tmp_path / "copy")["linked_tables"] > 0
    with alluvium_db.open(tmp_path / "copy", read_only=True) as copy:
        assert len(copy) == 1000
        with pytest.raises(alluvium_db.ReadOnlyError):
            copy[b"a"] = b"1"
    assert db.backup(tmp_path / "backups")["number"] == 1
    assert db.backup(tmp_path / "backups", keep=1)["removed"] == 1
    assert [backup["number"] for backup in alluvium_db.backups(tmp_path / "backups")] == [2]
    alluvium_db.restore(tmp_path / "backups", tmp_path / "restored")
    with alluvium_db.open(tmp_path / "restored") as restored:
        assert restored == db
    db.persist()
    db.flush()
    db.compact()
    db.wait_idle()
    stats = db.stats()
    assert stats["items"] == 1000 and stats["memory"]["log_index"] > 0
    assert db.verify()["problems"] == [] and db.health() == {"state": "healthy"}
    db.resume()


def test_options(tmp_path):
    options = {
        "expected_items": 1000,
        "plan": "silt",
        "durability": 0.01,
        "workload": {"gets": 1, "puts": 1, "absent_gets": 0.5},
        "index_bytes_per_item": 2.5,
        "memory_bytes_max": 64 << 20,
        "row_cache_bytes_max": 1 << 20,
        "compress_rows": "lz4",
        "disk_bytes_max": 1 << 30,
        "drop_oldest": False,
        "background_bytes_per_s_max": 100 << 20,
        "ingest_sort_bytes_max": 1 << 20,
        "open_files_max": 100,
        "inline_bytes_max": 1000,
        "log_retention_bytes": 0,
        "read_wait": "sleep",
        "young_levels_dir": tmp_path / "young",
        "young_levels": 1,
        "read_only": None,
    }
    with alluvium_db.open(tmp_path / "a", **options) as db:
        db[b"a"] = b"1"
        assert db.path == tmp_path / "a"
    with pytest.raises(TypeError, match="expected_item"):
        alluvium_db.open(tmp_path / "b", expected_item=7)
    for wrong in ({"plan": "no such"}, {"durability": "none"}, {"compress_rows": "zip"}, {"memory_bytes_max": 1}):
        with pytest.raises(alluvium_db.SettingsError):
            alluvium_db.open(tmp_path / "b", **wrong)
