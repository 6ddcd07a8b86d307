"""The faces of dbm, diskcache and asyncio."""

import asyncio
import shelve
import time

import pytest

import alluvium_db
from alluvium_db import aio, dbm
from alluvium_db.cache import DiskCache
from alluvium_db.serializer import Pickle, Plain


def test_dbm(path):
    with pytest.raises(dbm.error):
        dbm.open(path)
    with dbm.open(path, "c") as db:
        db["a"] = "1"
        db[b"b"] = b"2"
        assert sorted(db.keys()) == [b"a", b"b"] and len(db) == 2 and "a" in db
        assert db.get("x", b"0") == b"0" and db.setdefault("c", b"3") == b"3"
        del db["b"]
        db.sync()
        db.reorganize()
    with dbm.open(path) as db:
        assert db["a"] == b"1"
        with pytest.raises(dbm.error):
            db["a"] = "2"
    with dbm.open(path, "n") as db:
        assert not len(db)
    with pytest.raises(ValueError):
        dbm.open(path, "x")


def test_shelve(path):
    with shelve.Shelf(dbm.open(path, "c")) as shelf:
        shelf["a"] = {"b": [1, 2]}
    with shelve.Shelf(dbm.open(path)) as shelf:
        assert dict(shelf) == {"a": {"b": [1, 2]}}


def test_disk_cache(path):
    with DiskCache(path) as cache:
        for value in (b"x", "x", 7, -(2**80), 1.5, True, False, None, [1, "a", None], {"a": [1.5]}, (1, "b")):
            cache["k"] = value
            assert cache["k"] == value and type(cache["k"]) is type(value)
        for key in (1, 1.0, "1", b"1", ("a", 1), None):
            cache[key] = repr(key)
        assert [cache[key] for key in (1, "1", b"1", ("a", 1), None)] == ["1", "'1'", "b'1'", "('a', 1)", "None"]
        assert set(cache) == {"k", 1, 1.0, "1", b"1", ("a", 1), None}
        for wrong in (object(), {1: 2}, [(1, 2)], {1, 2}, [b"x"]):
            with pytest.raises(TypeError):
                cache["k"] = wrong
        cache.set("short", 1, expire=0.05)
        value, expires = cache.get("short", expire_time=True)
        assert value == 1 and abs(expires - time.time()) < 1
        time.sleep(0.1)
        assert cache.get("short", expire_time=True) == (None, None) and "short" not in cache
        assert cache.add("n", 1) and not cache.add("n", 2) and cache.add("short", 5)
        assert cache.incr("n") == 2 and cache.decr("n", 5) == -3 and cache.incr("new", 5, default=10) == 15
        with pytest.raises(KeyError):
            cache.incr("absent", default=None)
        with pytest.raises(ValueError):
            cache.incr("k")
        assert cache.pop("n") == -3 and cache.pop("n", "gone") == "gone" and not cache.delete("n")
        assert cache.touch("k", 100) and not cache.touch("n", 100)
        cache.set_many({"x": 1, "y": 2})
        assert cache.get_many(["x", "z", "y"], 0) == [1, 0, 2]
        assert cache.volume() > 0 and cache.stats()["items"] > 0 and len(cache) > 3 and cache
        with pytest.raises(KeyError):
            del cache["z"]
    with DiskCache(path) as cache:
        assert cache["y"] == 2
        cache.clear()
        assert len(cache) == 0
    with pytest.raises(alluvium_db.SettingsError):
        DiskCache(path, size_limit=1000)


def test_memoize(path):
    calls = []
    with DiskCache(path) as cache:

        @cache.memoize(expire=100)
        def add(a, b=1):
            calls.append((a, b))
            return a + b

        assert add(1) == 2 and add(1) == 2 and add(1, b=2) == 3 and add("x", b="y") == "xy" and add("x", b="y") == "xy"
        assert calls == [(1, 1), (1, 2), ("x", "y")]
        assert cache[add.__cache_key__(1)] == 2
        with pytest.raises(TypeError):
            add(object())


def test_pickle_is_chosen_explicitly(path):
    with DiskCache(path, serializer=Pickle()) as cache:
        cache["k"] = {1, 2}
        assert cache["k"] == {1, 2}
    with DiskCache(path) as cache, pytest.raises(ValueError):
        cache["k"]
    with pytest.raises(ValueError):
        Plain().loads(b"?")


def test_asyncio(path):
    async def main():
        async with await aio.open(path, durability="buffered") as db:
            await db.put(b"a", b"1", ttl=100)
            await db.put_many({b"%d" % n: b"%d" % n for n in range(3000)})
            assert await db.get(b"a") == b"1" and await db.get(b"x", 7) == 7
            many = await asyncio.gather(*(db.get_many([b"1", b"x", b"%d" % n]) for n in range(20)))
            assert many[19] == [b"1", None, b"19"]
            assert await db.contains(b"1") and await db.contains_many([b"1", b"x"]) == [True, False]
            assert len([item async for item in db.items()]) == 3001 == await db.count()
            assert await db.increment(b"n") == 1 and await db.append(b"t", b"xy") == 2
            assert await db.compare_and_swap(b"t", b"xy", b"z") and await db.touch(b"t", None)
            assert await db.pop(b"t") == b"z" and await db.pop(b"t") is None
            await db.delete(b"1")
            await db.delete_many([b"2", b"3"], atomic=True)
            groups = await db.keyspace("groups", delimiter=b"/")
            await groups.put_many({b"a/1": b"", b"b/2": b""})
            assert [item async for item in groups.scan_prefix(b"a")] == [(b"a/1", b"")]
            await groups.delete_prefix(b"a")
            assert groups.name == "groups" and await db.keyspaces() == ["default", "groups"]
            assert await db.transaction(lambda transaction: transaction.get(b"a")) == b"1"
            await db.persist()
            await db.flush()
            await db.compact()
            assert (await db.stats())["keyspaces"] == 2 and (await db.verify())["problems"] == []
            await db.checkpoint(path.parent / "copy")
            assert await db.drop_keyspace("groups")
            await db.clear()
        with pytest.raises(alluvium_db.ClosedError):
            db._keyspace.get(b"a")
        (path.parent / "file").write_text("no database")
        with pytest.raises(alluvium_db.NotADatabaseError):
            await aio.open(path.parent)

    asyncio.run(main())


def test_the_event_loop_does_not_wait(path):
    async def main():
        async with await aio.open(path) as db:
            ticks = 0

            async def tick():
                nonlocal ticks
                while True:
                    ticks += 1
                    await asyncio.sleep(0.001)

            ticking = asyncio.create_task(tick())
            for _ in range(5):
                await db._run(time.sleep, 0.02)
            ticking.cancel()
            assert ticks > 20

    asyncio.run(main())
