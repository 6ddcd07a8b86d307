"""Random commands sent to `alluvium serve` and to redis-server, whose replies must be the same.

usage: differential.py OUR_PORT REDIS_PORT [ROUNDS [SEED]]
"""

import random
import sys

import redis

KEYS = ["a", "b", "c"]


def number(rng):
    """A text that is a float, or nearly one."""
    digits = lambda most: "".join(rng.choice("0123456789") for _ in range(rng.randint(0, most)))
    text = rng.choice(["", "", "", "-", "+"]) + digits(rng.choice([2, 6, 20])) + rng.choice(["", ".", "."]) + digits(
        rng.choice([2, 6, 20]))
    text += rng.choice(["", "", "", f"e{rng.randint(-30, 30)}", f"E+{rng.randint(0, 4940)}", f"e-{rng.randint(0, 4960)}"])
    return rng.choice([text] * 20 + ["inf", "-Infinity", "nan", "0x1.8p3", "-0XFp-70", "0x", "1e", " 1", "1 ", "."])


def value(rng):
    return rng.choice([
        lambda: str(rng.randint(-300, 300)),
        lambda: bytes(rng.choice([0, 0xFF, rng.randrange(256)]) for _ in range(rng.randint(0, 40))),
        lambda: "ab" * rng.randint(0, 60) + "abc"[rng.randint(0, 3):],
        lambda: "".join(rng.choice("abc") for _ in range(rng.randint(0, 30))),
    ])()


def field(rng):
    kind = rng.choice(["i", "u"]) + str(rng.choice([1, 3, 8, 16, 31, 63, 64, rng.randint(0, 66)]))
    offset = rng.choice(["", "", "#"]) + str(rng.choice([0, 7, rng.randint(-1, 200)]))
    return [kind, offset]


def operations(rng):
    words = []
    for _ in range(rng.randint(0, 4)):
        amount = str(rng.choice([1, -1, rng.randint(-300, 300), rng.randint(-2**63, 2**63 - 1)]))
        words += rng.choice([
            lambda: ["GET", *field(rng)],
            lambda: ["SET", *field(rng), amount],
            lambda: ["INCRBY", *field(rng), amount],
            lambda: ["OVERFLOW", rng.choice(["WRAP", "SAT", "fail", "what"])],
        ])()
    return words


def command(rng):
    key, other = rng.choice(KEYS), rng.choice(KEYS)
    position = lambda: str(rng.choice([0, -1, rng.randint(-60, 60), rng.randint(-400, 400)]))
    part = lambda: rng.choice([[], [position()], [position(), position()], [position(), position(), "BIT"],
                               [position(), position(), "BYTE"], [position(), position(), "x"]])
    return rng.choice([
        lambda: ["SET", key, value(rng)],
        lambda: ["SET", key, number(rng)],
        lambda: ["INCRBYFLOAT", key, number(rng)],
        lambda: ["INCRBYFLOAT", key, number(rng)],
        lambda: ["GET", key],
        lambda: ["DEL", key],
        lambda: ["SETRANGE", key, position(), value(rng)],
        lambda: ["GETRANGE", key, position(), position()],
        lambda: ["APPEND", key, value(rng)],
        lambda: ["SETBIT", key, position(), rng.choice(["0", "1", "1", "2"])],
        lambda: ["GETBIT", key, position()],
        lambda: ["BITCOUNT", key, *part()],
        lambda: ["BITPOS", key, rng.choice(["0", "1", "1", "2"]), *part()],
        lambda: ["BITOP", rng.choice(["AND", "OR", "XOR", "NOT", "x"]), key, other, *rng.choice([[], [key], ["c", "b"]])],
        lambda: ["BITFIELD", key, *operations(rng)],
        lambda: ["BITFIELD_RO", key, *operations(rng)],
        lambda: ["LCS", key, other, *rng.choice([[], ["LEN"], ["IDX"], ["IDX", "WITHMATCHLEN"], ["LEN", "IDX"],
                                                  ["IDX", "MINMATCHLEN", position()]])],
        lambda: ["STRLEN", key],
        lambda: ["RENAME", key, other],
        lambda: ["RENAMENX", key, other],
        lambda: ["COPY", key, other, *rng.choice([[], ["REPLACE"], ["DB", "1"], ["x"]])],
        lambda: ["MSETNX", key, value(rng), other, value(rng)],
        lambda: ["OBJECT", "REFCOUNT", "no key"],
    ])()


def answer(client, words):
    try:
        return client.execute_command(*words)
    except redis.ResponseError as error:
        return f"{type(error).__name__}: {error}"


def main():
    ports = [int(port) for port in sys.argv[1:3]]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5_000
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(1 << 32)
    rng = random.Random(seed)
    print(f"seed {seed}")
    # Without redis-py's own reading of replies.
    ours, theirs = [redis.Redis(port=port, protocol=2) for port in ports]
    for client in (ours, theirs):
        client.response_callbacks.clear()
        client.flushall()
    for _ in range(rounds):
        words = command(rng)
        found, expected = answer(ours, words), answer(theirs, words)
        # Both have a limit on the table of LCS, not the same one.
        if found != expected and "transient memory for LCS" not in str(found):
            sys.exit(f"{words}: {found!r}, Redis: {expected!r}")
        if rng.random() < 0.05:
            key = rng.choice(KEYS)
            for source, target in ((ours, theirs), (theirs, ours)):
                payload = source.execute_command("DUMP", key)
                if payload is not None:
                    assert target.execute_command("RESTORE", "copy", 0, payload, "REPLACE") in (b"OK", True)
                    assert target.get("copy") == source.get(key), key
            for client in (ours, theirs):
                client.delete("copy")
    print(f"ok: {rounds} commands")


if __name__ == "__main__":
    main()
