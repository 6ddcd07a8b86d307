"""Alluvium: a key-value store for very many small items on very little memory.

>>> import alluvium_db, tempfile
>>> with alluvium_db.open(tempfile.mkdtemp(), durability="buffered") as db:
...     db[b"key"] = b"value"
...     db.get_many([b"key", b"absent"])
[b'value', None]

Batches are the fast way: ``put_many``, ``get_many``, ``put_arrow``, ``get_arrow``, ``put_fixed``, ``get_fixed``. The
modules ``aio``, ``dbm`` and ``cache`` have other faces; ``bulk``, ``spark`` and ``ray`` build data in parallel;
``errors`` has the exceptions.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping

from . import errors
from ._native import (
    Batch,
    BuildJob,
    Cache,
    Database,
    Ingest,
    ItemIterator,
    Keyspace,
    KeyspaceSnapshot,
    ShardWriter,
    Snapshot,
    _note_fork,
    abort_build,
    adopt,
    backups,
    build_shards,
    check_build,
    commit_build,
    open,
    repair,
    restore,
    versions,
)
from .errors import *  # noqa: F403
from .transaction import Transaction

__all__ = [
    "Batch",
    "BuildJob",
    "Cache",
    "Database",
    "Ingest",
    "ItemIterator",
    "Keyspace",
    "KeyspaceSnapshot",
    "ShardWriter",
    "Snapshot",
    "Transaction",
    "abort_build",
    "adopt",
    "backups",
    "build_shards",
    "check_build",
    "commit_build",
    "errors",
    "open",
    "repair",
    "restore",
    "versions",
    *errors.__all__,
]

MutableMapping.register(Keyspace)
Mapping.register(KeyspaceSnapshot)
os.register_at_fork(after_in_child=_note_fork)
