"""The Python client `redis` against a server on a loopback port, in both protocol versions.

usage: client.py PORT
"""

import sys
import threading

import redis


def fails(call, text):
    """Checks that `call` is answered with an error that says `text`."""
    try:
        call()
    except redis.ResponseError as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"expected an error: {text}")


def strings(client):
    assert client.ping() is True
    assert client.echo("hello") == b"hello"
    assert client.get("key") is None
    assert client.set("key", "value") is True
    assert client.get("key") == b"value"
    assert client.set("key", "other", nx=True) is None
    assert client.set("key", "other", xx=True) is True
    assert client.set("key", "third", get=True) == b"other"
    assert client.set("new", "value", get=True) is None
    every_byte = bytes(range(256)) * 3
    assert client.set(every_byte, every_byte) is True
    assert client.get(every_byte) == every_byte
    assert client.mset({"a": 1, "b": 2}) is True
    assert client.mget("a", "nothing", "b") == [b"1", None, b"2"]
    assert client.exists("a", "b", "nothing") == 2
    assert client.delete("a", "nothing") == 1
    assert client.exists("a") == 0
    assert client.strlen("key") == 5
    assert client.append("key", "!") == 6
    fails(lambda: client.execute_command("SET", "key", "value", "NX", "XX"), "syntax error")


def counters(client):
    assert client.incr("counter") == 1
    assert client.incr("counter", 41) == 42
    assert client.decr("counter", 2) == 40
    assert client.get("counter") == b"40"
    client.set("text", "abc")
    fails(lambda: client.incr("text"), "value is not an integer or out of range")
    client.set("limit", 2**63 - 1)
    fails(lambda: client.incr("limit"), "increment or decrement would overflow")


def pipelines(client):
    pipe = client.pipeline(transaction=False)
    for number in range(1000):
        pipe.set(f"pipe:{number}", number)
        pipe.get(f"pipe:{number}")
    replies = pipe.execute()
    assert replies[0::2] == [True] * 1000
    assert replies[1::2] == [str(number).encode() for number in range(1000)]


def scans(client):
    for number in range(500):
        client.set(f"scan:{number}", number)
    found = set(client.scan_iter(match="scan:*", count=50))
    assert found == {f"scan:{number}".encode() for number in range(500)}
    assert set(client.scan_iter(match="nothing*")) == set()


def introspection(client, protocol):
    info = client.info()
    assert info["redis_version"] == "7.0.15"
    assert info["role"] == "master" and info["cluster_enabled"] == 0
    assert info["db0"]["keys"] > 0
    assert client.dbsize() > 0
    assert client.config_get("save") == {"save": ""}
    assert client.client_setname("tests") is True
    assert client.client_getname() in ("tests", b"tests")
    assert isinstance(client.client_id(), int)
    assert client.command_count() >= 30
    assert "get" in client.command()
    assert len(client.time()) == 2
    fails(lambda: client.execute_command("WHAT", "x"), "unknown command 'WHAT'")
    hello = client.execute_command("HELLO")
    if isinstance(hello, list):
        hello = dict(zip(hello[0::2], hello[1::2]))
    assert hello.get(b"proto", hello.get("proto")) == protocol


def threads(client):
    def count():
        for _ in range(200):
            client.incr("threads")

    workers = [threading.Thread(target=count) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert client.get("threads") == b"1600"


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    for protocol in (2, 3):
        client = redis.Redis(host="127.0.0.1", port=int(sys.argv[1]), protocol=protocol)
        client.flushall()
        strings(client)
        counters(client)
        pipelines(client)
        scans(client)
        introspection(client, protocol)
        threads(client)
        client.flushall()
        assert client.get("key") is None
        client.close()


main()
