"""datasketch's MinHashLSH in a database: signatures in, near duplicates out, and the memory of it all.

    python crates/python/benches/lsh.py --signatures 10000000 --dir /a/directory/on/the/device

Signatures are random; every thousandth has a twin with an eighth of its places changed. All twins must be found by a
query, unless no band is equal, which the program knows; and no query may find anything else. Memory is the process's,
with Python, numpy and datasketch. ``--dict`` measures datasketch's own index in dicts, for sizes that fit.
"""

from __future__ import annotations

import argparse
import pathlib
import resource
import shutil
import sys
import time

import datasketch
import numpy

import alluvium_db
from alluvium_db.datasketch import MinHashLSH

CHUNK = 20_000
PLACES = 128
TWIN_EVERY = 1000


def chunk_of(start: int, count: int) -> numpy.ndarray:
    """The signatures from one number on, the same in each call."""
    return numpy.random.default_rng(start).integers(0, 1 << 32, (count, PLACES), dtype="u4")


def twin_of(signature: numpy.ndarray) -> numpy.ndarray:
    """A signature with an eighth of its places changed, always the same."""
    random = numpy.random.default_rng(int(signature[0]))
    twin = signature.copy()
    twin[random.choice(PLACES, PLACES // 8, replace=False)] ^= 1
    return twin


def minhash(signature: numpy.ndarray) -> datasketch.LeanMinHash:
    """The signature as datasketch has it."""
    return datasketch.LeanMinHash(seed=1, hashvalues=signature, scheme="affine32")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--signatures", type=int, default=1_000_000)
    parser.add_argument("--threshold", type=float, default=0.8)
    parser.add_argument("--memory-mib", type=int, default=1024, help="memory of the process")
    parser.add_argument("--dir", type=pathlib.Path, default=pathlib.Path("lsh-bench"))
    parser.add_argument("--dict", action="store_true", help="measure datasketch's own index instead")
    arguments = parser.parse_args()
    shutil.rmtree(arguments.dir, ignore_errors=True)
    if arguments.dict:
        db, index = None, datasketch.MinHashLSH(threshold=arguments.threshold, num_perm=PLACES)
    else:
        db = alluvium_db.open(
            arguments.dir,
            durability="buffered",
            expected_items=arguments.signatures * 10,
            process_memory_bytes_max=arguments.memory_mib << 20,
        )
        index = MinHashLSH(db, threshold=arguments.threshold, num_perm=PLACES)
    print(f"{arguments.signatures} signatures of {PLACES} places, {index.b} bands of {index.r}", flush=True)

    start = shown = time.perf_counter()
    with index.insertion_session() as session:
        for first in range(0, arguments.signatures, CHUNK):
            for number, signature in enumerate(chunk_of(first, min(CHUNK, arguments.signatures - first)), first):
                session.insert(number.to_bytes(8, "big"), minhash(signature))
            if time.perf_counter() - shown > 10:
                shown = time.perf_counter()
                print(f"{first / arguments.signatures:.0%}, {first / (shown - start):,.0f}/s, {rss()} MiB", flush=True)
    seconds = time.perf_counter() - start
    print(f"inserted in {seconds:.0f} s, {arguments.signatures / seconds:,.0f}/s, {rss()} MiB resident", flush=True)

    wrong = found = reachable = 0
    queries, start = 0, time.perf_counter()
    for first in range(0, arguments.signatures, CHUNK * 10):
        for place, signature in enumerate(chunk_of(first, min(CHUNK, arguments.signatures - first))[::TWIN_EVERY]):
            key, twin = (first + place * TWIN_EVERY).to_bytes(8, "big"), twin_of(signature)
            expected = {key} if any((signature[a:z] == twin[a:z]).all() for a, z in index.hashranges) else set()
            answer = set(index.query(minhash(twin)))
            wrong += answer != expected
            found, reachable, queries = found + len(answer), reachable + len(expected), queries + 1
    seconds = time.perf_counter() - start
    print(f"{queries} queries in {seconds:.1f} s, {seconds / queries * 1e3:.2f} ms each; {found} of {reachable} twins found")
    if db is not None:
        db.wait_idle()
        db.close()
        disk = sum(file.stat().st_size for file in arguments.dir.rglob("*"))
        print(f"{disk / arguments.signatures:.0f} bytes of disk a signature")
        shutil.rmtree(arguments.dir)
    good = not wrong and found == reachable
    print(f"{'good' if good else 'WRONG'}: {wrong} wrong answers, {rss()} MiB resident at most")
    return 0 if good else 1


def rss() -> int:
    """Maximum memory that was resident, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


if __name__ == "__main__":
    sys.exit(main())
