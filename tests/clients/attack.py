#!/usr/bin/env python3
"""Attacks `alluvium serve --memory` with clients that take memory, and watches what that costs.

    attack.py PROGRAM [--mode dir|cache] [--memory-mib 256] [--cache-mib 96] [--idle 10000] [--only NAME,...]

For each attack it prints the peak of the process's resident bytes and the latency of an honest client, which reads a
small value again and again from a process of its own. It ends with a verdict: resident bytes under the limit
throughout, and the honest client answered each time. Python's standard library suffices.
"""

import argparse
import json
import multiprocessing
import os
import random
import re
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time

MIB = 1 << 20
VALUE = b"v" * 100


def request(*words):
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


class Server:
    def __init__(self, program, mode, memory, cache, directory):
        store = ["--dir", os.path.join(directory, "data")] if mode == "dir" else ["--cache", f"{cache}MiB"]
        command = [program, "serve", *store, "--memory", f"{memory}MiB", "--port", "0", "--workers", "2"]
        command += ["--log", "json"]
        print("$", " ".join(command), flush=True)
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.address = None
        for line in self.process.stderr:
            print(" ", line.rstrip(), flush=True)
            logged = json.loads(line)
            if logged["message"] == "serving":
                host, port = logged["address"].rsplit(":", 1)
                self.address = (host, int(port))
                break
        if self.address is None:
            raise SystemExit("the server did not start")
        threading.Thread(target=self.drain, daemon=True).start()

    def drain(self):
        for line in self.process.stderr:
            print("  server:", line.rstrip(), flush=True)

    def status(self, name):
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) << 10 for line in status if line.startswith(name))

    def reset_peak(self):
        with open(f"/proc/{self.process.pid}/clear_refs", "w") as references:
            references.write("5")

    def connect(self, timeout=20):
        client = socket.create_connection(self.address, timeout=timeout)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return client

    def ask(self, *words, timeout=60):
        """The first line of the reply."""
        with self.connect(timeout) as client:
            client.sendall(request(*words))
            return client.makefile("rb").readline().rstrip()

    def info(self, *names):
        with self.connect() as client:
            client.sendall(request("INFO"))
            reader = client.makefile("rb")
            text = reader.read(int(reader.readline()[1:])).decode()
        return [int(re.search(rf"{name}:(\d+)", text)[1]) for name in names]


def honest(address, stop, results):
    """Reads a small value again and again; a new connection if the old one was closed, which counts as an error."""
    latencies, errors, client = [], 0, None
    expected = b"$%d\r\n%s\r\n" % (len(VALUE), VALUE)
    while not stop.is_set():
        begun = time.perf_counter()
        try:
            if client is None:
                client = socket.create_connection(address, timeout=10)
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.sendall(request("GET", "small"))
            got = b""
            while len(got) < len(expected):
                received = client.recv(1 << 16)
                if not received:
                    raise OSError("closed")
                got += received
            errors += got != expected
        except OSError:
            errors += 1
            client = None
        latencies.append(time.perf_counter() - begun)
        time.sleep(0.001)
    results.put((sorted(latencies), errors))


def flood(client, data, seconds):
    """Sends until the peer takes no more for a while, or time is over. Returns the number of bytes sent."""
    client.settimeout(0.5)
    sent, end = 0, time.monotonic() + seconds
    view = memoryview(data)
    while time.monotonic() < end:
        try:
            sent += client.send(view[sent % len(data):])
        except (TimeoutError, OSError) as error:
            if not isinstance(error, TimeoutError):
                break
    return sent


