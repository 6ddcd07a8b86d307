"""A database and its keyspaces as mappings, compared with dict."""

import collections.abc
import random

import pytest

import alluvium_db


def test_open_put_get_iterate(path):
    with alluvium_db.open(path) as db:
        db[b"a"] = b"1"
        db["b"] = "2"
        assert db[b"a"] == b"1"
        assert db.get("b") == b"2"
        assert db.get(b"c") is None
        assert db.get(b"c", 7) == 7
        assert sorted(db) == [b"a", b"b"]
        assert dict(db.items()) == {b"a": b"1", b"b": b"2"}
        assert "a" in db and b"c" not in db
    with alluvium_db.open(path, create=False) as db:
        assert sorted(db.values()) == [b"1", b"2"]


def test_random_operations_are_those_of_a_dict(path):
    random.seed(20261128)
    model = {}
    db = alluvium_db.open(path, durability="buffered")
    keys = [bytes([n]) * random.randrange(4) + bytes([n]) for n in range(60)]
    for step in range(6000):
        key = random.choice(keys)
        value = random.randbytes(random.choice([0, 1, 100, 5000]) if step % 20 == 0 else random.randrange(30))
        match random.randrange(14):
            case 0 | 1 | 2:
                db[key] = value
                model[key] = value
            case 3:
                assert db.get(key) == model.get(key)
            case 4:
                assert db.pop(key, None) == model.pop(key, None)
            case 5:
                if key in model:
                    del db[key], model[key]
                else:
                    with pytest.raises(KeyError):
                        del db[key]
            case 6:
                assert db.setdefault(key, value) == model.setdefault(key, value)
            case 7:
                assert (key in db) == (key in model)
            case 8:
                some = {random.choice(keys): random.randbytes(5) for _ in range(10)}
                db.put_many(some, atomic=bool(step % 2))
                model.update(some)
            case 9:
                some = random.sample(keys, 8)
                assert db.get_many(some) == [model.get(key) for key in some]
                assert db.contains_many(some) == [key in model for key in some]
            case 10:
                some = random.sample(keys, 3)
                db.delete_many(some, atomic=bool(step % 2))
                for key in some:
                    model.pop(key, None)
            case 11:
                assert db.append(key, b"+") == len(model.get(key, b"")) + 1
                model[key] = model.get(key, b"") + b"+"
            case 12:
                if step % 9 == 0:
                    assert db == model and len(db) == len(model)
                    assert db.keys() == model.keys() and db.items() == model.items()
            case 13:
                if step % 50 == 0:
                    db.flush()
                if step % 200 == 0:
                    db.close()
                    db = alluvium_db.open(path, durability="buffered")
    assert db == model
    while model:
        key, value = db.popitem()
        assert model.pop(key) == value
    assert not db and len(db) == 0
    with pytest.raises(KeyError):
        db.popitem()
    db.close()


def test_it_is_a_mutable_mapping(db):
    assert isinstance(db, collections.abc.MutableMapping)
    assert isinstance(db, alluvium_db.Keyspace)
    db.update({b"a": b"1"}, b="2")
    db.update([(b"c", b"3")])
    assert db == {b"a": b"1", b"b": b"2", b"c": b"3"}
    assert db != {b"a": b"1"} and db != 7
    assert b"1" in db.values() and (b"a", b"1") in db.items()
    assert db.keys() & {b"a", b"x"} == {b"a"}
    db.clear()
    assert not db
    with pytest.raises(KeyError) as raised:
        db[b"absent"]
    assert raised.value.args == (b"absent",)
    with pytest.raises(TypeError):
        hash(db)


def test_keys_and_values_are_any_bytes(db):
    db[bytearray(b"key")] = memoryview(b"xvaluex")[1:-1]
    assert db["key"] == b"value"
    db["schlüssel"] = "wert"
    assert db["schlüssel".encode()] == b"wert"
    db[b""] = b""
    assert db[b""] == b""
    for wrong in (7, None, 1.5, ["a"]):
        with pytest.raises(TypeError):
            db[wrong]
        with pytest.raises(TypeError):
            db[b"a"] = wrong
    with pytest.raises(UnicodeEncodeError):
        db["\ud800"]
    with pytest.raises(TypeError):
        db.get_many(b"abc")
    with pytest.raises(TypeError):
        db.get_many("abc")


def test_many_items_are_iterated_once(db):
    items = {b"%d" % n: b"%d" % (n * n) for n in range(20_000)}
    db.put_many(items)
    db.flush()
    assert dict(db.items()) == items
    assert set(db) == items.keys()
    iterator = iter(db)
    next(iterator)
    del iterator
    assert db.approximate_len() >= 20_000


def test_keyspaces(db):
    first, second = db.keyspace("first"), db.keyspace("second")
    first[b"a"], second[b"a"] = b"1", b"2"
    assert db.keyspaces() == ["first", "second"]
    assert first[b"a"] == b"1" and first.name == "first" and first.order == "hashed"
    assert db.drop_keyspace("first") and not db.drop_keyspace("first")
    with pytest.raises(alluvium_db.KeyspaceError) as raised:
        first[b"a"]
    assert raised.value.keyspace == "first"
    assert db.keyspace("first").get(b"a") is None


def test_groups(db):
    files = db.keyspace("files", delimiter=b"/", listed_prefixes=True)
    files.put_many({b"photos/a": b"1", b"photos/b": b"2", b"music/c": b"3"})
    assert dict(files.scan_prefix("photos")) == {b"photos/a": b"1", b"photos/b": b"2"}
    assert list(files.prefixes()) == [b"music", b"photos"]
    assert list(files.prefixes(b"n")) == [b"photos"]
    files.delete_prefix(b"photos")
    assert dict(files.items()) == {b"music/c": b"3"}
    assert db.keyspace("files").order == "delimiter '/'"
    with pytest.raises(alluvium_db.KeyspaceError):
        db.keyspace("files", prefix_bytes=3)
    with pytest.raises(alluvium_db.KeyspaceError):
        db.scan_prefix(b"photos")
    fixed = db.keyspace("fixed", prefix_bytes=2)
    with pytest.raises(alluvium_db.KeyWithoutPrefixError):
        fixed[b"a"] = b"1"
