"""pymemcache against a server: `pip install pymemcache`, then `python3 memcached.py PORT [PEER_PORT]`.

Runs the same calls against the server and, if its port is given, against memcached, and compares what they return.
"""

import sys
import time

from pymemcache.client.base import Client, PooledClient
from pymemcache.client.hash import HashClient
from pymemcache.client.retrying import RetryingClient
from pymemcache.serde import pickle_serde


def calls(port):
    """The outcomes of the calls, by name."""
    address = ("127.0.0.1", port)
    client = Client(address, serde=pickle_serde, default_noreply=False)
    client.flush_all()
    yield "set", client.set("a", {"b": [1, 2]})
    yield "get", client.get("a")
    yield "default", client.get("absent", "default")
    yield "add", [client.add("a", 1), client.add("b", 1)]
    yield "replace", [client.replace("b", 2), client.replace("absent", 2)]
    value, cas = client.gets("b")
    yield "gets", value
    yield "cas", [client.cas("b", 3, cas), client.cas("b", 4, cas), client.cas("absent", 4, cas)]
    yield "set_many", client.set_many({f"key{number}": str(number) for number in range(300)})
    yield "get_many", client.get_many([f"key{number}" for number in range(0, 600, 2)])
    yield "gets_many", {key: value for key, (value, _) in client.gets_many(["key1", "key2", "c"]).items()}
    yield "delete", [client.delete("key1"), client.delete("key1")]
    yield "delete_many", client.delete_many(["key2", "key3", "absent"])
    plain = Client(address, default_noreply=False)
    yield "number", [plain.set("n", "10"), plain.incr("n", 5), plain.decr("n", 20), plain.incr("absent", 1)]
    yield "append", [plain.append("n", "x"), plain.prepend("n", "y"), plain.append("absent", "x")]
    yield "affixed", plain.get("n")
    yield "touch", [plain.touch("n", 100), plain.touch("absent", 100)]
    yield "expired", [plain.set("short", "x", expire=1), time.sleep(2.1), plain.get("short")]
    yield "negative", [plain.set("short", "x", expire=-1), plain.get("short")]
    yield "noreply", [plain.set("quiet", "x", noreply=True), plain.get("quiet")]
    yield "large", [plain.set("large", b"v" * 1_000_000), len(plain.get("large"))]
    try:
        plain.set("large", b"v" * 2_000_000)
        yield "too large", "stored"
    except Exception as error:  # The class and the text are what is compared.
        yield "too large", [type(error).__name__, str(error)]
    yield "after an error", plain.get("n")
    yield "raw", plain.raw_command(b"mg n v", b"\r\n")
    yield "version", plain.version()
    yield "stats", sorted(name for name in plain.stats() if name in (b"pid", b"get_hits", b"curr_items"))
    yield "settings", plain.stats("settings")[b"maxconns"] > 0
    pooled = PooledClient(address, max_pool_size=4, default_noreply=False)
    yield "pooled", [pooled.set("p", "1"), pooled.get("p"), pooled.delete("p")]
    hashed = HashClient([address], default_noreply=False)
    yield "hashed", [hashed.set("h", "1"), hashed.get_many(["h", "absent"]), hashed.delete("h")]
    retrying = RetryingClient(plain, attempts=2)
    yield "retrying", retrying.get("n")
    yield "flush", [plain.flush_all(), plain.get("n")]
    plain.quit()


def main():
    ours = dict(calls(int(sys.argv[1])))
    peer = dict(calls(int(sys.argv[2]))) if len(sys.argv) > 2 else ours
    differing = [name for name in ours if ours[name] != peer[name]]
    for name in differing:
        print(f"{name}: {ours[name]!r}, memcached returns {peer[name]!r}")
    print(f"{len(ours)} calls, {len(differing)} differ")
    sys.exit(1 if differing else 0)


main()
