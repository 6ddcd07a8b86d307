"""Runs common applications of Redis and memcached against `alluvium serve` and prints which of them work.

    python3 -m venv venv
    venv/bin/pip install redis django django-redis flask flask-caching flask-session cachelib aiocache limits \
        redlock-py pottery pymemcache
    (cd tests/clients/node && npm install)
    apt-get install prometheus-redis-exporter
    venv/bin/python tests/clients/applications.py target/release/alluvium

ioredis and node-redis need Node.js, go-redis needs Go, which fetches it. An application that is not installed is
skipped, and then the run is not a success: its status is 1.
"""

import asyncio
import subprocess
import sys
import tempfile
import threading
import time
import traceback

import programs  # noqa: F401: it has checks, too
from common import CHECKS, NotInstalled, check, client, equal, free_port, wait_for


@check
def redis_py_pipeline(port):
    r = client(port)
    with r.pipeline() as pipe:
        equal(pipe.set("a", 1).incr("a").get("a").execute(), [True, 2, b"2"])
    with r.pipeline() as pipe:
        pipe.watch("a")
        r.set("a", "changed")
        pipe.multi()
        pipe.set("a", "lost")
        try:
            pipe.execute()
            raise AssertionError("the watched key has changed")
        except __import__("redis").WatchError:
            pass
    equal(r.get("a"), b"changed")


@check
def redis_py_lock(port):
    r = client(port)
    lock = r.lock("lock", timeout=10)
    assert lock.acquire(blocking=False)
    assert not r.lock("lock", timeout=10).acquire(blocking=False)
    assert lock.extend(5) and lock.owned()
    lock.release()
    assert r.lock("lock", timeout=10).acquire(blocking=False)


@check
def redis_py_asyncio(port):
    import redis.asyncio

    async def run():
        r = redis.asyncio.Redis(port=port, protocol=3)
        await r.set("key", "value", ex=100)
        equal(await r.get("key"), b"value")
        assert 95 < await r.ttl("key") <= 100
        await r.aclose()

    asyncio.run(run())


@check
def publish_and_subscribe(port):
    r = client(port)
    listener = r.pubsub(ignore_subscribe_messages=True)
    listener.subscribe("news")
    listener.psubscribe("n*")
    listener.get_message(timeout=1)
    listener.get_message(timeout=1)
    equal(r.publish("news", "hello"), 2)
    found = []
    deadline = time.time() + 5
    while len(found) < 2 and time.time() < deadline:
        message = listener.get_message(timeout=0.1)
        if message:
            found.append((message["type"], message["data"]))
    equal(found, [("message", b"hello"), ("pmessage", b"hello")])


@check
def hash_sessions(port):
    r = client(port, decode_responses=True)
    r.hset("session:1", mapping={"user": "ada", "visits": 1})
    r.hincrby("session:1", "visits", 41)
    r.expire("session:1", 3600)
    equal(r.hgetall("session:1"), {"user": "ada", "visits": "42"})
    assert 3590 < r.ttl("session:1") <= 3600
    equal(r.hmget("session:1", "user", "none"), ["ada", None])
    r.sadd("sessions", "1", "2")
    equal(r.smembers("sessions"), {"1", "2"})
    equal(sorted(r.scan_iter("session*")), ["session:1", "sessions"])


def django_settings(port, backend, options=None):
    import django
    from django.conf import settings

    cache = {"BACKEND": backend, "LOCATION": f"redis://127.0.0.1:{port}/1", **(options or {})}
    if not settings.configured:
        settings.configure(
            CACHES={"default": cache},
            SESSION_ENGINE="django.contrib.sessions.backends.cache",
            SESSION_CACHE_ALIAS="default",
            INSTALLED_APPS=["django.contrib.sessions"],
        )
        django.setup()
    from django.core.cache.backends.base import BaseCache  # noqa: F401
    from django.utils.module_loading import import_string

    return import_string(backend)(cache["LOCATION"], dict(cache))


