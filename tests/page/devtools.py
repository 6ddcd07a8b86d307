"""A headless Chromium, driven over its DevTools protocol with the standard library alone."""

import base64
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request

PROGRAMS = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]


def program():
    """The path of a browser, or None."""
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


class WebSocket:
    """The client side of RFC 6455, for text messages."""

    def __init__(self, url):
        host, path = url.removeprefix("ws://").split("/", 1)
        name, port = host.rsplit(":", 1)
        self.socket = socket.create_connection((name, int(port)), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self._read(1)
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise RuntimeError(f"no web socket: {head!r}")

    def _read(self, count):
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise RuntimeError("the browser has closed the connection")
            data += more
        return data

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        if len(data) < 126:
            head = struct.pack("!BB", 0x81, 0x80 | len(data))
        elif len(data) < 1 << 16:
            head = struct.pack("!BBH", 0x81, 0x80 | 126, len(data))
        else:
            head = struct.pack("!BBQ", 0x81, 0x80 | 127, len(data))
        self.socket.sendall(head + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(data)))

    def receive(self):
        text = b""
        while True:
            first, second = self._read(2)
            count = second & 0x7F
            if count == 126:
                count = struct.unpack("!H", self._read(2))[0]
            elif count == 127:
                count = struct.unpack("!Q", self._read(8))[0]
            data = self._read(count)
            if first & 0x0F in (0, 1):
                text += data
                if first & 0x80:
                    return text.decode()


class Page:
    """A page in a browser of its own, which ends with it."""

    def __init__(self, url, width=1400, height=1000):
        self.profile = tempfile.mkdtemp()
        arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"]
        arguments += [f"--user-data-dir={self.profile}", f"--window-size={width},{height}", "about:blank"]
        # In a group of its own: the program may be a script that starts the browser.
        self.browser = subprocess.Popen(
            [program(), *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        self.number = 0
        self.problems = []
        ports = os.path.join(self.profile, "DevToolsActivePort")
        self.until(lambda: os.path.exists(ports) and open(ports).read().count("\n") > 0, "the browser starts")
        port = open(ports).readline().strip()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
            target = next(target for target in json.load(answer) if target["type"] == "page")
        self.socket = WebSocket(target["webSocketDebuggerUrl"])
        for domain in ["Page", "Runtime", "Network", "Log"]:
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=url)

    def call(self, method, **parameters):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.receive())
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self._note(message)

    def _note(self, message):
        """Remembers what the page did wrong, and what it asked for."""
        parameters = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(parameters["exceptionDetails"]))
        if message.get("method") == "Network.requestWillBeSent":
            url = parameters["request"]["url"]
            if not url.startswith(("http://127.0.0.1:", "about:", "data:")):
                self.problems.append(f"the page asked for {url}")

    def value(self, script):
        """The value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def until(self, condition, what, seconds=30):
        """Waits until `condition`, a function or a script, is true."""
        end = time.monotonic() + seconds
        while not (condition() if callable(condition) else self.value(condition)):
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds} s: {what}")
            time.sleep(0.1)

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]))

    def close(self):
        os.killpg(self.browser.pid, signal.SIGKILL)
        self.browser.wait()
        shutil.rmtree(self.profile, ignore_errors=True)
