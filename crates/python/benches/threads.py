"""Reads from the device by threads of Python, single and in batches: shows that they overlap.

    python crates/python/benches/threads.py --items 2000000 --dir /a/directory/on/the/device

The row cache is off, so that each get reads a page.
"""

from __future__ import annotations

import argparse
import pathlib
import random
import shutil
import threading
import time

import alluvium_db

BATCH = 64


def rate(work, threads, seconds):
    """Items per second of ``threads`` threads that call ``work``, which returns how many it looked up."""
    counts = [0] * threads
    end = time.perf_counter() + seconds

    def run(number):
        while time.perf_counter() < end:
            counts[number] += work()

    started = time.perf_counter()
    running = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return sum(counts) / (time.perf_counter() - started)


def main():
    """Loads a database and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=2_000_000)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--dir", default=".", help="where the database is made")
    arguments = parser.parse_args()
    path = pathlib.Path(arguments.dir) / "threads"
    shutil.rmtree(path, ignore_errors=True)

    def key(number):
        return b"%016d" % number

    with alluvium_db.open(path, plan="silt", durability="buffered", row_cache_bytes_max=0) as db:
        with db.ingest() as load:
            load.put_many((key(number), bytes(100)) for number in range(arguments.items))

        def single():
            for _ in range(16):
                assert db[key(random.randrange(arguments.items))]
            return 16

        def batch():
            keys = [key(random.randrange(arguments.items)) for _ in range(BATCH)]
            assert None not in db.get_many(keys)
            return BATCH

        print(f"| threads | db[key] K/s | get_many of {BATCH} K/s |\n|---:|---:|---:|")
        for threads in (1, 2, 4, 8, 16, 32):
            rates = [rate(work, threads, arguments.seconds) / 1000 for work in (single, batch)]
            print(f"| {threads} | {rates[0]:.1f} | {rates[1]:.1f} |", flush=True)
        reads = db.stats()["traffic"]["page_reads"] / db.stats()["traffic"]["gets"]
        print(f"\n{reads:.2f} reads a get")
    shutil.rmtree(path)


if __name__ == "__main__":
    main()
