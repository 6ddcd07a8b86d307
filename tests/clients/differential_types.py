"""Random commands on hashes, sets, scripts, transactions and expiry, with good and bad arguments, sent to `alluvium
serve` and to redis-server, whose replies must be the same. Replies without an order are sorted before, and the name of
the script that Redis appends to errors is removed.

usage: differential_types.py OUR_PORT REDIS_PORT [ROUNDS [SEED]]
"""

import random
import re
import sys

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

KEYS = ["a", "b", "c", "d"]
FIELDS = ["f", "g", "h", "1", "", "x" * 70]
FAR = 4_000_000_000
NO_ORDER = {"SMEMBERS", "SINTER", "SUNION", "SDIFF", "HKEYS", "HVALS", "KEYS"}
SCRIPTS = [
    "return redis.call('GET', KEYS[1])",
    "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('INCR', KEYS[1])",
    "redis.call('SET', KEYS[1], 'x') return redis.pcall('HGET', KEYS[1], 'f').err",
    "redis.call('HSET', KEYS[1], 'f', ARGV[1]) return redis.call('HGETALL', KEYS[1])",
    "return {1, 2.9, 'x', false, nil, 5}",
    "return {ok = ARGV[1]}",
    "return {err = ARGV[1]}",
    "return redis.error_reply('MY error')",
    "return redis.status_reply(ARGV[1])",
    "return tostring(redis.call('EXISTS', KEYS[1]))",
    "return #ARGV .. ':' .. #KEYS",
    "return redis.call('NOSUCH')",
    "return redis.call('GET')",
    "return redis.call()",
    "return redis.call('SET', KEYS[1], {})",
    "return redis.call('SUBSCRIBE', 'x')",
    "return redis.pcall('SET', KEYS[1], ARGV[1], 'EX', 'x')",
    "local t = {} for i = 1, 300 do t[i] = i end return t",
    "return {{{{{1}}}}}",
    "return cjson.encode({1, 'a', {x = true}})",
    "return tonumber(ARGV[1])",
    "return 3.99999",
    "return -0.5",
    "return true",
    "return false",
    "return",
    "x = 1",
    "return x",
    "return redis.sha1hex(ARGV[1] or '')",
    "error('boom')",
    "error({err = 'ERR own'})",
    "return string.rep(ARGV[1], 3)",
    "return ARGV[1",
    "redis.call('DEL', KEYS[1]) redis.call('SADD', KEYS[1], 1, 2, 3) return redis.call('SCARD', KEYS[1])",
    "redis.setresp(3) local r = redis.call('HGETALL', KEYS[1]) return r.map and 'map' or 'other'",
    "return bit.band(tonumber(ARGV[1]) or 7, 5)",
    "return redis.call('EXPIRE', KEYS[1], ARGV[1])",
    "return {double = 3.5}",
    "return redis.call('TYPE', KEYS[1])",
    "return redis.call('TYPE', KEYS[1]).ok",
    "return redis.REDIS_VERSION_NUM and 1",
    "redis.replicate_commands() return 1",
    "return redis.call('PING')",
    "return {redis.call('SMEMBERS', KEYS[1])}",
    "return os and 1 or 0",
    "return loadstring('return 5')()",
    "return type(redis.log)",
    "return math.random and 1",
    "return {1, {2, {3, 'x'}}, 'y'}",
    "return pcall(redis.call, 'GET')",
    "local ok, e = pcall(redis.call, 'INCR', KEYS[1], 1) return e.err or e",
    "return unpack(ARGV)",
]


def value(rng):
    return rng.choice([
        lambda: str(rng.randint(-300, 300)),
        lambda: str(rng.choice([2**63 - 1, -2**63, 2**63, 0, -1, 1.5, "1e3", "nan", "inf", " 1", "1 ", "+1", "01"])),
        lambda: bytes(rng.randrange(256) for _ in range(rng.randint(0, 12))),
        lambda: rng.choice(FIELDS),
        lambda: "y" * rng.choice([100, 5_000, 70_000]),
    ])()


def number(rng):
    return str(rng.choice([0, 1, -1, 2, 5, rng.randint(-20, 20), 2**31, 2**63 - 1, -2**63, 2**63, "x", "", "1.5", " 1"]))


def time_of(rng):
    return str(rng.choice([FAR, FAR * 1000, 1, 0, -1, 2**63 - 1, 2**62, -2**63, "x", "", 10**15, 9_223_372_036_854_775]))


def later(rng):
    """A time span: none that ends while the test runs."""
    return str(rng.choice([100_000, FAR, 0, -1, 2**63 - 1, 2**62, -2**63, "x", ""]))


