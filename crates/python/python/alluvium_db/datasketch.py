"""``datasketch.MinHashLSH`` with its index in a database: more signatures than memory has room for.

Needs ``datasketch``. ``datasketch``'s own index keeps all in dicts, at some kilobytes a signature, or asks a server.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

import datasketch
from datasketch.storage import OrderedStorage, UnorderedStorage

import alluvium_db


def digest(band: bytes) -> bytes:
    """Sixteen bytes of BLAKE2b: what stands for a band's part of a signature in the index."""
    return hashlib.blake2b(band, digest_size=16).digest()


class MinHashLSH(datasketch.MinHashLSH):
    """``datasketch.MinHashLSH`` in a database that the program has opened.

    Each band's buckets are groups of items that are stored together, so a query reads one page a band, and an insertion
    reads nothing but its duplication check. A signature takes a few bytes of memory and some 40 bytes on disk a band.
    Insert by ``insertion_session()``, whose writes are batches.

    What differs from an index in dicts: keys are ``bytes``, or any objects with ``prepickle=True`` (only if nobody else
    can write the database); the index is there when the database is opened again, with the same ``num_perm``, bands
    and ``hashfunc``; ``get_counts`` and ``size`` of a table read the whole index; one program has it open at a time.

    Args:
        db: the database; ``name`` tells several indexes in it apart.
        hashfunc: of a band's part of a signature; results must have one length. Sixteen bytes of BLAKE2b by default.
        buffer_size: writes of a session that are held back at a time, per table.

    Raises:
        ValueError: the stored index has other parameters.
    """

    def __init__(
        self,
        db: alluvium_db.Database,
        name: str = "lsh",
        *,
        threshold: float = 0.9,
        num_perm: int = 128,
        weights: tuple[float, float] = (0.5, 0.5),
        params: tuple[int, int] | None = None,
        prepickle: bool = False,
        hashfunc: Callable[[bytes], bytes] = digest,
    ) -> None:
        super().__init__(
            threshold=threshold,
            num_perm=num_perm,
            weights=weights,
            params=params,
            storage_config={"type": "dict"},
            prepickle=prepickle,
            hashfunc=hashfunc,
        )
        self._require_bytes_keys = not prepickle
        hash_bytes = len(hashfunc(b""))
        self._about = db.keyspace(f"{name}.about")
        self._buckets = db.keyspace(f"{name}.buckets", prefix_bytes=2 + hash_bytes)
        keys = db.keyspace(f"{name}.keys")
        shape = {"num_perm": self.h, "bands": self.b, "rows": self.r, "hash_bytes": hash_bytes, "pickled": prepickle}
        shape["empty_hash"] = hashfunc(b"").hex()
        stored = json.loads(self._about.setdefault("shape", json.dumps(shape)))
        if stored != shape:
            raise ValueError(f"the index {name!r} was made with other parameters: {stored}, not {shape}")
        self._minhash_scheme = json.loads(self._about.get("scheme", b"null"))
        self.hashtables = [_Buckets(self._buckets, band, hash_bytes) for band in range(self.b)]
        self.keys = _Keys(keys, hash_bytes)

    def _insert(self, key: Any, minhash: Any, check_duplication: bool = True, buffer: bool = False) -> None:
        known = self._minhash_scheme
        super()._insert(key, minhash, check_duplication, buffer)
        # The first insertion learns it.
        if self._minhash_scheme != known:
            self._about["scheme"] = json.dumps(self._minhash_scheme)

    def is_empty(self) -> bool:
        """Returns whether nothing is stored. Reads at most one item."""
        return next(iter(self.keys), None) is None


class _Buffered:
    """Writes that a session holds back."""

    def __init__(self, keyspace: alluvium_db.Keyspace) -> None:
        self._keyspace = keyspace
        self._writes: dict[bytes, bytes] = {}

    def _put(self, key: bytes, value: bytes, buffer: bool) -> None:
        self._writes[key] = value
        if not buffer or len(self._writes) >= self.buffer_size:
            self.empty_buffer()

    def empty_buffer(self) -> None:
        if self._writes:
            self._keyspace.put_many(self._writes)
            self._writes = {}


class _Buckets(_Buffered, UnorderedStorage):
    """The buckets of one band: keys are the band, the hash and a member. The band and the hash are the group."""

    def __init__(self, keyspace: alluvium_db.Keyspace, band: int, hash_bytes: int) -> None:
        super().__init__(keyspace)
        self._band = band.to_bytes(2, "big")
        self._group_bytes = 2 + hash_bytes

    def keys(self) -> Iterator[bytes]:
        return (bucket for bucket, _ in self._groups())

    def get(self, key: bytes) -> set[bytes]:
        self.empty_buffer()
        return {found[self._group_bytes :] for found, _ in self._keyspace.scan_prefix(self._band + key)}

    def insert(self, key: bytes, *vals: bytes, buffer: bool = False) -> None:
        for value in vals:
            self._put(self._band + key + value, b"", buffer)

    def remove(self, *keys: bytes, buffer: bool = False) -> None:
        self.empty_buffer()
        for key in keys:
            self._keyspace.delete_prefix(self._band + key)

    def remove_val(self, key: bytes, val: bytes, buffer: bool = False) -> None:
        self.empty_buffer()
        self._keyspace.delete(self._band + key + val)

    def size(self) -> int:
        return sum(1 for _ in self._groups())

    def itemcounts(self, **_options: Any) -> dict[bytes, int]:
        return {bucket: sum(1 for _ in members) for bucket, members in self._groups()}

    def has_key(self, key: bytes) -> bool:
        return bool(self.get(key))

    def _groups(self) -> Iterator[tuple[bytes, Iterable[bytes]]]:
        self.empty_buffer()
        keys = (key for key in self._keyspace if key.startswith(self._band))
        # The items of a group follow each other.
        return ((group[2:], members) for group, members in groupby(keys, lambda key: key[: self._group_bytes]))


class _Keys(_Buffered, OrderedStorage):
    """The hashes of each key's bands, one after the other."""

    def __init__(self, keyspace: alluvium_db.Keyspace, hash_bytes: int) -> None:
        super().__init__(keyspace)
        self._hash_bytes = hash_bytes

    def keys(self) -> Iterator[bytes]:
        self.empty_buffer()
        return iter(self._keyspace)

    def get(self, key: bytes) -> list[bytes]:
        return self.getmany(key)[0]

    def getmany(self, *keys: bytes) -> list[list[bytes]]:
        self.empty_buffer()
        size = self._hash_bytes
        found = self._keyspace.get_many(keys, b"")
        return [[hashes[at : at + size] for at in range(0, len(hashes), size)] for hashes in found]

    def insert(self, key: bytes, *vals: bytes, buffer: bool = False) -> None:
        """Replaces what the key had, which a checked insertion never does."""
        self._put(key, b"".join(vals), buffer)

    def remove(self, *keys: bytes, buffer: bool = False) -> None:
        self.empty_buffer()
        self._keyspace.delete_many(keys)

    def remove_val(self, key: bytes, val: bytes, buffer: bool = False) -> None:
        self.insert(key, *[hash for hash in self.get(key) if hash != val])

    def size(self) -> int:
        self.empty_buffer()
        return len(self._keyspace)

    def itemcounts(self, **_options: Any) -> dict[bytes, int]:
        self.empty_buffer()
        return {key: len(hashes) // self._hash_bytes for key, hashes in self._keyspace.items()}

    def has_key(self, key: bytes) -> bool:
        return key in self._writes or key in self._keyspace
