"""A proxy that keeps the answers of a web server.

    python web_cache.py http://127.0.0.1:8000 --port 8080

Answers stay for as long as the server says in Cache-Control (a minute if it says nothing), in 64 MiB of memory. What
was not used for a while is compressed and not forgotten, and with ``--file`` a restart finds all of it. The hits can be
seen at /.cache.
"""

from __future__ import annotations

import argparse
import json
import re
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from alluvium_db import Cache

SECONDS = 60
LARGEST = 1 << 20


class Proxy(ThreadingHTTPServer):
    """The server, its origin and its cache, which all threads share."""

    daemon_threads = True

    def __init__(self, origin: str, port: int = 0, **options: Any) -> None:
        self.origin = origin.rstrip("/")
        self.cache = Cache(64 << 20, item_bytes=2000, compress="zstd", **options)
        super().__init__(("127.0.0.1", port), Handler)


def lifetime(headers: Any) -> int:
    """Seconds for which an answer may be kept; 0 for never."""
    control = headers.get("Cache-Control", "")
    if re.search(r"no-store|private|no-cache", control) or headers.get("Set-Cookie") or headers.get("Vary"):
        return 0
    found = re.search(r"(?:s-maxage|max-age)=(\d+)", control)
    return int(found.group(1)) if found else SECONDS


class Handler(BaseHTTPRequestHandler):
    """One request: from the cache, or from the origin."""

    server: Proxy
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/.cache":
            return self.answer(200, "application/json", json.dumps(self.server.cache.stats()).encode(), "")
        kept = self.server.cache.get(self.path)
        if kept is not None:
            kind, _, body = kept.partition(b"\n")
            return self.answer(200, kind.decode(), body, "hit")
        try:
            with urllib.request.urlopen(self.server.origin + self.path, timeout=10) as response:
                body, kind = response.read(), response.headers.get("Content-Type", "application/octet-stream")
                seconds = lifetime(response.headers)
        except urllib.error.HTTPError as error:
            return self.answer(error.code, "text/plain", error.reason.encode(), "miss")
        except OSError as error:
            return self.answer(502, "text/plain", str(error).encode(), "miss")
        if seconds and len(body) <= LARGEST:
            self.server.cache.set(self.path, kind.encode() + b"\n" + body, ttl=seconds)
        return self.answer(200, kind, body, "miss")

    def answer(self, status: int, kind: str, body: bytes, how: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Cache", how)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: Any) -> None:
        """Logs nothing."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("origin", help="address of the server whose answers are kept")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--file", help="keep the cache in this file, for the next start")
    arguments = parser.parse_args()
    proxy = Proxy(arguments.origin, arguments.port, survive=arguments.file)
    print(f"listening at http://127.0.0.1:{proxy.server_port}", flush=True)
    try:
        proxy.serve_forever()
    except KeyboardInterrupt:
        proxy.cache.sync()


if __name__ == "__main__":
    main()