def use_django_cache(cache):
    cache.clear()
    cache.set("key", {"a": 1}, timeout=60)
    equal(cache.get("key"), {"a": 1})
    assert not cache.add("key", 2) and cache.add("other", 1)
    equal(cache.incr("other", 5), 6)
    assert cache.touch("key", 100)
    cache.set_many({"x": 1, "y": 2})
    equal(cache.get_many(["x", "y", "z"]), {"x": 1, "y": 2})
    cache.delete_many(["x", "y"])
    equal(cache.get("x", "default"), "default")
    equal(cache.get_or_set("new", lambda: 7), 7)
    assert cache.has_key("new") and cache.delete("new") and not cache.delete("new")
    cache.set("gone", 1, timeout=0)
    equal(cache.get("gone"), None)


@check
def django_cache(port):
    use_django_cache(django_settings(port, "django.core.cache.backends.redis.RedisCache"))


@check
def django_sessions(port):
    django_settings(port, "django.core.cache.backends.redis.RedisCache")
    from django.contrib.sessions.backends.cache import SessionStore

    session = SessionStore()
    session["user"] = "ada"
    session.save()
    equal(SessionStore(session_key=session.session_key)["user"], "ada")
    session.flush()
    equal(SessionStore(session_key=session.session_key).get("user"), None)


@check
def django_redis(port):
    cache = django_settings(port, "django_redis.cache.RedisCache")
    use_django_cache(cache)
    cache.set("prefix:1", 1, timeout=60)
    cache.set("prefix:2", 2, timeout=60)
    equal(sorted(cache.keys("prefix:*")), ["prefix:1", "prefix:2"])
    assert 55 <= cache.ttl("prefix:1") <= 60
    with cache.lock("lock", timeout=5):
        pass
    equal(cache.delete_pattern("prefix:*"), 2)


@check
def flask_caching(port):
    from flask import Flask
    from flask_caching import Cache

    app = Flask("app")
    cache = Cache(app, config={"CACHE_TYPE": "RedisCache", "CACHE_REDIS_PORT": port, "CACHE_KEY_PREFIX": "flask:"})
    calls = []

    @cache.memoize(60)
    def double(number):
        calls.append(number)
        return 2 * number

    with app.app_context():
        equal([double(2), double(2), double(3)], [4, 4, 6])
        equal(calls, [2, 3])
        cache.delete_memoized(double)
        equal(double(2), 4)
        equal(calls, [2, 3, 2])
        cache.clear()


@check
def flask_session(port):
    from flask import Flask, session
    from flask_session import Session

    app = Flask("app")
    app.config.update(SESSION_TYPE="redis", SESSION_REDIS=client(port), SECRET_KEY="x")
    Session(app)

    @app.route("/")
    def visits():
        session["visits"] = session.get("visits", 0) + 1
        return str(session["visits"])

    browser = app.test_client()
    equal([browser.get("/").text for _ in range(3)], ["1", "2", "3"])
    equal(app.test_client().get("/").text, "1")


@check
def cachelib(port):
    from cachelib import RedisCache

    cache = RedisCache(port=port, key_prefix="lib:")
    assert cache.set("a", [1, 2], timeout=10) and cache.add("b", 1) and not cache.add("b", 2)
    equal(cache.get("a"), [1, 2])
    equal(cache.inc("b", 4), 5)
    equal(cache.dec("b"), 4)
    equal(cache.get_many("a", "b", "c"), [[1, 2], 4, None])
    assert cache.has("a") and cache.delete("a") and not cache.has("a")
    cache.clear()


@check
def aiocache(port):
    from aiocache import Cache
    from aiocache.serializers import PickleSerializer

    async def run():
        cache = Cache(Cache.REDIS, endpoint="127.0.0.1", port=port, namespace="aio", serializer=PickleSerializer())
        await cache.set("a", {"x": 1}, ttl=60)
        equal(await cache.get("a"), {"x": 1})
        await cache.multi_set([("b", 1), ("c", 2)])
        equal(await cache.multi_get(["b", "c", "d"]), [1, 2, None])
        assert await cache.exists("a") and await cache.delete("a")
        await cache.close()

    asyncio.run(run())


