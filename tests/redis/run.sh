#!/usr/bin/env bash
# Runs stock Redis clients against `alluvium serve`: a redis-cli session compared with what Redis 7.0.15 answers,
# redis-benchmark, and the Python client in both protocol versions.
#
#   tests/redis/run.sh [--install] [BINARY]     BINARY defaults to target/release/alluvium
#
# With --install, missing clients are installed by apt-get and pip; without, what is missing is skipped and named.
# Exits 0 when everything that ran passed, 1 when something failed or nothing could run, 2 on wrong usage.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

install=no
if [ "${1:-}" = --install ]; then
    install=yes
    shift
fi
if [ $# -gt 1 ]; then
    echo "usage: $0 [--install] [BINARY]" >&2
    exit 2
fi
binary=${1:-$here/../../target/release/alluvium}
[ -x "$binary" ] || { echo "no program at $binary: build it first" >&2; exit 2; }

has_python_client() { python3 -c 'import redis' 2>/dev/null; }
if [ $install = yes ]; then
    command -v redis-cli >/dev/null || apt-get install -y redis-tools
    has_python_client || python3 -m pip install redis
fi

work=$(mktemp -d)
server=
clean_up() {
    if [ -n "$server" ] && kill -0 "$server" 2>/dev/null; then
        kill "$server"
        wait "$server" || true
    fi
    rm -rf "$work"
}
trap clean_up EXIT

# The system chooses a free port for a socket that is closed again at once.
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$binary" serve --dir "$work/data" --port "$port" --durability buffered >"$work/log" 2>&1 &
server=$!
for _ in $(seq 100); do
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
    kill -0 "$server" 2>/dev/null || { cat "$work/log" >&2; echo "the server did not start" >&2; exit 1; }
    sleep 0.1
done

ran=0
if command -v redis-cli >/dev/null; then
    redis-cli -h 127.0.0.1 -p "$port" <"$here/session.txt" >"$work/replies.txt" 2>&1
    diff -u "$here/session.expected.txt" "$work/replies.txt"
    echo "ok: redis-cli session"
    ran=$((ran + 1))
else
    echo "skipped: redis-cli is not installed"
fi

if command -v redis-benchmark >/dev/null; then
    # It exits 0 even when the server answers with errors, which it prints.
    redis-benchmark -h 127.0.0.1 -p "$port" -t ping,set,get,incr,mset -n 20000 -P 16 -q | tr '\r' '\n' >"$work/benchmark.txt"
    if grep -i 'error' "$work/benchmark.txt" || [ "$(grep -c 'requests per second' "$work/benchmark.txt")" -ne 6 ]; then
        cat "$work/benchmark.txt" >&2
        exit 1
    fi
    grep 'requests per second' "$work/benchmark.txt"
    echo "ok: redis-benchmark"
    ran=$((ran + 1))
else
    echo "skipped: redis-benchmark is not installed"
fi

if has_python_client; then
    python3 "$here/client.py" "$port"
    echo "ok: Python client"
    ran=$((ran + 1))
else
    echo "skipped: the Python client redis is not installed"
fi

# SIGTERM ends the server cleanly.
kill -TERM "$server"
if ! wait "$server"; then
    cat "$work/log" >&2
    echo "the server did not end cleanly" >&2
    exit 1
fi
server=
echo "ok: clean end"
[ $ran -gt 0 ] || { echo "no client could run; try --install" >&2; exit 1; }
