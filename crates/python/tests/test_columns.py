"""Columns of Arrow and arrays of numpy."""

import pytest

import alluvium_db

np = pytest.importorskip("numpy")


def test_arrays_of_numpy(db):
    keys = np.arange(5000, dtype="<u8")
    vectors = np.random.default_rng(1).random((5000, 8), dtype=np.float32)
    db.put_fixed(keys, vectors)
    wanted = np.array([7, 4999, 5000, 0], dtype="<u8")
    found, present = db.get_fixed(wanted, ("float32", 8))
    assert present.tolist() == [True, True, False, True]
    assert np.array_equal(found[[0, 1, 3]], vectors[[7, 4999, 0]]) and not found[2].any()
    found[0, 0] = 1
    assert db[np.uint64(7).tobytes()] == vectors[7].tobytes()
    pair = np.dtype([("a", "<i4"), ("b", "<f8")])
    db.put_fixed(np.array([[1, 2], [3, 4]], dtype=np.uint8), np.array([(1, 2.5), (3, 4.5)], dtype=pair), ttl=100)
    found, present = db.get_fixed(np.array([[3, 4]], dtype=np.uint8), pair)
    assert present.all() and found["b"][0] == 4.5
    strided = np.arange(20, dtype="<u8")[::2]
    db.put_fixed(strided, strided)
    assert db.get_fixed(strided, "<u8")[0].tolist() == strided.tolist()
    empty, present = db.get_fixed(np.empty(0, dtype="<u8"), "<u8")
    assert len(empty) == len(present) == 0
    db.put_fixed(np.empty(0, dtype="<u8"), np.empty(0, dtype="<u8"))


def test_wrong_arrays(db):
    with pytest.raises(ValueError, match="2 keys, but 1 values"):
        db.put_fixed(np.zeros(2), np.zeros(1))
    with pytest.raises(TypeError):
        db.put_fixed(np.zeros(1), np.array([object()]))
    db[b"k"] = b"xyz"
    with pytest.raises(ValueError, match="has 3 bytes instead of 4"):
        db.get_fixed(np.frombuffer(b"k", dtype=np.uint8), "<u4")
    data = b"abcdef"
    for column in (
        (data, 4, 0, 2),
        (data, 3, 1, 2),
        (data, 2**62, 4, 4),
        (data, (bytes([0, 0, 0, 0, 9, 0, 0, 0]), 4), 0, 1),
        (data, (bytes([3, 0, 0, 0, 1, 0, 0, 0]), 4), 0, 1),
        (data, (bytes([0, 0, 0, 0x80, 1, 0, 0, 0]), 4), 0, 1),
        (data, (bytes(8), 4), 0, 2),
        (data, (bytes(8), 3), 0, 1),
    ):
        with pytest.raises(ValueError, match="outside its data"):
            db._get_columns(column)


def test_columns_of_arrow(db):
    pa = pytest.importorskip("pyarrow")
    keys = pa.array([b"%d" % n for n in range(1000)])
    values = pa.array(["value %d" % n for n in range(1000)])
    db.put_arrow(keys, values)
    assert db[b"17"] == b"value 17"
    found = db.get_arrow(pa.array(["5", "x", "999"]))
    assert found.type == pa.large_binary() and found.to_pylist() == [b"value 5", None, b"value 999"]
    found.validate(full=True)
    # Slices, chunks, wide offsets, fixed widths, dictionaries, lists and views.
    db.put_arrow(keys[10:20], values.cast(pa.large_string())[500:510])
    assert db[b"12"] == b"value 502"
    chunked = pa.chunked_array([keys[:3], keys[7:9]])
    assert db.get_arrow(chunked).to_pylist() == [db[b"%d" % n] for n in (0, 1, 2, 7, 8)]
    fixed = pa.array([b"aa", b"bb", b"cc"], pa.binary(2))
    db.put_arrow(fixed[1:], fixed[:2])
    assert db.get_arrow(fixed).to_pylist() == [None, b"aa", b"bb"]
    db.put_arrow(pa.array(["d", "e", "d"]).dictionary_encode(), ["1", "2", "3"])
    assert db.get_arrow(["d", "e"]).to_pylist() == [b"3", b"2"]
    assert db.get_arrow(pa.array([b"d"]).cast(pa.binary_view())).to_pylist() == [b"3"]
    assert db.get_arrow([]).to_pylist() == [] and db.get_arrow(pa.chunked_array([], pa.binary())).to_pylist() == []
    with db.snapshot() as snapshot:
        assert snapshot.keyspace().get_arrow(["d"]).to_pylist() == [b"3"]
    with db.ingest() as load:
        load.put_arrow(["i"], ["1"])
        load.put_fixed(np.array([1], dtype="u1"), np.array([2], dtype="u1"))
    assert db.get_many([b"i", b"\x01"]) == [b"1", b"\x02"]


def test_wrong_columns(db):
    pa = pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match="must not be null"):
        db.put_arrow(pa.array([b"a", None]), pa.array([b"1", b"2"]))
    with pytest.raises(ValueError, match="must not be null"):
        db.put_arrow([None], [b"1"])
    with pytest.raises(TypeError, match="int64"):
        db.put_arrow(pa.array([1]), pa.array([b"1"]))
    with pytest.raises(alluvium_db.TooLargeError):
        db.put_arrow([b"k" * 70_000], [b"1"])
