"""Finds texts that are nearly the same: MinHash signatures, whose bands are groups of one keyspace.

    python near_duplicates.py a/directory/of/texts

A signature is the least value of each of 64 hash functions over the shingles of a text; two texts agree in a share of
the places that is their Jaccard similarity. A band is 4 places. Texts with one equal band are candidates, and all
texts of a band are a group, which is stored together: finding them is one read, and a text costs 16 keys of 24 bytes
on disk and a few bytes of memory, however many texts there are. A second run adds to what the first has stored.
"""

from __future__ import annotations

import argparse
import hashlib
import pathlib
import re
import zlib

import numpy

import alluvium_db

PLACES, BANDS = 64, 16
SHINGLE_WORDS = 5
PRIME = (1 << 61) - 1
_random = numpy.random.default_rng(1)
# The hash functions: (factor * shingle + term) mod 2^64, of which the upper half is used.
FACTORS = _random.integers(1, PRIME, PLACES, dtype="u8") | numpy.uint64(1)
TERMS = _random.integers(0, PRIME, PLACES, dtype="u8")


def shingles(text: str) -> numpy.ndarray:
    """A hash of each sequence of words, as unsigned integers of 8 bytes."""
    words = re.findall(r"\w+", text.lower())
    count = max(1, len(words) - SHINGLE_WORDS + 1)
    found = {" ".join(words[start : start + SHINGLE_WORDS]) for start in range(count)}
    return numpy.array([zlib.crc32(shingle.encode()) for shingle in found], dtype="u8")


def signature(text: str) -> numpy.ndarray:
    """The least value of each hash function over the shingles of the text."""
    hashes = shingles(text)[:, None] * FACTORS[None, :] + TERMS[None, :]
    return (hashes >> numpy.uint64(32)).min(axis=0).astype("<u4")


class NearDuplicates:
    """An index of signatures in a database."""

    def __init__(self, db: alluvium_db.Database) -> None:
        self._texts = db.keyspace("texts")
        # A key is a band (its number and a hash of its places) and a text; the band is the prefix.
        self._bands = db.keyspace("bands", prefix_bytes=9)

    @staticmethod
    def _bands_of(places: numpy.ndarray) -> list[bytes]:
        parts = (part.tobytes() for part in places.reshape(BANDS, -1))
        return [bytes([band]) + hashlib.blake2b(part, digest_size=8).digest() for band, part in enumerate(parts)]

    def add(self, texts: dict[str, str]) -> None:
        """Stores the signatures of texts by their names."""
        signatures = {name.encode(): signature(text) for name, text in texts.items()}
        for name, places in signatures.items():
            self._bands.put_many([(band + name, b"") for band in self._bands_of(places)])
        self._texts.put_many({name: places.tobytes() for name, places in signatures.items()})

    def similar(self, text: str, at_least: float = 0.7) -> list[tuple[float, str]]:
        """Texts with at least this similarity, the most similar first."""
        places = signature(text)
        candidates = {key[9:] for band in self._bands_of(places) for key, _ in self._bands.scan_prefix(band)}
        names = sorted(candidates)
        found = []
        for name, stored in zip(names, self._texts.get_many(names), strict=True):
            if stored is not None:
                similarity = float((numpy.frombuffer(stored, "<u4") == places).mean())
                if similarity >= at_least:
                    found.append((similarity, name.decode()))
        return sorted(found, key=lambda pair: (-pair[0], pair[1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=pathlib.Path, help="its files are the texts")
    parser.add_argument("--index", default="near-duplicates", help="directory of the database")
    parser.add_argument("--at-least", type=float, default=0.7, help="similarity of what is printed")
    arguments = parser.parse_args()
    files = [path for path in sorted(arguments.directory.rglob("*")) if path.is_file()]
    with alluvium_db.open(arguments.index, durability="process") as db:
        index = NearDuplicates(db)
        for start in range(0, len(files), 1000):
            texts = {str(path): path.read_text(errors="replace") for path in files[start : start + 1000]}
            for name, text in texts.items():
                for similarity, other in index.similar(text, arguments.at_least):
                    if other != name:
                        print(f"{similarity:.2f}  {name}  {other}")
                index.add({name: text})
        print(f"{len(files)} texts")


if __name__ == "__main__":
    main()
