#!/usr/bin/env python3
"""Looks at the server's page in a headless Chromium, and checks what it shows.

    tests/page/check.py [--screenshots FOLDER] [BINARY]     BINARY defaults to target/release/alluvium

Needs Python, and Chromium (Debian: chromium-headless-shell). Exits 0 when the page shows what it should, 1 when not,
77 when there is no browser.
"""

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import devtools

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


class Server:
    """A running `alluvium serve`."""

    def __init__(self, binary):
        self.directory = tempfile.TemporaryDirectory()
        arguments = ["serve", "--dir", os.path.join(self.directory.name, "data"), "--port", "0"]
        arguments += ["--metrics", "127.0.0.1:0", "--durability", "buffered", "--log", "json"]
        self.process = subprocess.Popen([binary, *arguments], stderr=subprocess.PIPE, text=True)
        serving = next(line for line in map(json.loads, self.process.stderr) if line["message"] == "serving")
        self.port = int(serving["address"].rsplit(":", 1)[1])
        self.metrics = serving["metrics"].removesuffix("/metrics")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)


class Load(threading.Thread):
    """Writes and reads in pipelines until it is stopped."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.stopped = port, threading.Event()

    def run(self):
        client = socket.create_connection(("127.0.0.1", self.port))
        replies = client.makefile("rb")
        round_number = 0
        while not self.stopped.is_set():
            lines, round_number = [], round_number + 1
            for number in range(200):
                lines.append(f"SET key{(round_number * 200 + number) % 300000} {'x' * 80}")
                lines.append(f"GET key{number * 37 % 300000}")
            lines.append("INCR word")
            lines.append("SET word word")
            client.sendall("".join(line + "\r\n" for line in lines).encode())
            for line in lines:
                reply = replies.readline()
                if reply.startswith(b"$") and not reply.startswith(b"$-1"):
                    replies.readline()
        client.close()


def check(page, screenshots):
    text = lambda place: page.value(f"document.getElementById('{place}').textContent")
    page.until("document.getElementById('health')?.textContent === 'healthy'", "the health is shown")
    page.value("document.getElementById('period').value = '1', document.getElementById('period').onchange()")
    page.until("points.length >= 6", "the page follows the server")
    page.until("document.getElementById('tile-rewrites').textContent !== '–'", "rewrites are measured")
    for tile in ["ops", "p99", "rewrites", "readsaget", "hitratio", "memorytile", "disk", "stall", "clients", "cpu"]:
        shown = text(f"tile-{tile}")
        assert re.fullmatch(r"[0-9.]+( [kMGT]| ?[µmn]?s| %| [KMGT]?i?B)?(/s)?", shown), f"{tile} shows {shown!r}"
    assert float(text("tile-ops").split()[0]) > 0
    assert re.search(r"predicted [0-9.]+ to [0-9.]+", text("tiles")), text("tiles")
    # Each plot has a line of several points, and names its lines.
    for plot in ["throughput", "latency", "writes", "amplification", "reads", "hits", "memoryplot", "network"]:
        paths = page.value(f"[...document.querySelectorAll('#{plot} path')].map(path => path.getAttribute('d'))")
        assert paths and max(path.count("L") for path in paths) >= 3, f"{plot} is empty: {paths}"
        assert "NaN" not in " ".join(paths) and "Infinity" not in " ".join(paths), plot
        assert text(f"{plot}-legend"), plot
    assert "set" in text("throughput-legend") and "get" in text("throughput-legend")
    commands = page.value("[...document.querySelectorAll('#commands tr')].map(row => row.cells[0].textContent)")
    assert {"command", "get", "set", "incr"} <= set(commands), commands
    errors = page.value("[...document.querySelectorAll('#commands tr')].find(row => row.cells[0].textContent === 'incr').cells[7].textContent")
    assert errors != "0", "failed commands are shown"
    assert {"log", "level0"} <= set(text("levels").replace("level0", " level0 ").replace("log", " log ").split()), text("levels")
    assert page.value("[...document.querySelectorAll('#levels i')].some(bar => bar.offsetWidth > 20)"), "levels are bars"
    assert "log > " in text("plan") and "bytes written per byte put" in text("plan"), text("plan")
    assert "filters" in text("memory") and "throttle" in text("waits")
    # A command of its own in the plot of latencies.
    page.value("document.getElementById('latency-of').value = 'get', document.getElementById('latency-of').onchange()")
    assert page.value("latencyOf") == "get" and "p99" in text("latency-legend")
    # The dark colours are others, and the text stays readable.
    light = page.value("getComputedStyle(document.body).backgroundColor")
    if screenshots:
        page.screenshot(os.path.join(screenshots, "light.png"))
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    dark = page.value("getComputedStyle(document.body).backgroundColor")
    assert light != dark, "there is a dark mode"
    if screenshots:
        time.sleep(1.5)
        page.screenshot(os.path.join(screenshots, "dark.png"))
    # Narrow windows scroll in one direction only.
    page.call("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=False)
    width = page.value("document.documentElement.scrollWidth")
    assert width <= 390, f"a window of 390 is {width} wide"
    if screenshots:
        page.screenshot(os.path.join(screenshots, "narrow.png"))
    page.value("document.getElementById('pause').click()")
    seen = page.value("points.length")
    time.sleep(2)
    assert page.value("points.length") == seen, "a paused page stays as it is"
    page.value("document.getElementById('pause').click()")
    page.until(f"points.length > {seen}", "it continues")


def main():
    parser = argparse.ArgumentParser(description="Checks what the server's page shows.")
    parser.add_argument("--screenshots", metavar="FOLDER")
    parser.add_argument("binary", nargs="?", default=os.path.join(ROOT, "target", "release", "alluvium"))
    options = parser.parse_args()
    if devtools.program() is None:
        print("no browser: install chromium-headless-shell", file=sys.stderr)
        return 77
    server = Server(options.binary)
    load = Load(server.port)
    load.start()
    page = devtools.Page(server.metrics + "/")
    try:
        check(page, options.screenshots)
        load.stopped.set()
        load.join()
        assert server.stop() == 0
        page.until("document.getElementById('health').textContent === 'no answer'", "the end of the server is shown")
        assert not page.problems, page.problems
    finally:
        page.close()
        if server.process.poll() is None:
            server.process.kill()
    print("the page shows what it should")
    return 0


if __name__ == "__main__":
    sys.exit(main())
