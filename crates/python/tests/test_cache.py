"""Caches in memory and in files."""

import time

import pytest

import alluvium_db
from alluvium_db import Cache


@pytest.mark.parametrize("options", [{}, {"compress": "lz4"}, {"compress": "zstd"}])
def test_a_cache(options):
    cache = Cache(16 << 20, **options)
    cache[b"a"] = b"1"
    cache.set("b", "2", flags=7, ttl=100)
    assert cache[b"a"] == b"1" and cache.get("b") == b"2" and cache.get(b"c", 7) == 7
    value, flags, left = cache.get_with_metadata(b"b")
    assert (value, flags) == (b"2", 7) and 90 < left <= 100
    assert cache.get_many([b"a", b"x", b"b"]) == [b"1", None, b"2"]
    assert not cache.add(b"a", b"3") and cache.add(b"c", b"3")
    assert cache.replace(b"c", b"4") and not cache.replace(b"d", b"4")
    assert cache.compare_and_swap(b"c", b"4", b"5") and not cache.compare_and_swap(b"c", b"4", b"6")
    assert cache.increment(b"n") == 1 and cache.increment(b"n", 41) == 42 and cache[b"n"] == b"42"
    assert cache.increment(b"absent", 1, None) is None
    with pytest.raises(ValueError):
        cache.increment(b"e", cache.set(b"e", b"text") or 1)
    assert cache.touch(b"a", 0.05) and not cache.touch(b"absent", 1)
    time.sleep(0.1)
    assert b"a" not in cache and b"b" in cache
    assert cache.delete(b"b") and not cache.delete(b"b")
    with pytest.raises(KeyError):
        cache[b"b"]
    with pytest.raises(KeyError):
        del cache[b"b"]
    cache.set_many({b"%d" % n: b"%d" % n for n in range(1000)})
    cache.set_many([(b"t", b"1")], ttl=0.05)
    assert dict(cache.items())[b"999"] == b"999" and len(cache) >= 1000
    stats = cache.stats()
    assert stats["hits"] > 0 and stats["memory_bytes"] <= 16 << 20
    cache.clear()
    assert cache.get(b"999") is None and cache
    with pytest.raises(alluvium_db.TooLargeError):
        cache.set(b"large", bytes(20 << 20))


def test_a_cache_forgets_when_it_is_full_and_keeps_its_size():
    cache = Cache(8 << 20, item_bytes=116)
    for start in range(0, 200_000, 1000):
        cache.set_many([(b"%16d" % n, bytes(100)) for n in range(start, start + 1000)])
    assert 30_000 < len(cache) < 80_000
    assert cache.stats()["memory_bytes"] <= 8 << 20


@pytest.mark.parametrize("compress", [None, "lz4"])
def test_a_cache_that_survives(tmp_path, compress):
    settings = {"memory_bytes": 8 << 20, "survive": tmp_path / "cache", "compress": compress}
    cache = Cache(**settings)
    assert cache.stats()["opened"] == "new"
    cache.set_many({b"%d" % n: b"%d" % n for n in range(1000)})
    cache.sync()
    with pytest.raises(alluvium_db.LockedError):
        Cache(**settings)
    del cache
    cache = Cache(**settings)
    assert cache.stats()["opened"] == "complete"
    assert cache.get_many([b"5", b"x", b"999"]) == [b"5", None, b"999"]
    del cache
    with pytest.raises(alluvium_db.SettingsError):
        Cache(16 << 20, survive=tmp_path / "cache")
    (tmp_path / "other").write_bytes(bytes(10_000))
    with pytest.raises(alluvium_db.CorruptionError):
        Cache(8 << 20, survive=tmp_path / "other")
    assert len(Cache(8 << 20, survive=tmp_path / "other", reset=True)) == 0


def test_wrong_settings():
    for wrong in ({"memory_bytes": 1}, {"compress": "zip"}, {"survive": "x", "survive_loss": "fire"}):
        with pytest.raises(alluvium_db.SettingsError):
            Cache(**wrong)
