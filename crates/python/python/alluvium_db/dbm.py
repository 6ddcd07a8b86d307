"""A database with the face of the standard module ``dbm``; ``shelve.Shelf(alluvium_db.dbm.open(path, "c"))`` works.

The database is a directory, with the items in its keyspace "default".
"""

from __future__ import annotations

import os
from collections.abc import Iterator, MutableMapping
from typing import Any

from ._native import Database
from ._native import open as _open
from .errors import AlluviumError

error = AlluviumError


class Dbm(MutableMapping):
    """An open database: bytes (or str, stored as UTF-8) to bytes."""

    def __init__(self, database: Database, read_only: bool) -> None:
        self._database = database
        self._read_only = read_only

    def __getitem__(self, key: Any) -> bytes:
        return self._database[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._database[key] = value

    def __delitem__(self, key: Any) -> None:
        del self._database[key]

    def __contains__(self, key: Any) -> bool:
        return key in self._database

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._database)

    def __len__(self) -> int:
        return len(self._database)

    def keys(self) -> list[bytes]:  # type: ignore[override]
        """All keys, in a list, as modules for dbm return them."""
        return list(self._database)

    def sync(self) -> None:
        """Makes all writes so far survive a power cut."""
        if not self._read_only:
            self._database.persist()

    def reorganize(self) -> None:
        """Frees the space of removed items."""
        self._database.compact()

    def clear(self) -> None:
        """Removes all items."""
        self._database.clear()

    def close(self) -> None:
        """Closes the database."""
        self._database.close()

    def __enter__(self) -> Dbm:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def open(file: str | os.PathLike[str], flag: str = "r", mode: int = 0o666, **options: Any) -> Dbm:
    """Opens the database in the directory ``file``.

    ``flag`` is "r" (for reading only), "w" (an existing one), "c" (created if there is none) or "n" (a new, empty
    one). ``mode`` is there for compatibility and has no effect. ``options`` are those of :func:`alluvium_db.open`; the
    durability is "process" unless given: a crash of the process loses nothing, :meth:`Dbm.sync` protects from a power
    cut.
    """
    del mode
    if flag not in ("r", "w", "c", "n"):
        raise ValueError(f"flag {flag!r}: give 'r', 'w', 'c' or 'n'")
    options.setdefault("durability", "process")
    database = _open(file, read_only=flag == "r", create=flag in ("c", "n"), **options)
    if flag == "n":
        database.clear()
    return Dbm(database, flag == "r")