def fields(rng, most=3):
    return [rng.choice([rng.choice(FIELDS), value(rng)]) for _ in range(rng.randint(0, most))]


def keys(rng, most=3):
    return [rng.choice(KEYS) for _ in range(rng.randint(0, most))]


def command(rng):
    key, other, field = rng.choice(KEYS), rng.choice(KEYS), rng.choice(FIELDS)
    condition = lambda: rng.choice([[], [], ["NX"], ["XX"], ["GT"], ["LT"], ["NX", "XX"], ["x"], ["GT", "LT"]])
    words = rng.choice([
        lambda: ["HSET", key, *[word for one in fields(rng) for word in (one, value(rng))]],
        lambda: ["HSET", key, field, value(rng)],
        lambda: ["HSET", key, *fields(rng)],
        lambda: ["HMSET", key, *fields(rng, 4)],
        lambda: ["HSETNX", key, field, value(rng)],
        lambda: ["HGET", key, field],
        lambda: ["HMGET", key, *fields(rng)],
        lambda: ["HGETALL", key],
        lambda: ["HDEL", key, *fields(rng)],
        lambda: ["HLEN", key],
        lambda: ["HSTRLEN", key, field],
        lambda: ["HEXISTS", key, field],
        lambda: ["HKEYS", key],
        lambda: ["HVALS", key],
        lambda: ["HINCRBY", key, field, number(rng)],
        lambda: ["HINCRBYFLOAT", key, field, rng.choice([number(rng), "0.1", "1e10", "-3.25", "inf"])],
        lambda: ["SADD", key, *fields(rng)],
        lambda: ["SREM", key, *fields(rng)],
        lambda: ["SCARD", key],
        lambda: ["SISMEMBER", key, field],
        lambda: ["SMISMEMBER", key, *fields(rng)],
        lambda: ["SMEMBERS", key],
        lambda: ["SMOVE", key, other, field],
        lambda: [rng.choice(["SINTER", "SUNION", "SDIFF"]), *keys(rng)],
        lambda: [rng.choice(["SINTERSTORE", "SUNIONSTORE", "SDIFFSTORE"]), key, *keys(rng)],
        lambda: ["SINTERCARD", number(rng), *keys(rng), *rng.choice([[], ["LIMIT", number(rng)], ["x"]])],
        lambda: ["SPOP", key, rng.choice(["100", "0", "-1", "x"])],
        lambda: ["SRANDMEMBER", key, rng.choice(["0", "x", str(-2**63)])],
        lambda: ["HRANDFIELD", key, rng.choice(["0", "x", str(-2**63)])],
        lambda: ["SET", key, value(rng), *rng.choice([
            [], ["NX"], ["XX"], ["GET"], ["KEEPTTL"], ["EX", later(rng)], ["PX", later(rng)], ["EXAT", time_of(rng)],
            ["PXAT", time_of(rng)], ["NX", "XX"], ["EX"], ["NX", "GET"], ["KEEPTTL", "EX", "5"], ["GET", "EX", "0"]])],
        lambda: ["GETEX", key, *rng.choice([[], ["PERSIST"], ["EXAT", time_of(rng)], ["EX", "0"], ["x"]])],
        lambda: ["GETSET", key, value(rng)],
        lambda: ["GETDEL", key],
        lambda: ["GET", key],
        lambda: ["STRLEN", key],
        lambda: ["TYPE", key],
        lambda: ["DEL", *keys(rng)],
        lambda: ["UNLINK", *keys(rng)],
        lambda: ["EXISTS", *keys(rng)],
        lambda: ["TOUCH", *keys(rng)],
        lambda: ["EXPIREAT", key, time_of(rng), *condition()],
        lambda: ["PEXPIREAT", key, time_of(rng), *condition()],
        lambda: [rng.choice(["EXPIRE", "PEXPIRE"]), key, rng.choice(["0", "-1", "x", "", str(2**63 - 1), str(-2**63)]),
                 *condition()],
        lambda: [rng.choice(["EXPIRETIME", "PEXPIRETIME"]), key],
        lambda: ["PERSIST", key],
        lambda: ["RENAME", key, other],
        lambda: ["RENAMENX", key, other],
        lambda: ["COPY", key, other, *rng.choice([[], ["REPLACE"], ["DB", number(rng)], ["DB", "1", "REPLACE"]])],
        lambda: ["MOVE", key, number(rng)],
        lambda: ["KEYS", rng.choice(["*", "[ab]", "?", "a*", "[^a]", "\\a", "[a-c]", "[", "[a", "", "[c-a]"])],
        lambda: ["DBSIZE"],
        lambda: ["INCR", key],
        lambda: ["DECRBY", key, number(rng)],
        lambda: ["APPEND", key, value(rng)],
        lambda: ["MGET", *keys(rng)],
        lambda: ["MSET", *[word for one in keys(rng) for word in (one, value(rng))], *rng.choice([[], ["a"]])],
        lambda: ["EVAL", rng.choice(SCRIPTS), rng.choice(["1", "1", "1", "0", "2", "-1", "x", str(2**63)]), key,
                 *[value(rng) for _ in range(rng.randint(0, 3))]],
        lambda: ["EVAL_RO", rng.choice(SCRIPTS), "1", key, value(rng)],
        lambda: ["EVALSHA", rng.choice(["0" * 40, "x", ""]), "0"],
        lambda: ["OBJECT", rng.choice(["REFCOUNT", "x", "ENCODING"])],
        lambda: ["SELECT", rng.choice(["0", "0", "0", "16", "-1", "x"])],
        lambda: ["ECHO", value(rng)],
        lambda: ["SCAN", rng.choice(["x", "1.5"])],
        lambda: ["MULTI"],
        lambda: ["EXEC"],
        lambda: ["DISCARD"],
        lambda: ["WATCH", *keys(rng)],
        lambda: ["UNWATCH"],
        lambda: [rng.choice(["nosuch", "GET\r\n", "x" * 200])],
    ])()
    if rng.random() < 0.03 and len(words) > 1:
        words = words[:-1] if rng.random() < 0.5 else [*words, value(rng)]
    return words


