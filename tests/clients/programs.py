"""Applications that are programs of their own: see `applications.py`."""

import os
import re
import shutil
import subprocess
import tempfile
import urllib.request

from common import NotInstalled, check, client, equal, free_port, wait_for

HERE = os.path.dirname(os.path.abspath(__file__))


def run(words, folder, **options):
    """Runs a program that says by its status whether all is well."""
    done = subprocess.run(words, cwd=os.path.join(HERE, folder), capture_output=True, text=True, timeout=120, **options)
    assert done.returncode == 0, f"status {done.returncode}: {(done.stderr or done.stdout).strip()}"


def node(program, package, port):
    if not shutil.which("node"):
        raise NotInstalled("Node.js")
    if not os.path.isdir(os.path.join(HERE, "node", "node_modules", package)):
        raise NotInstalled(f"the package {package}")
    run(["node", program, str(port)], "node")


@check
def ioredis(port):
    node("ioredis.js", "ioredis", port)


@check
def node_redis(port):
    node("node_redis.js", "redis", port)


@check
def go_redis(port):
    go = shutil.which("go", path=os.environ["PATH"] + ":/usr/local/go/bin")
    if not go:
        raise NotInstalled("Go")
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "go-redis")
        built = subprocess.run([go, "build", "-o", program, "."], cwd=os.path.join(HERE, "go-redis"), capture_output=True,
                               text=True, timeout=600)
        if "cannot find module" in built.stderr or "dial tcp" in built.stderr:
            raise NotInstalled("the module go-redis")
        assert built.returncode == 0, built.stderr
        run([program, str(port)], "go-redis")


@check
def redis_exporter(port):
    program = shutil.which("prometheus-redis-exporter") or shutil.which("redis_exporter")
    if not program:
        raise NotInstalled("redis_exporter")
    r = client(port)
    before = r.info("commandstats")["cmdstat_set"]["calls"]
    [r.set(f"exported:{number}", "value") for number in range(100)]
    r.set("expiring", "value", ex=1000)
    r.get("exported:1")
    r.get("none")
    other = free_port()
    words = [program, "-redis.addr", f"redis://127.0.0.1:{port}", "-web.listen-address", f"127.0.0.1:{other}"]
    exporter = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        wait_for(other, exporter)
        text = urllib.request.urlopen(f"http://127.0.0.1:{other}/metrics", timeout=30).read().decode()
    finally:
        exporter.terminate()
        log = exporter.communicate(timeout=30)[0]
    assert "level=error" not in log, log
    found = {name: float(value) for name, value in re.findall(r"^(redis_\S+) (\S+)$", text, re.MULTILINE)}
    equal(found["redis_up"], 1)
    equal(found['redis_exporter_last_scrape_error{err=""}'], 0)
    equal(found['redis_db_keys{db="db0"}'], 101)
    equal(found['redis_commands_total{cmd="set"}'], before + 101)
    assert found["redis_keyspace_hits_total"] >= 1 and found["redis_keyspace_misses_total"] >= 1
    assert found["redis_connected_clients"] >= 2
    assert 0 < found["redis_memory_used_bytes"] <= found["redis_memory_used_rss_bytes"]
    assert 0 < found["redis_uptime_in_seconds"] < 3600
    assert found["redis_net_input_bytes_total"] > 0 and found["redis_net_output_bytes_total"] > 0
    equal(int(re.search(r'process_id="(\d+)"', text)[1]), r.info()["process_id"])