class Attacks:
    def __init__(self, server, arguments):
        self.server = server
        self.mode = arguments.mode
        self.idle = arguments.idle
        self.clients = []
        self.notes = []

    def connect(self, count):
        clients = []
        for _ in range(count):
            try:
                clients.append(self.server.connect())
            except OSError:
                break
        self.clients += clients
        return clients

    def close(self):
        for client in self.clients:
            client.close()
        self.clients = []
        end = time.monotonic() + 20
        while self.server.info("connected_clients")[0] > 3 and time.monotonic() < end:
            time.sleep(0.1)

    def together(self, clients, work):
        threads = [threading.Thread(target=work, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def send_all(self, clients, data):
        for client in clients:
            try:
                client.sendall(data)
            except OSError:
                pass

    def nothing(self):
        time.sleep(3)

    def idle_clients(self):
        clients = self.connect(self.idle)
        self.notes.append(f"{len(clients)} connections")
        time.sleep(3)

    def slow_readers(self):
        """Each asks for 64 MiB by pipelined gets, and reads 4 KiB a second."""
        clients = self.connect(20)
        self.send_all(clients, b"".join(request("GET", f"big{number % 16}") for number in range(64)))
        for _ in range(5):
            time.sleep(1)
            for client in clients:
                client.recv(4096)

    def slow_readers_at_once(self):
        """The same by one MGET each."""
        clients = self.connect(20)
        self.send_all(clients, request("MGET", *(f"big{number % 16}" for number in range(64))))
        time.sleep(5)

    def slow_memcached_readers(self):
        clients = self.connect(20)
        self.send_all(clients, b"".join(b"get big%d\r\n" % (number % 16) for number in range(64)))
        time.sleep(5)

    def readers_of_one_long_value(self):
        clients = self.connect(20)
        self.send_all(clients, request("GET", "huge") * 4)
        time.sleep(5)

    def send_for_a_while(self, clients, data):
        """Send all at once, until the server has taken nothing for two seconds."""

        def send(client):
            client.settimeout(2)
            try:
                client.sendall(data)
            except OSError:
                pass

        self.together(clients, send)

    def half_frames(self):
        """Announce 16 MiB, send most of it, and stay open."""
        clients = self.connect(50)
        data = b"*3\r\n$3\r\nSET\r\n$4\r\nhalf\r\n$%d\r\n" % (16 * MIB) + b"x" * (15 * MIB)
        self.send_for_a_while(clients, data)
        time.sleep(2)

    def small_half_frames(self):
        clients = self.connect(min(4000, self.idle))
        self.send_all(clients, b"*3\r\n$3\r\nSET\r\n$4\r\nhalf\r\n$100000\r\n" + b"x" * 30000)
        self.notes.append(f"{len(clients)} connections")
        time.sleep(3)

    def floods(self):
        """Pipelined gets of 10 KB without an end, and no reading."""
        data = request("GET", "medium") * 10000
        self.together(self.connect(30), lambda client: flood(client, data, 5))

    def long_mset(self):
        """Requests with a million arguments, from four clients at once."""
        words = ["MSET"]
        for number in range(500_000):
            words += [f"m{number}", number]
        self.stored(request(*words))

    def shorter_mset(self):
        """The same with 100,000 arguments."""
        words = ["MSET"]
        for number in range(50_000):
            words += [f"m{number}", number]
        self.stored(request(*words))

    def stored(self, data):
        replies = []

        def send(client):
            client.settimeout(120)
            try:
                client.sendall(data)
                replies.append(client.recv(200))
            except OSError as error:
                replies.append(str(error).encode())

        self.together(self.connect(4), send)
        self.notes.append(f"{sum(reply == b'+OK' + bytes([13, 10]) for reply in replies)} of 4 stored")
        self.notes += sorted({reply.decode().strip() for reply in replies if not reply.startswith(b"+OK")})

    def garbage(self):
        random.seed(7)
        clients = self.connect(200)
        for _ in range(20):
            for client in clients:
                head = random.choice([b"", b"*3\r\n$", b"*", b"set a 0 0 ", b"mg ", b"GET "])
                try:
                    client.sendall(head + random.randbytes(random.randrange(1, 20000)))
                except OSError:
                    pass
        time.sleep(1)

    def huge_lengths(self):
        texts = [b"*2\r\n$3\r\nGET\r\n$999999999999\r\n", b"*2147483647\r\n", b"*1048576\r\n$33554432\r\n",
                 b"*2\r\n$3\r\nGET\r\n$67108864\r\n", b"set k 0 0 1000000000000\r\n", b"*1048576\r\n"]
        for text in texts:
            self.send_all(self.connect(50), text)
        time.sleep(2)

    def subscribers(self):
        """Subscribers that read nothing."""
        clients = self.connect(50)
        self.send_all(clients, request("SUBSCRIBE", "news"))
        time.sleep(0.5)
        publisher = self.connect(1)[0]
        message = request("PUBLISH", "news", b"n" * 65536)
        reader = publisher.makefile("rb")
        for _ in range(1000):
            publisher.sendall(message)
            reader.readline()

    def queues(self):
        """Commands between MULTI and EXEC, without the EXEC."""
        clients = self.connect(100)
        data = request("MULTI") + request("SET", "queued", b"q" * 100_000) * 40
        self.send_for_a_while(clients, data)
        time.sleep(2)

    def scripts(self):
        """Scripts that fill their memory, and leave it to the interpreter."""
        source = "local t = {} for i = 1, 1e7 do t[i] = i .. 'x' end return #t"
        self.send_all(self.connect(8), request("EVAL", source, 0))
        time.sleep(3)

    def names(self):
        """Subscriptions with long names."""
        data = b"".join(request("SUBSCRIBE", b"%06d" % number + b"s" * 100_000) for number in range(20))
        self.together(self.connect(100), lambda client: flood(client, data, 2))


def load(server, mode):
    with server.connect() as client:
        reader = client.makefile("rb")

        def store(*words):
            client.sendall(request(*words))
            reply = reader.readline()
            if not reply.startswith((b"+OK", b":")):
                raise SystemExit(f"{words[0]}: {reply!r}")

        store("SET", "small", VALUE)
        store("SET", "medium", b"m" * 10_000)
        for number in range(16):
            store("SET", f"big{number}", bytes([65 + number]) * MIB)
        if mode == "dir":
            # Longer than a request may be under the limit.
            for _ in range(16):
                store("APPEND", "huge", b"h" * (4 * MIB - 64))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--mode", choices=["dir", "cache"], default="dir")
    parser.add_argument("--memory-mib", type=int, default=256)
    parser.add_argument("--cache-mib", type=int, default=96)
    parser.add_argument("--idle", type=int, default=10000)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # The server inherits the limit, and half of it is for its store.
    wanted = arguments.idle * 2 + 2048
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), max(hard, wanted)))
    except (OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if descriptors < wanted:
        arguments.idle = max(0, min(arguments.idle, descriptors // 2 - 100))
        print(f"only {descriptors} descriptors: {arguments.idle} idle clients")
    limit = arguments.memory_mib * MIB
    names = ["nothing", "idle_clients", "slow_readers", "slow_readers_at_once", "slow_memcached_readers",
             "readers_of_one_long_value", "half_frames", "small_half_frames", "floods", "long_mset",
             "shorter_mset", "garbage",
             "huge_lengths", "subscribers", "queues", "scripts", "names"]
    if arguments.mode == "cache":
        names.remove("readers_of_one_long_value")
    if arguments.only:
        names = [name for name in names if name in arguments.only.split(",")]
    failures = []
    with tempfile.TemporaryDirectory() as directory:
        server = Server(arguments.program, arguments.mode, arguments.memory_mib, arguments.cache_mib, directory)
        try:
            load(server, arguments.mode)
            attacks = Attacks(server, arguments)
            print(f"{'attack':28}{'peak MiB':>9}{'after':>8}{'p50 ms':>9}{'p99 ms':>9}{'max':>9}{'gets':>8}"
                  f"{'errors':>7}{'evicted':>8}", flush=True)
            for name in names:
                server.reset_peak()
                evicted = server.info("evicted_clients")[0]
                stop, results = multiprocessing.Event(), multiprocessing.Queue()
                bystander = multiprocessing.Process(target=honest, args=(server.address, stop, results))
                bystander.start()
                attacks.notes = []
                getattr(attacks, name)()
                stop.set()
                latencies, errors = results.get()
                bystander.join()
                peak = server.status("VmHWM")
                attacks.close()
                evicted = server.info("evicted_clients")[0] - evicted
                ms = [1000 * latencies[int(share * (len(latencies) - 1))] for share in (0.5, 0.99, 1)]
                after = server.status("VmRSS")
                print(f"{name:28}{peak / MIB:9.1f}{after / MIB:8.1f}{ms[0]:9.2f}{ms[1]:9.2f}{ms[2]:9.1f}"
                      f"{len(latencies):8}{errors:7}{evicted:8}  {'; '.join(attacks.notes)}", flush=True)
                if peak > limit:
                    failures.append(f"{name}: {peak / MIB:.1f} MiB")
                if errors:
                    failures.append(f"{name}: {errors} errors of the honest client")
        finally:
            server.process.terminate()
            if server.process.wait(30) != 0:
                failures.append(f"the server ended with {server.process.returncode}")
    print("PASS" if not failures else "FAIL: " + "; ".join(failures))
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