@check
def limits(port):
    from limits import parse
    from limits.storage import RedisStorage
    from limits.strategies import FixedWindowRateLimiter, SlidingWindowCounterRateLimiter

    storage = RedisStorage(f"redis://127.0.0.1:{port}")
    for strategy in (FixedWindowRateLimiter, SlidingWindowCounterRateLimiter):
        limiter = strategy(storage)
        limit = parse("3/minute")
        name = strategy.__name__
        equal([limiter.hit(limit, name) for _ in range(4)], [True, True, True, False])
        assert not limiter.test(limit, name)
        limiter.clear(limit, name)


@check
def redlock(port):
    from redlock import Redlock

    manager = Redlock([{"host": "127.0.0.1", "port": port, "db": 0}], retry_count=1)
    lock = manager.lock("resource", 10_000)
    assert lock and not manager.lock("resource", 10_000)
    manager.unlock(lock)
    assert manager.lock("resource", 10_000)


@check
def pottery(port):
    from pottery import NextID, RedisCounter, RedisDict, Redlock, RedisSet, synchronize

    r = client(port)
    masters = {r}
    names = RedisDict({"a": 1}, redis=r, key="pottery:dict")
    names["b"] = 2
    equal(dict(names), {"a": 1, "b": 2})
    numbers = RedisSet({1, 2, 3}, redis=r, key="pottery:set")
    numbers.discard(2)
    equal(set(numbers), {1, 3})
    counter = RedisCounter("hello", redis=r, key="pottery:counter")
    equal(counter["l"], 2)
    ids = NextID(key="pottery:ids", masters=masters)
    equal([next(ids), next(ids)], [1, 2])
    with Redlock(key="pottery:lock", masters=masters, auto_release_time=5):
        pass
    total = []

    @synchronize(key="pottery:sync", masters=masters, auto_release_time=5)
    def add():
        total.append(1)

    threads = [threading.Thread(target=add) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    equal(len(total), 4)


@check
def pymemcache(port):
    from pymemcache.client.base import Client

    memcached = Client(("127.0.0.1", memcached_port(port)))
    memcached.set("key", "value", expire=100)
    equal(memcached.get("key"), b"value")
    value, token = memcached.gets("key")
    assert memcached.cas("key", "new", token) and not memcached.cas("key", "old", token)
    memcached.set("number", "41")
    equal(memcached.incr("number", 1), 42)
    equal(memcached.get_many(["key", "number", "none"]), {"key": b"new", "number": b"42"})
    assert memcached.touch("key", 10) and memcached.delete("key")
    memcached.append("number", "0")
    equal(memcached.get("number"), b"420")
    assert memcached.add("fresh", "1") and b"cmd_get" in memcached.stats()


MEMCACHED_PORTS = {}


def memcached_port(port):
    return MEMCACHED_PORTS[port]


def serve(program, directory):
    port, second = free_port(), free_port()
    MEMCACHED_PORTS[port] = second
    words = [program, "serve", "--dir", directory, "--port", str(port), "--memcached-port", str(second)]
    server = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    wait_for(port, server)
    return server, port


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    failures, skipped = [], []
    with tempfile.TemporaryDirectory() as directory:
        server, port = serve(sys.argv[1], directory)
        try:
            for function in CHECKS:
                client(port).flushall()
                try:
                    function(port)
                    print(f"{function.__name__:24} works", flush=True)
                except (ImportError, NotInstalled) as error:
                    skipped.append(function.__name__)
                    print(f"{function.__name__:24} skipped, not installed: {error}", flush=True)
                except Exception as error:  # noqa: BLE001: each application has its own errors
                    failures.append(function.__name__)
                    print(f"{function.__name__:24} FAILS: {type(error).__name__}: {error}", flush=True)
                    traceback.print_exc()
        finally:
            server.terminate()
            server.wait(30)
    works = len(CHECKS) - len(failures) - len(skipped)
    print(f"{works} of {len(CHECKS)} applications work, {len(failures)} fail, {len(skipped)} are not installed")
    sys.exit(1 if failures or skipped else 0)


if __name__ == "__main__":
    main()
