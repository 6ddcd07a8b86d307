"""Finds files with the same contents in a tree, and remembers them for the next run.

    python deduplicate_files.py a/directory --index seen

A file is read once: size and time of change tell whether the stored hash still holds. Contents that were seen in any
earlier run, also in another tree, count as seen. A file costs two items, some 200 bytes on disk and about a byte of
memory, so hundreds of millions of files fit.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import pathlib
import struct
from collections.abc import Iterator

import alluvium_db

BATCH = 10_000
STATE = struct.Struct("<QQ32s")  # bytes, nanoseconds of the change, hash


def files_of(root: pathlib.Path) -> Iterator[list[os.DirEntry[str]]]:
    """Regular files below a directory, in batches. Symbolic links are not followed."""
    batch: list[os.DirEntry[str]] = []
    directories = [str(root)]
    while directories:
        with os.scandir(directories.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    directories.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    batch.append(entry)
        if len(batch) >= BATCH:
            yield batch
            batch = []
    yield batch


def hash_of(path: str) -> bytes:
    """BLAKE2b of the contents, 32 bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32)).digest()


class Index:
    """What is known of files by their paths, and the first file with each contents."""

    def __init__(self, db: alluvium_db.Database) -> None:
        self._files, self._contents = db.keyspace("files"), db.keyspace("contents")

    def duplicates(self, batch: list[os.DirEntry[str]]) -> Iterator[tuple[str, str]]:
        """Pairs of a file and an earlier file with the same contents."""
        paths = [os.path.realpath(entry.path) for entry in batch]
        known = self._files.get_many([os.fsencode(path) for path in paths])
        hashes, changed = [], []
        for path, entry, stored in zip(paths, batch, known, strict=True):
            state = entry.stat(follow_symlinks=False)
            if stored is not None and STATE.unpack(stored)[:2] == (state.st_size, state.st_mtime_ns):
                hashes.append(STATE.unpack(stored)[2])
            else:
                hashes.append(hash_of(path))
                changed.append((os.fsencode(path), STATE.pack(state.st_size, state.st_mtime_ns, hashes[-1])))
        firsts = dict(zip(hashes, self._contents.get_many(hashes), strict=True))
        new = {}
        for path, digest in zip(paths, hashes, strict=True):
            first = firsts[digest]
            if first is None or not os.path.exists(first):
                firsts[digest] = new[digest] = os.fsencode(path)
            elif os.fsdecode(first) != path:
                yield path, os.fsdecode(first)
        self._contents.put_many(new)
        self._files.put_many(changed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--index", default="seen", help="directory of the database")
    arguments = parser.parse_args()
    files = repeated = spare = 0
    with alluvium_db.open(arguments.index, durability="process") as db:
        index = Index(db)
        for batch in files_of(arguments.directory):
            files += len(batch)
            for path, first in index.duplicates(batch):
                print(f"{path}  as  {first}")
                repeated += 1
                spare += os.path.getsize(path)
    print(f"{files} files, {repeated} are as an earlier one: {spare} bytes")


if __name__ == "__main__":
    main()
