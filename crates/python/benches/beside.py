"""Alluvium beside other stores for Python: rates, memory, disk and files.

    python crates/python/benches/beside.py --items 1000000 --dir /a/directory/on/the/device

Each store runs in a process of its own, and all with the same keys and values (16 and 100 random bytes). What is not
installed is skipped: ``pip install rocksdict lmdb diskcache sqlitedict``. Writes survive the end of the process in
all of them, as far as they can be told; none waits for the device.

Single gets and puts are timed in a loop of Python, so the loop itself is in the figures. "Cached" items are a fifth of
all, at most 200,000, that were read once before; "any" are as many of all items, read for the first time.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time

KEY_BYTES, VALUE_BYTES = 16, 100
BATCH = 10_000


class Alluvium:
    """This package, with the plan that it chooses by itself."""

    options: dict[str, str] = {}

    def __init__(self, path, items):
        import alluvium_db

        self.db = alluvium_db.open(path, expected_items=items, durability="process", **self.options)
        self.get, self.put = self.db.__getitem__, self.db.__setitem__
        self.get_many, self.put_many = self.db.get_many, self.db.put_many
        self.settle, self.close = self.db.wait_idle, self.db.close


class AlluviumTiering(Alluvium):
    """This package, with the plan for loads: more memory, fewer rewrites, no reads for absent keys."""

    options = {"plan": "silt-tiering"}


class AlluviumArrow(AlluviumTiering):
    """The same, with batches as columns of Arrow."""

    def __init__(self, path, items):
        import pyarrow

        super().__init__(path, items)

        def put_many(pairs):
            keys, values = zip(*pairs, strict=True)
            self.prepared = pyarrow.array(keys), pyarrow.array(values)
            start = time.perf_counter()
            self.db.put_arrow(*self.prepared)
            return time.perf_counter() - start

        def get_many(keys):
            column = pyarrow.array(keys)
            start = time.perf_counter()
            self.db.get_arrow(column)
            return time.perf_counter() - start

        self.put_many, self.get_many = put_many, get_many


class RocksDict:
    """RocksDB by rocksdict, with bytes as they are."""

    def __init__(self, path, items):
        import rocksdict

        options = rocksdict.Options(raw_mode=True)
        options.create_if_missing(True)
        self.db = rocksdict.Rdict(str(path), options)

        def put_many(pairs):
            batch = rocksdict.WriteBatch(raw_mode=True)
            for key, value in pairs:
                batch.put(key, value)
            self.db.write(batch)

        self.get, self.put = self.db.__getitem__, self.db.__setitem__
        self.get_many, self.put_many = self.db.__getitem__, put_many
        self.settle, self.close = self.db.flush, self.db.close


class Lmdb:
    """LMDB by py-lmdb, without waiting for the device. A single get or put is a transaction, as in a service."""

    def __init__(self, path, items):
        import lmdb

        self.db = lmdb.open(str(path), map_size=max(1 << 30, items * 600), sync=False, writemap=False)

        def get(key):
            with self.db.begin(buffers=False) as transaction:
                return transaction.get(key)

        def put(key, value):
            with self.db.begin(write=True) as transaction:
                transaction.put(key, value)

        def get_many(keys):
            with self.db.begin() as transaction, transaction.cursor() as cursor:
                return cursor.getmulti(keys)

        def put_many(pairs):
            with self.db.begin(write=True) as transaction, transaction.cursor() as cursor:
                cursor.putmulti(pairs)

        self.get, self.put, self.get_many, self.put_many = get, put, get_many, put_many
        self.settle, self.close = self.db.sync, self.db.close


class LmdbOpen(Lmdb):
    """LMDB, whose single gets are all in one transaction that was begun before."""

    def settle_reads(self):
        """Begins the transaction."""
        self.get = self.db.begin().get


class DiskCacheStore:
    """diskcache.Cache, which has no batches: transactions of single writes."""

    def __init__(self, path, items):
        import diskcache

        self.db = diskcache.Cache(str(path), size_limit=1 << 40, eviction_policy="none")

        def get_many(keys):
            return [self.db.get(key) for key in keys]

        def put_many(pairs):
            with self.db.transact():
                for key, value in pairs:
                    self.db.set(key, value)

        self.get, self.put, self.get_many, self.put_many = self.db.get, self.db.set, get_many, put_many
        self.settle, self.close = (lambda: None), self.db.close


class SqliteDictStore:
    """sqlitedict with bytes as they are."""

    def __init__(self, path, items):
        import sqlite3

        import sqlitedict

        path.mkdir()
        plain = {"encode": sqlite3.Binary, "decode": bytes, "encode_key": lambda key: key.hex()}
        plain["decode_key"] = bytes.fromhex
        self.db = sqlitedict.SqliteDict(str(path / "db"), journal_mode="WAL", **plain)

        def put(key, value):
            self.db[key] = value
            self.db.commit(blocking=True)

        def put_many(pairs):
            self.db.update(pairs)
            self.db.commit(blocking=True)

        self.get, self.put, self.put_many = self.db.__getitem__, put, put_many
        self.get_many = lambda keys: [self.db[key] for key in keys]
        self.settle, self.close = (lambda: None), self.db.close


STORES = {
    "alluvium": Alluvium,
    "alluvium, silt-tiering": AlluviumTiering,
    "alluvium, silt-tiering, Arrow": AlluviumArrow,
    "rocksdict": RocksDict,
    "lmdb": Lmdb,
    "lmdb, open transaction": LmdbOpen,
    "diskcache": DiskCacheStore,
    "sqlitedict": SqliteDictStore,
}
#: Stores that take minutes for a million items get a tenth of the operations.
SLOW = {"diskcache", "sqlitedict"}


def resident_bytes():
    """Bytes of memory of this process."""
    fields = pathlib.Path("/proc/self/status").read_text().split("\n")
    return next(int(line.split()[1]) * 1024 for line in fields if line.startswith("VmRSS"))


def anonymous_bytes():
    """Those that are not pages of files, which the system may take back."""
    fields = pathlib.Path("/proc/self/status").read_text().split("\n")
    return next(int(line.split()[1]) * 1024 for line in fields if line.startswith("RssAnon"))


def per_second(count, seconds):
    """A rate."""
    return count / max(seconds, 1e-9)


def timed(calls, each):
    """Calls ``each`` with all of ``calls``; a call that times itself returns seconds."""
    total = 0.0
    for arguments in calls:
        start = time.perf_counter()
        own = each(arguments)
        total += own if isinstance(own, float) else time.perf_counter() - start
    return total


def measure(name, directory, items):
    """All figures of one store."""
    path = pathlib.Path(directory) / f"beside-{name.replace(',', '').replace(' ', '-')}"
    shutil.rmtree(path, ignore_errors=True)
    random.seed(7)
    keys = [random.randbytes(KEY_BYTES) for _ in range(items)]
    pool = random.randbytes(1 << 20)

    def value(number):
        start = number * 7919 % (len(pool) - VALUE_BYTES)
        return pool[start : start + VALUE_BYTES]

    before = anonymous_bytes()
    store = STORES[name](path, items)
    numbers = (range(start, min(start + BATCH, items)) for start in range(0, items, BATCH))
    batches = ([(keys[number], value(number)) for number in batch] for batch in numbers)
    figures = {"put_many": per_second(items, timed(batches, store.put_many))}
    store.settle()
    if hasattr(store, "settle_reads"):
        store.settle_reads()
    few = min(items // 5, 20_000 if name in SLOW else 200_000)
    hot, cold = random.sample(keys, few), random.sample(keys, few)
    hot_batches = [hot[start : start + BATCH] for start in range(0, few, BATCH)]
    cold_batches = [cold[start : start + BATCH] for start in range(0, few, BATCH)]
    figures["get_many_any"] = per_second(few, timed(cold_batches, store.get_many))
    timed(hot_batches, store.get_many)
    figures["get_many"] = per_second(few, min(timed(hot_batches, store.get_many) for _ in range(3)))

    def single():
        get = store.get
        start = time.perf_counter()
        for key in hot:
            get(key)
        return time.perf_counter() - start

    single()
    figures["get"] = per_second(few, min(single() for _ in range(3)))
    assert all(store.get(keys[number]) == value(number) for number in range(1000)), "a wrong answer"
    count = few // 10 if name in SLOW else few
    singles = [(random.randbytes(KEY_BYTES), value(number)) for number in range(count)]
    put = store.put
    if isinstance(store, LmdbOpen):
        del store.get
    start = time.perf_counter()
    for key, new in singles:
        put(key, new)
    figures["put"] = per_second(len(singles), time.perf_counter() - start)
    store.settle()
    figures["memory_mib"] = (anonymous_bytes() - before) / 2**20
    figures["resident_mib"] = resident_bytes() / 2**20
    files = [file for file in path.rglob("*") if file.is_file()]
    figures["disk_mib"] = sum(file.stat().st_blocks * 512 for file in files) / 2**20
    figures["files"] = len(files)
    store.close()
    shutil.rmtree(path)
    return figures


def main():
    """Runs all stores and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--dir", default=".", help="where the databases are made")
    parser.add_argument("--stores", default=";".join(STORES), help="names, with semicolons between them")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one, arguments.dir, arguments.items)))
        return
    columns = {
        "put_many": "batched puts K/s",
        "get_many": "batched gets, cached K/s",
        "get_many_any": "batched gets, any K/s",
        "put": "puts K/s",
        "get": "gets, cached K/s",
        "memory_mib": "memory MiB",
        "disk_mib": "disk MiB",
        "files": "files",
    }
    print(f"{arguments.items} items of {KEY_BYTES}+{VALUE_BYTES} bytes, batches of {BATCH}\n")
    print("| store | " + " | ".join(columns.values()) + " |\n|---" * 1 + "|---:" * len(columns) + "|")
    for name in arguments.stores.split(";"):
        command = [sys.executable, __file__, "--one", name, "--items", str(arguments.items), "--dir", arguments.dir]
        run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": "0"})
        if run.returncode:
            reason = run.stderr.strip().splitlines()[-1:]
            print(f"| {name} | skipped: {' '.join(reason)} |", flush=True)
            continue
        figures = json.loads(run.stdout.strip().splitlines()[-1])
        cells = []
        for column in columns:
            value = figures[column] / 1000 if "K/s" in columns[column] else figures[column]
            cells.append(f"{value:.0f}" if value >= 10 else f"{value:.1f}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
