"""Each example does what its first line says, on data whose answers are known."""

import http.server
import importlib.util
import json
import os
import pathlib
import random
import subprocess
import sys
import threading
import urllib.request

import pytest

import alluvium_db

EXAMPLES = pathlib.Path(__file__).parent.parent / "examples"
pytestmark = pytest.mark.skipif(not EXAMPLES.exists(), reason="only in the repository")


def _example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _run(name, *arguments, directory):
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *map(str, arguments)]
    return subprocess.run(command, cwd=directory, check=True, capture_output=True, text=True).stdout


def _text(seed, words=400):
    random_words = random.Random(seed)
    return " ".join(f"word{random_words.randrange(5000)}" for _ in range(words))


def test_near_duplicates_are_found_and_others_are_not(db):
    pytest.importorskip("numpy")
    example = _example("near_duplicates")
    index = example.NearDuplicates(db)
    index.add({f"text-{seed}": _text(seed) for seed in range(50)})
    words = _text(7).split()
    words[200] = "changed"
    (similarity, name), *others = index.similar(" ".join(words))
    assert name == "text-7" and 0.9 < similarity <= 1 and not others
    assert index.similar(_text(1000)) == []
    assert index.similar(_text(3))[0] == (1.0, "text-3")


def test_near_duplicates_as_a_program(tmp_path):
    pytest.importorskip("numpy")
    texts = tmp_path / "texts"
    texts.mkdir()
    for name, seed in [("a", 1), ("b", 2), ("c", 1)]:
        (texts / name).write_text(_text(seed))
    out = _run("near_duplicates", "texts", directory=tmp_path)
    assert out == "1.00  texts/c  texts/a\n3 texts\n"


def test_features_as_a_program(tmp_path):
    pytest.importorskip("numpy")
    for _ in range(2):  # the second time they are stored already
        out = _run("features", "--entities", 20_000, "--batches", 5, "--rows", 1000, directory=tmp_path)
        assert out.startswith("5000 rows looked up and checked")


def test_files_with_the_same_contents(tmp_path):
    tree = tmp_path / "tree"
    (tree / "below").mkdir(parents=True)
    (tree / "a").write_bytes(b"one" * 1000)
    (tree / "below" / "b").write_bytes(b"one" * 1000)
    (tree / "c").write_bytes(b"two")
    out = _run("deduplicate_files", "tree", directory=tmp_path)
    assert out.endswith("3 files, 1 are as an earlier one: 3000 bytes\n")
    # What was changed is read again; what it was the first of, is found elsewhere.
    (tree / "c").write_bytes(b"one" * 1000)
    assert "2 are as an earlier one" in _run("deduplicate_files", "tree", directory=tmp_path)
    # Another tree has the contents of this one.
    other = tmp_path / "other"
    other.mkdir()
    (other / "d").write_bytes(b"one" * 1000)
    assert "1 files, 1 are as an earlier one" in _run("deduplicate_files", "other", directory=tmp_path)


def test_frames_of_pandas_and_polars(tmp_path):
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    assert "2748109" in _run("frames", directory=tmp_path)


class _Origin(http.server.BaseHTTPRequestHandler):
    asked = 0

    def do_GET(self):
        type(self).asked += 1
        found = self.path != "/absent"
        body = f"{self.path} {self.asked}".encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store" if self.path == "/private" else "max-age=60")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments):
        pass


def _serve(server):
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def test_the_web_cache_answers_from_memory_and_after_a_restart(tmp_path):
    example = _example("web_cache")
    origin = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Origin)
    file = os.fspath(tmp_path / "cache")
    proxy = example.Proxy(_serve(origin), survive=file)
    address = _serve(proxy)

    def get(path):
        with urllib.request.urlopen(address + path) as response:
            return response.read(), response.headers["X-Cache"]

    assert get("/page") == (b"/page 1", "miss")
    assert get("/page") == (b"/page 1", "hit")
    assert get("/private")[1] == get("/private")[1] == "miss"
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get("/absent")
    assert json.loads(get("/.cache")[0])
    proxy.shutdown()
    proxy.server_close()
    del proxy.cache

    proxy = example.Proxy("http://127.0.0.1:1", survive=file)
    address = _serve(proxy)
    assert get("/page") == (b"/page 1", "hit")
    with pytest.raises(urllib.error.HTTPError, match="502"):
        get("/other")
    for server in (proxy, origin):
        server.shutdown()
        server.server_close()


def test_the_index_of_datasketch(db, path):
    datasketch = pytest.importorskip("datasketch")
    from alluvium_db.datasketch import MinHashLSH

    def sketch(seed, changed=0):
        minhash = datasketch.MinHash(num_perm=64)
        words = _text(seed, 100).split()
        minhash.update_batch([word.encode() for word in words[changed:]] + [b"new%d" % n for n in range(changed)])
        return minhash

    sketches = {b"%d" % seed: sketch(seed) for seed in range(60)}
    index, reference = MinHashLSH(db, threshold=0.6, num_perm=64), datasketch.MinHashLSH(threshold=0.6, num_perm=64)
    assert index.is_empty()
    with index.insertion_session() as session:
        for key, minhash in sketches.items():
            session.insert(key, minhash)
            reference.insert(key, minhash)
        with pytest.raises(ValueError, match="exists"):
            session.insert(b"7", sketches[b"7"])

    def same():
        for seed in range(70):
            minhash = sketch(seed, changed=5)
            assert sorted(index.query(minhash)) == sorted(reference.query(minhash))
        counts = [sorted(table.values()) for table in index.get_counts()]
        assert counts == [sorted(table.values()) for table in reference.get_counts()]
        assert sorted(index.keys) == sorted(reference.keys)

    same()
    for key in (b"7", b"8"):
        index.remove(key)
        reference.remove(key)
    assert b"7" not in index and b"9" in index and not index.is_empty()
    same()
    with pytest.raises(TypeError):
        index.insert("text", sketch(100))
    # It is there when the database is opened again, and refuses other parameters.
    db.close()
    with alluvium_db.open(path) as again:
        index = MinHashLSH(again, threshold=0.6, num_perm=64)
        same()
        with pytest.raises(ValueError, match="other parameters"):
            MinHashLSH(again, threshold=0.6, num_perm=32)
        with pytest.raises(ValueError, match="scheme"):
            index.insert(b"other", datasketch.MinHash(num_perm=64, scheme="legacy"))
