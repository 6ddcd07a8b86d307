"""Redis' own Tcl suite, unmodified, against `alluvium serve`.

usage: redis_suite.py [--server BINARY] [--redis BINARY] [--logs DIR] [--unit UNIT ...] [--singledb] SOURCE

SOURCE is an unpacked Redis 7.0 source tree with its `tests`. BINARY of `--server` defaults to
target/release/alluvium. The same tests run against redis-server (`--redis`, by default the one on the PATH): what
passes there is the baseline. Units that need servers with settings of their own start them: for Alluvium,
redis_shim.py stands for src/redis-server. Tests named in redis_suite_skips.txt are out of scope, each with its reason,
and are not run. unit/scripting runs each script twice: by EVAL, and as a function that it loads and calls. Exits 0 if
at least 98 % of the tests in scope that Redis passes do pass, 1 if fewer, 2 on wrong usage.
"""

import argparse
import os
import pathlib
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

UNITS = """type/string type/incr keyspace expire scan protocol quit querybuf bitops bitfield dump info info-command
introspection introspection-2 slowlog latency-monitor other multi pubsub tracking pause type/hash type/set
scripting functions""".split()
# Their tests start servers themselves.
UNITS_WITH_SERVERS = "acl acl-v2 auth".split()
HERE = pathlib.Path(__file__).resolve().parent
PASSED_MIN = 0.98
UNIT_SECONDS_MAX = 600
COLOR = re.compile(r"\x1b\[[0-9;]*m")
PASSED = re.compile(r"^\[ok\]: (.*) \(\d+ ms\)$")
FAILED = re.compile(r"^\[err\]: (.*) in tests/unit/\S+\.tcl$")


def skips():
    """The names of tests that are out of scope, with the reasons."""
    reasons, reason = {}, None
    for line in (HERE / "redis_suite_skips.txt").read_text().splitlines():
        if line.startswith("# "):
            reason = line[2:]
        elif line.strip():
            reasons[line] = reason
    return reasons


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Server:
    """A server on a port of its own, over an empty directory."""

    def __init__(self, command):
        self.directory = tempfile.mkdtemp(prefix="redis-suite-")
        self.port = free_port()
        self.log = open(f"{self.directory}/log", "wb")
        words = [word.format(directory=self.directory, port=self.port) for word in command]
        self.process = subprocess.Popen(words, stdout=self.log, stderr=self.log, cwd=self.directory)
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        sys.exit(f"{words[0]} did not start: {pathlib.Path(self.directory, 'log').read_text()}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.directory, ignore_errors=True)


def run(command, unit, options, log):
    """The tests of the unit that passed and that failed, and whether the unit came to its end."""
    with Server(command) as server:
        words = ["--host", "127.0.0.1", "--port", str(server.port), "--ignore-encoding", "--ignore-digest"]
        words += ["--singledb"] if options.singledb else []
        return run_suite(options.source, words, unit, options, log)


def run_with_servers(program, environment, unit, options, log):
    """As `run`, where the tests start `program` as their server."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="redis-suite-"))
    try:
        shutil.copytree(options.source / "tests", directory / "tests", ignore=shutil.ignore_patterns("tmp"))
        (directory / "tests/tmp").mkdir()
        shutil.copy(options.source / "runtest", directory)
        (directory / "src").mkdir()
        (directory / "src/redis-server").symlink_to(program)
        for tool in ("redis-cli", "redis-benchmark"):
            (directory / "src" / tool).symlink_to(shutil.which(tool) or "/bin/false")
        return run_suite(directory, [], unit, options, log, environment)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def run_suite(directory, words, unit, options, log, environment=None):
    words = ["./runtest", *words, "--single", f"unit/{unit}", "--tags", "-needs:repl -needs:debug -cluster",
             "--durable", "--skipfile", options.skipfile,
             # Below it are the suite's own ports, which another run may have.
             "--baseport", str(random.randrange(22_000, 31_000))]
    try:
        ended = subprocess.run(words, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               timeout=UNIT_SECONDS_MAX, check=False, env={**os.environ, **(environment or {})})
        output = ended.stdout
    except subprocess.TimeoutExpired as error:
        output = error.stdout or b""
    text = COLOR.sub("", output.decode(errors="replace"))
    log.write_text(text)
    found = {pattern: [match[1] for line in text.splitlines() if (match := pattern.match(line))]
             for pattern in (PASSED, FAILED)}
    return found[PASSED], found[FAILED], "tests failed" in text or "All tests passed" in text


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1])
    parser.add_argument("--server", default=HERE.parents[1] / "target/release/alluvium", type=pathlib.Path)
    parser.add_argument("--redis", default=shutil.which("redis-server"), type=pathlib.Path)
    parser.add_argument("--logs", type=pathlib.Path)
    parser.add_argument("--unit", action="append")
    parser.add_argument("--singledb", action="store_true")
    parser.add_argument("source", type=pathlib.Path)
    options = parser.parse_args()
    for needed in (options.server, options.redis, options.source / "runtest"):
        if needed is None or not needed.exists():
            parser.error(f"there is no {needed}")
    ours = [str(options.server.absolute()), "serve", "--dir", "{directory}/data", "--port", "{port}", "--durability",
            "buffered"]
    theirs = [str(options.redis.absolute()), "--port", "{port}", "--save", "", "--dir", "{directory}"]
    logs = options.logs or pathlib.Path(tempfile.mkdtemp(prefix="redis-suite-logs-"))
    logs.mkdir(parents=True, exist_ok=True)
    logs = logs.resolve()
    reasons = skips()
    options.skipfile = str(logs / "skips")
    pathlib.Path(options.skipfile).write_text("".join(f"{name}\n" for name in reasons))
    totals = [0, 0]
    print(f"{'unit':<24}{'Redis':>8}{'passed':>8}  failed")
    for unit in options.unit or UNITS + UNITS_WITH_SERVERS:
        file = unit.replace("/", "-")
        their_log, our_log = logs / f"{file}.redis.log", logs / f"{file}.log"
        if unit in UNITS_WITH_SERVERS:
            shim, binary = HERE / "redis_shim.py", str(options.server.absolute())
            baseline, _, _ = run_with_servers(options.redis.absolute(), None, unit, options, their_log)
            passed, failed, ended = run_with_servers(shim, {"ALLUVIUM_BINARY": binary}, unit, options, our_log)
        else:
            baseline, _, _ = run(theirs, unit, options, their_log)
            passed, failed, ended = run(ours, unit, options, our_log)
        good = set(passed) - set(failed)
        both = [name for name in baseline if name in good]
        missing = [name for name in baseline if name not in good]
        totals = [totals[0] + len(baseline), totals[1] + len(both)]
        print(f"{unit:<24}{len(baseline):>8}{len(both):>8}  {'' if ended else 'did not end'}", flush=True)
        for name in missing:
            print(f"{'':<42}{name}{'' if name in failed else ' (not reached)'}", flush=True)
    in_scope, passed = totals
    share = passed / max(in_scope, 1)
    print(f"{'all':<24}{in_scope:>8}{passed:>8}  {share:.1%}, {len(reasons)} tests out of scope, logs in {logs}")
    sys.exit(0 if share >= PASSED_MIN else 1)


if __name__ == "__main__":
    main()
