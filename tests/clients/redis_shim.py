#!/usr/bin/env python3
"""Stands for src/redis-server in Redis' suite where its tests start their own servers: translates the configuration
file, prints the lines for which the suite waits, and becomes the program that ALLUVIUM_BINARY names.

usage: redis_shim.py CONFIG [ARGUMENT ...]
"""

import os
import pathlib
import shlex
import sys


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("--"):
        sys.exit("the suite's own options are not translated")
    settings, users = {}, []
    for line in pathlib.Path(sys.argv[1]).read_text(encoding="latin-1").splitlines():
        name, _, value = line.strip().partition(" ")
        if name.lower() == "user":
            users.append(shlex.split(value)[0] if value.startswith('"') else value)
        elif name and not name.startswith("#"):
            settings[name.lower()] = " ".join(shlex.split(value)) if value[:1] in "\"'" else value
    directory = pathlib.Path(settings.get("dir", ".")).absolute()
    words = [os.environ["ALLUVIUM_BINARY"], "serve", "--dir", str(directory / "data"), "--port", settings["port"],
             "--durability", "buffered", *os.environ.get("ALLUVIUM_OPTIONS", "").split()]
    if settings.get("requirepass"):
        os.environ["ALLUVIUM_PASSWORD"] = settings["requirepass"]
    if settings.get("aclfile"):
        words += ["--acl-file", str(directory / settings["aclfile"])]
    elif users:
        file = directory / "users.acl"
        file.write_text("".join(f"user {user}\n" for user in users), encoding="latin-1")
        words += ["--acl-file", str(file)]
    print(f"1:M PID: {os.getpid()}\nServer initialized\nReady to accept connections", flush=True)
    os.execv(words[0], words)


if __name__ == "__main__":
    main()
