"""What the checks of applications share: see `applications.py`."""

import socket
import time

CHECKS = []


class NotInstalled(Exception):
    """The application, or what runs it."""


def check(function):
    CHECKS.append(function)
    return function


def equal(found, expected):
    assert found == expected, f"found {found!r}, expected {expected!r}"


def client(port, **options):
    import redis

    return redis.Redis(port=port, **options)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(port, process):
    deadline = time.time() + 30
    while time.time() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    process.kill()
    raise SystemExit(f"{process.args[0]} does not start")