def tidy(words, reply):
    """The reply, sorted where it has no order."""
    if isinstance(reply, list):
        name = str(words[0]).upper()
        if name in NO_ORDER or name in ("SPOP",):
            return sorted(reply, key=repr)
        if name == "HGETALL":
            return sorted(zip(reply[::2], reply[1::2]))
        if name in ("EVAL", "EVAL_RO"):
            return sorted((tidy(words, one) for one in reply), key=repr)
    return reply


def answer(client, words):
    try:
        return client.execute_command(*words)
    except redis.ResponseError as error:
        return plain(error)
    except redis.TimeoutError:
        sys.exit(f"port {client.connection.port} does not answer {str(words)[:300]}")


def names(words):
    return str(words[0]).upper()


def main():
    ports = [int(port) for port in sys.argv[1:3]]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 20_000
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(1 << 32)
    rng = random.Random(seed)
    print(f"seed {seed}")
    # Without redis-py's own reading of replies; a server that does not answer within 20 s is stuck.
    options = {"protocol": 2, "socket_timeout": 20, "single_connection_client": True, "retry": Retry(NoBackoff(), 0)}
    ours, theirs = [redis.Redis(port=port, **options) for port in ports]
    # Other clients write between WATCH and EXEC.
    others = [redis.Redis(port=port, **options) for port in ports]
    for client in (ours, theirs, *others):
        client.response_callbacks.clear()
        client.flushall()
    differences, queue = {}, None
    for step in range(rounds):
        words = command(rng)
        if rng.random() < 0.05:
            for client in others:
                answer(client, ["SET", rng.choice([KEYS[step % 4]]), "between"])
        found, expected = answer(ours, words), answer(theirs, words)
        if found == b"QUEUED" and expected == b"QUEUED":
            queue = (queue or []) + [words]
            continue
        if names(words) == "EXEC" and isinstance(found, list) and isinstance(expected, list) and queue:
            found = [tidy(one, reply) for one, reply in zip(queue, map(plain, found))]
            expected = [tidy(one, reply) for one, reply in zip(queue, map(plain, expected))]
        if names(words) in ("EXEC", "DISCARD"):
            shown, queue = [*words, *(queue or [])], None
        else:
            shown = words
        if tidy(words, found) != tidy(words, expected):
            kind = (names(words) if len(names(words)) < 20 else "?", str(expected)[:60])
            differences.setdefault(kind, (shown, found, expected))
            if len(differences) > 40:
                break
    for words, found, expected in differences.values():
        print(f"{str(words)[:300]}\n    {str(found)[:300]}\n    Redis: {str(expected)[:300]}")
    print(f"{step + 1} commands, {len(differences)} kinds of differences")
    sys.exit(1 if differences else 0)


def plain(reply):
    """An error as text."""
    if not isinstance(reply, Exception):
        return reply
    return re.sub(r" script: \w+, on @user_script:\d+\.$", "", f"{type(reply).__name__}: {reply}")


if __name__ == "__main__":
    main()
