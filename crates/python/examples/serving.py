"""What the examples of bulk builds share: items that can be checked, a server, and gets that check each answer.

The item of a number has the MD5 of its decimal digits as key, 16 bytes, and a value of 100 bytes with the version that
wrote it, the number and hashes of it. So each item that is read can be checked by itself.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import os
import pathlib
import random
import secrets
import shutil
import socket
import struct
import subprocess
import threading
import time

import alluvium_db
import pyarrow as pa
from alluvium_db import bulk

#: Keys in one request.
BATCH = 500

started = time.perf_counter()


def say(text):
    """Prints what happens, with the seconds since the start."""
    print(f"{time.perf_counter() - started:8.1f} s  {text}", flush=True)


def key(number):
    """The key of an item."""
    return hashlib.md5(b"%d" % number).digest()


def value(number, version):
    """The value of an item in a version."""
    digits = b"%d" % number
    hashes = hashlib.sha512(digits).digest() + hashlib.sha256(digits).digest()[:24]
    return b"v%03d" % version + struct.pack(">Q", number) + hashes


def items(numbers, version):
    """A table of items."""
    columns = {"key": [key(number) for number in numbers], "value": [value(number, version) for number in numbers]}
    return pa.table(columns, pa.schema([("key", pa.binary()), ("value", pa.binary())]))


class Client:
    """A connection to a server, in its protocol."""

    def __init__(self, port):
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._replies = self._socket.makefile("rb", 1 << 20)

    def ask(self, *words):
        """The reply to a command."""
        parts = [b"*%d\r\n" % len(words)]
        for word in words:
            word = word if isinstance(word, bytes) else str(word).encode()
            parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
        self._socket.sendall(b"".join(parts))
        return self._reply()

    def _reply(self):
        line = self._replies.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"*":
            return [self._reply() for _ in range(int(rest))]
        if kind == b"$":
            length = int(rest)
            return None if length < 0 else self._replies.read(length + 2)[:-2]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        return int(rest) if kind == b":" else rest


class Server:
    """``alluvium serve --versions ROOT`` at a free port of the loopback interface."""

    def __init__(self, program, root):
        command = [program, "serve", "--versions", root, "--port", "0"]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        line = self._process.stderr.readline()
        # So that the server never waits for the pipe.
        threading.Thread(target=self._process.stderr.read, daemon=True).start()
        address = line.rsplit("address=", 1)[-1] if "address=" in line else line
        self.port = int(address.split()[0].rsplit(":", 1)[-1])

    def close(self):
        """Ends the server in order."""
        self._process.terminate()
        self._process.wait(30)


class Gets(threading.Thread):
    """Gets of random items that check each answer until they are stopped."""

    def __init__(self, port, rows):
        super().__init__(daemon=True)
        self._client = Client(port)
        self._rows = rows
        self._stops = threading.Event()
        #: Number of right answers by version.
        self.right = collections.Counter()
        #: Number of requests whose answers were of more than one version.
        self.mixed = 0
        #: Wrong answers.
        self.wrong = 0
        #: Seconds of the slowest request.
        self.slowest = 0.0

    def run(self):
        """Asks until it is stopped."""
        while not self._stops.is_set():
            numbers = [random.randrange(self._rows) for _ in range(100)]
            start = time.perf_counter()
            answers = self._client.ask("MGET", *map(key, numbers))
            self.slowest = max(self.slowest, time.perf_counter() - start)
            seen = {version_of(number, answer) for number, answer in zip(numbers, answers, strict=True)}
            self.wrong += None in seen
            self.mixed += len(seen) > 1
            self.right[min(seen - {None}, default=0)] += len(numbers)
            self._stops.wait(0.01)

    def stop(self):
        """Stops, and waits until it has stopped."""
        self._stops.set()
        self.join()


def version_of(number, answer):
    """The version of a right answer; None for a wrong one."""
    if answer is None or not answer[1:4].isdigit():
        return None
    version = int(answer[1:4])
    return version if answer == value(number, version) else None


def numbers_of(rows, count):
    """``count`` of the numbers below ``rows``, all over their range."""
    return range(0, rows, max(1, rows // count))


def wrong_gets(port, rows, count, version):
    """Asks a server for items of a version; returns how many it asked for, and how many answers are wrong."""
    client, wrong, numbers = Client(port), 0, numbers_of(rows, count)
    for start in range(0, len(numbers), BATCH):
        part = numbers[start : start + BATCH]
        answers = client.ask("MGET", *map(key, part))
        wrong += sum(version_of(number, answer) != version for number, answer in zip(part, answers, strict=True))
    return len(numbers), wrong


def wrong_routed(path, job, rows, count, version):
    """Looks each item up in the shard that the job says, and in no other; returns how many, and how many are wrong."""
    shards = [alluvium_db.open(shard, read_only=True) for shard in alluvium_db.build_shards(path)]
    wrong, numbers = 0, numbers_of(rows, count)
    for start in range(0, len(numbers), 100_000):
        part = numbers[start : start + 100_000]
        routed = collections.defaultdict(list)
        for number, shard in zip(part, job.shards_of([key(number) for number in part]), strict=True):
            routed[shard].append(number)
        for shard, asked in routed.items():
            answers = shards[shard].get_many([key(number) for number in asked])
            wrong += sum(version_of(number, answer) != version for number, answer in zip(asked, answers, strict=True))
    for shard in shards:
        shard.close()
    return len(numbers), wrong


def wrong_items(path, job, version):
    """Reads all items; returns how many there are, and how many are wrong or in a wrong shard."""
    count, wrong = 0, 0
    for number, shard in enumerate(alluvium_db.build_shards(path)):
        for batch in bulk.scan_shard(shard):
            keys, values = batch.column("key"), batch.column("value").to_pylist()
            wrong += sum(found != number for found in job.shards_of_arrow(keys).to_pylist())
            for found, text in zip(keys.to_pylist(), values, strict=True):
                of = struct.unpack_from(">Q", text, 4)[0]
                wrong += found != key(of) or text != value(of, version)
            count += len(values)
    return count, wrong


class Show:
    """Two builds by a job runner, the second under a running server that swaps it in; what is wrong is collected."""

    def __init__(self, title):
        parser = argparse.ArgumentParser(description=title)
        parser.add_argument("--rows", type=int, default=10_000_000)
        parser.add_argument("--shards", type=int, default=8)
        parser.add_argument("--gets", type=int, default=1_000_000, help="gets that are checked after each step")
        parser.add_argument("--dir", default=".", help="where the directory of the versions is made")
        parser.add_argument("--keep", action="store_true", help="keep the versions")
        parser.add_argument("--alluvium", default="alluvium", help="the command that serves")
        self.options = parser.parse_args()
        self.root = os.path.abspath(os.path.join(self.options.dir, f"versions-{os.getpid()}"))
        self.hash_key = secrets.token_hex(16)
        #: What went wrong.
        self.problems = []
        #: Bytes of the files of a version.
        self.file_bytes = 0

    def check(self, holds, text):
        """Notes a fact that does not hold."""
        say(text if holds else f"WRONG: {text}")
        if not holds:
            self.problems.append(text)

    def _build(self, build, version):
        start = time.perf_counter()
        build(version)
        seconds = time.perf_counter() - start
        path = pathlib.Path(self.root, f"{version:04}")
        rows, shards = self.options.rows, self.options.shards
        found = alluvium_db.versions(self.root)[-1]
        self.check(found["number"] == version and found["items"] == rows, f"version {version} has {rows} items")
        self.file_bytes = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        directories = [name for name in os.listdir(path) if name.startswith("shard-")]
        left = [name for name in os.listdir(self.root) if not name.isdigit()]
        self.check(len(directories) == shards and not left, f"{shards} directories, nothing else is left")
        rate = rows / seconds
        say(f"version {version}: {seconds:.1f} s, {rate:,.0f} rows/s, {self.file_bytes:,} bytes of files")
        return path

    def _served(self, client, command, version, port):
        start = time.perf_counter()
        client.ask("ALLUVIUM.VERSION", *command)
        milliseconds = (time.perf_counter() - start) * 1000
        asked, wrong = wrong_gets(port, self.options.rows, self.options.gets, version)
        text = f"{' '.join(map(str, command))} took {milliseconds:.1f} ms; {asked:,} gets of version {version}"
        self.check(wrong == 0, f"{text}, {wrong} wrong")

    def run(self, build, read=None):
        """Builds two versions by ``build(version)`` and serves them. ``read()`` checks a reader. Returns a status."""
        rows, gets = self.options.rows, self.options.gets
        try:
            self._build(build, 1)
            server = Server(self.options.alluvium, self.root)
            try:
                asked, wrong = wrong_gets(server.port, rows, gets, 1)
                self.check(wrong == 0, f"served: {asked:,} gets of version 1, {wrong} wrong")
                running = Gets(server.port, rows)
                running.start()
                path = self._build(build, 2)
                client = Client(server.port)
                self._served(client, ("SWAP",), 2, server.port)
                self._served(client, ("ROLLBACK",), 1, server.port)
                self._served(client, ("SWAP", 2), 2, server.port)
                running.stop()
                right = ", ".join(f"{count:,} of version {version}" for version, count in sorted(running.right.items()))
                self.check(running.wrong == 0, f"meanwhile gets of random items: {right}, {running.wrong} wrong")
                self.check(running.mixed == 0, f"{running.mixed} requests saw two versions")
                say(f"the slowest of these requests of 100 keys took {running.slowest * 1000:.1f} ms")
            finally:
                server.close()
            job = alluvium_db.BuildJob("check", self.hash_key, self.options.shards)
            asked, wrong = wrong_routed(path, job, rows, gets, 2)
            self.check(wrong == 0, f"{asked:,} gets, each in the shard of its key, {wrong} wrong")
            count, wrong = wrong_items(path, job, 2)
            self.check((count, wrong) == (rows, 0), f"all {count:,} items read, {wrong} wrong")
            if read is not None:
                read()
            self._adopt(path)
        finally:
            if not self.options.keep:
                shutil.rmtree(self.root, ignore_errors=True)
        print("verdict: " + ("; ".join(self.problems) if self.problems else "all right"), flush=True)
        return 1 if self.problems else 0

    def _adopt(self, path):
        start = time.perf_counter()
        adopted = os.path.join(self.root, "adopted")
        alluvium_db.adopt(path, adopted, verify=False)
        milliseconds = (time.perf_counter() - start) * 1000
        with alluvium_db.open(adopted, durability="buffered") as db:
            found = version_of(7, db[key(7)])
            db[key(7)] = b"new"
            self.check(found == 2 and db[key(7)] == b"new", f"adopted in {milliseconds:.1f} ms, and takes writes")
