"""Threads, forks, pickling, closing, damage."""

import copy
import gc
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import time

import pytest

import alluvium_db


def test_reads_of_threads_overlap(db):
    """A thread that waits in the engine does not hold the interpreter's lock."""
    started = threading.Event()
    progress = 0

    def other(value):
        nonlocal progress
        started.set()
        deadline = time.monotonic() + 10
        while progress == 0 and time.monotonic() < deadline:
            time.sleep(0.001)
        return b"1"

    thread = threading.Thread(target=db.modify, args=(b"a", other))
    thread.start()
    started.wait()
    db[b"b"] = b"2"
    assert db.get_many([b"b"] * 1000) == [b"2"] * 1000
    progress = 1
    thread.join()
    assert db[b"a"] == b"1"


def test_threads_read_and_write_together(db):
    keys = [b"%d" % n for n in range(2000)]
    db.put_many({key: b"0" for key in keys})
    failures = []

    def work(number):
        try:
            for turn in range(20):
                db.put_many({key: b"%d" % turn for key in keys[number::4]})
                assert None not in db.get_many(keys)
                assert sum(1 for _ in db) == len(keys)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert db == {key: b"19" for key in keys}


def test_an_iterator_is_shared_by_threads(db):
    db.put_many({b"%d" % n: b"" for n in range(5000)})
    iterator, seen = iter(db), []
    threads = [threading.Thread(target=lambda: seen.extend(iterator)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == sorted(db.keys())


def test_pickling_is_refused(db):
    cache = alluvium_db.Cache(1 << 20)
    refused = [db, db.keyspace("k"), db.batch(), iter(db), db.snapshot(), db.ingest(), cache]
    refused.append(db.snapshot().keyspace("k"))
    for thing in refused:
        with pytest.raises(TypeError, match="cannot pickle .* Pass the path"):
            pickle.dumps(thing)
        with pytest.raises(TypeError):
            copy.copy(thing)


def test_errors_can_be_pickled():
    error = alluvium_db.CorruptionError("message", file="f", offset=7, expected="e", found="g")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == "message" and again.offset == 7


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_is_detected(db, path):
    db[b"a"] = b"1"
    snapshot, iterator, batch, cache = db.snapshot(), iter(db), db.batch(), alluvium_db.Cache(1 << 20)
    uses = [
        lambda: db[b"a"],
        lambda: db.get_many([b"a"]),
        lambda: db.stats(),
        lambda: db.close(),
        lambda: snapshot.keyspaces(),
        lambda: next(iterator),
        lambda: batch.commit(),
        lambda: cache.get(b"a"),
    ]
    child = os.fork()
    if child == 0:
        code = 1
        try:
            refused = 0
            for use in uses:
                try:
                    use()
                except alluvium_db.ForkedError:
                    refused += 1
            # Dropping them neither waits for threads that are not there nor touches files.
            del use, uses, snapshot, iterator, batch, cache
            gc.collect()
            # What this process opens itself works.
            with alluvium_db.open(path.parent / "child", durability="buffered") as mine:
                mine[b"a"] = b"1"
            code = 0 if refused == 8 else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    db[b"b"] = b"2"
    assert db.get_many([b"a", b"b"]) == [b"1", b"2"]


def _open_and_put(path):
    with alluvium_db.open(path) as db:
        db[b"from child"] = b"1"
    return os.getpid()


def test_a_spawned_process_opens_its_own(path):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(_open_and_put, (path,)) != os.getpid()
    with alluvium_db.open(path) as db:
        assert db[b"from child"] == b"1"


def test_one_handle_at_a_time(db, path):
    with pytest.raises(alluvium_db.LockedError) as raised:
        alluvium_db.open(path)
    assert raised.value.path and str(path) in raised.value.holder


def test_closing(path):
    db = alluvium_db.open(path)
    keyspace, iterator, batch = db.keyspace("k"), iter(db), db.batch()
    db[b"a"] = b"1"
    db.close()
    db.close()
    for use in (lambda: db[b"a"], lambda: keyspace.get(b"a"), lambda: db.flush()):
        with pytest.raises(alluvium_db.ClosedError):
            use()
    batch.put(b"a", b"2")
    with pytest.raises(alluvium_db.ClosedError):
        batch.commit()
    del iterator
    with alluvium_db.open(path) as again:
        assert again[b"a"] == b"1"


def test_a_process_that_ends_without_closing_loses_nothing_that_was_acknowledged(path):
    program = (
        "import alluvium_db, sys, os\n"
        "db = alluvium_db.open(sys.argv[1], durability='process')\n"
        "db.put_many({b'%d' % n: b'1' for n in range(1000)})\n"
        "os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=True)
    with alluvium_db.open(path) as db:
        assert len(db) == 1000


def test_an_interpreter_ends_with_open_databases(path):
    program = (
        "import alluvium_db, sys, threading\n"
        "db = alluvium_db.open(sys.argv[1])\n"
        "db[b'a'] = b'1'\n"
        "items, cache = iter(db), alluvium_db.Cache(1 << 20)\n"
        "threading.Thread(target=lambda: [db.get(b'a') for _ in range(100000)], daemon=True).start()\n"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=True, timeout=60)
    with alluvium_db.open(path) as db:
        assert db[b"a"] == b"1"


def test_damage_is_reported_and_repaired(path):
    with alluvium_db.open(path) as db:
        db.put_many({b"%d" % n: bytes(100) for n in range(5000)})
        db.compact()
    table = max(path.glob("table-*"), key=lambda file: file.stat().st_size)
    with open(table, "r+b") as file:
        file.seek(8192 + 100)
        file.write(b"damage")
    with alluvium_db.open(path) as db:
        problems = db.verify()["problems"]
        assert problems and table.name in problems[0]
        with pytest.raises(alluvium_db.CorruptionError) as raised:
            list(db.items())
        assert table.name in raised.value.file and raised.value.offset % 4096 == 0
        assert raised.value.expected and raised.value.found
    assert alluvium_db.repair(path, dry_run=True)["changed"]
    report = alluvium_db.repair(path)
    assert report["pages_lost"] == 1 and not alluvium_db.repair(path)["changed"]
    with alluvium_db.open(path) as db:
        assert db.verify()["problems"] == []
        assert 5000 - report["items_lost"] == len(db) < 5000


def test_a_damaged_manifest_refuses_the_opening(path):
    with alluvium_db.open(path) as db:
        db[b"a"] = b"1"
    manifest = next(path.glob("manifest-*"))
    content = bytearray(manifest.read_bytes())
    content[20] ^= 0xFF
    manifest.write_bytes(content)
    with pytest.raises((alluvium_db.DamagedError, alluvium_db.CorruptionError)) as raised:
        alluvium_db.open(path)
    assert manifest.name in raised.value.file
    alluvium_db.repair(path)
    with alluvium_db.open(path) as db:
        assert db[b"a"] == b"1"


def test_other_errors(tmp_path, db):
    (tmp_path / "file").write_text("x")
    with pytest.raises(alluvium_db.NotADatabaseError):
        alluvium_db.open(tmp_path)
    with pytest.raises(OSError) as raised:
        alluvium_db.open(tmp_path / "file" / "below")
    assert isinstance(raised.value, alluvium_db.IoError) and raised.value.errno and raised.value.context
    with pytest.raises(alluvium_db.AlluviumError):
        alluvium_db.open(tmp_path / "none", create=False)
    with pytest.raises(ValueError) as raised:
        db[b"k" * 70_000] = b"1"
    assert (raised.value.what, raised.value.bytes) == ("key", 70_000)
    with pytest.raises(alluvium_db.SettingsError):
        db.keyspace("")
