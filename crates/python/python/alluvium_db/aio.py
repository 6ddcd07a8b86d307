"""Databases for asyncio: the same methods, awaited.

Each call runs in a thread of a pool that belongs to the database, so the event loop never waits for a device. A call
costs some 50 microseconds of the event loop: use batches. ``async with await alluvium_db.aio.open(path) as db`` opens
a database and closes it at the end.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import os
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from . import _native

Result = TypeVar("Result")

#: Number of threads of a database unless given: calls at the same time beyond that wait for each other.
THREADS = 8
#: Number of items that an iteration fetches at a time.
FETCHED = 512


class AsyncKeyspace:
    """A keyspace whose methods are awaited; they are those of :class:`alluvium_db.Keyspace`."""

    def __init__(self, keyspace: _native.Keyspace, executor: ThreadPoolExecutor) -> None:
        self._keyspace = keyspace
        self._executor = executor

    async def _run(self, function: Callable[..., Result], *args: Any, **kwargs: Any) -> Result:
        call = functools.partial(function, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    @property
    def name(self) -> str:
        """Its name."""
        return self._keyspace.name

    async def get(self, key: Any, default: Any = None) -> Any:
        """The value of ``key``, or ``default``."""
        return await self._run(self._keyspace.get, key, default)

    async def get_many(self, keys: Iterable[Any], default: Any = None) -> list[Any]:
        """The values of many keys; all reads are in flight together."""
        return await self._run(self._keyspace.get_many, keys, default)

    async def contains(self, key: Any) -> bool:
        """Whether ``key`` is present."""
        return await self._run(self._keyspace.__contains__, key)

    async def contains_many(self, keys: Iterable[Any]) -> list[bool]:
        """Whether each of many keys is present."""
        return await self._run(self._keyspace.contains_many, keys)

    async def put(self, key: Any, value: Any, **extras: Any) -> None:
        """Stores an item."""
        await self._run(self._keyspace.put, key, value, **extras)

    async def put_many(self, items: Any, **extras: Any) -> None:
        """Stores many items."""
        await self._run(self._keyspace.put_many, items, **extras)

    async def delete(self, key: Any) -> None:
        """Removes ``key``."""
        await self._run(self._keyspace.delete, key)

    async def delete_many(self, keys: Iterable[Any], **options: Any) -> None:
        """Removes many keys."""
        await self._run(self._keyspace.delete_many, keys, **options)

    async def pop(self, key: Any, default: Any = None) -> Any:
        """Removes ``key`` and returns its value, or ``default``."""
        return await self._run(self._keyspace.pop, key, default)

    async def increment(self, key: Any, by: int = 1) -> int:
        """Adds to a number and returns the sum."""
        return await self._run(self._keyspace.increment, key, by)

    async def append(self, key: Any, value: Any) -> int:
        """Appends to a value and returns its length."""
        return await self._run(self._keyspace.append, key, value)

    async def compare_and_swap(self, key: Any, expected: Any, new: Any) -> bool:
        """Stores ``new`` if the value is ``expected``."""
        return await self._run(self._keyspace.compare_and_swap, key, expected, new)

    async def touch(self, key: Any, ttl: float | None) -> bool:
        """Changes the expiry of ``key``."""
        return await self._run(self._keyspace.touch, key, ttl)

    async def put_arrow(self, keys: Any, values: Any, **extras: Any) -> None:
        """Stores two columns of Arrow."""
        await self._run(self._keyspace.put_arrow, keys, values, **extras)

    async def get_arrow(self, keys: Any) -> Any:
        """The values of a column of keys."""
        return await self._run(self._keyspace.get_arrow, keys)

    async def put_fixed(self, keys: Any, values: Any, **extras: Any) -> None:
        """Stores two arrays of numpy."""
        await self._run(self._keyspace.put_fixed, keys, values, **extras)

    async def get_fixed(self, keys: Any, like: Any) -> Any:
        """The values of an array of keys, and whether each is present."""
        return await self._run(self._keyspace.get_fixed, keys, like)

    async def count(self) -> int:
        """The exact number of items. Reads all of them."""
        return await self._run(self._keyspace.__len__)

    async def clear(self) -> None:
        """Removes all items."""
        await self._run(self._keyspace.clear)

    def items(self) -> AsyncIterator[tuple[bytes, bytes]]:
        """All items: ``async for key, value in db.items()``."""
        return self._each(lambda: iter(self._keyspace.items()))

    def scan_prefix(self, prefix: Any) -> AsyncIterator[tuple[bytes, bytes]]:
        """The items of one prefix."""
        return self._each(lambda: self._keyspace.scan_prefix(prefix))

    async def delete_prefix(self, prefix: Any) -> None:
        """Removes all items of one prefix."""
        await self._run(self._keyspace.delete_prefix, prefix)

    async def _each(self, begin: Callable[[], Any]) -> AsyncIterator[tuple[bytes, bytes]]:
        iterator = await self._run(begin)

        def fetch() -> list[Any]:
            return list(itertools.islice(iterator, FETCHED))

        while items := await self._run(fetch):
            for item in items:
                yield item


class AsyncDatabase(AsyncKeyspace):
    """An open database whose methods are awaited; they are those of :class:`alluvium_db.Database`."""

    _keyspace: _native.Database

    async def keyspace(self, name: str, **options: Any) -> AsyncKeyspace:
        """The keyspace of this name."""
        return AsyncKeyspace(await self._run(self._keyspace.keyspace, name, **options), self._executor)

    async def keyspaces(self) -> list[str]:
        """The names of all keyspaces."""
        return await self._run(self._keyspace.keyspaces)

    async def drop_keyspace(self, name: str) -> bool:
        """Removes a keyspace."""
        return await self._run(self._keyspace.drop_keyspace, name)

    async def transaction(self, function: Callable[[Any], Result], *, attempts: int = 1000) -> Result:
        """Runs a transaction in a thread. ``function`` is a plain function, since it may run several times."""
        return await self._run(self._keyspace.transaction, function, attempts=attempts)

    async def persist(self) -> None:
        """Makes all writes so far survive a power cut."""
        await self._run(self._keyspace.persist)

    async def flush(self) -> None:
        """Moves the items of the log to tables."""
        await self._run(self._keyspace.flush)

    async def compact(self) -> None:
        """Merges everything."""
        await self._run(self._keyspace.compact)

    async def stats(self) -> dict[str, Any]:
        """Figures about the database."""
        return await self._run(self._keyspace.stats)

    async def verify(self) -> dict[str, Any]:
        """Reads and checks everything that is stored."""
        return await self._run(self._keyspace.verify)

    async def checkpoint(self, path: str | os.PathLike[str], **options: Any) -> dict[str, int]:
        """Makes a copy of the database."""
        return await self._run(self._keyspace.checkpoint, path, **options)

    async def close(self) -> None:
        """Closes the database, after the calls that have begun."""
        await self._run(self._keyspace.close)
        self._executor.shutdown(wait=False)

    async def __aenter__(self) -> AsyncDatabase:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()


async def open(path: str | os.PathLike[str], *, threads: int = THREADS, **options: Any) -> AsyncDatabase:
    """Opens a database: see :func:`alluvium_db.open`. At most ``threads`` calls run at the same time."""
    executor = ThreadPoolExecutor(threads, thread_name_prefix="alluvium")
    call = functools.partial(_native.open, path, **options)
    try:
        database = await asyncio.get_running_loop().run_in_executor(executor, call)
    except BaseException:
        executor.shutdown(wait=False)
        raise
    return AsyncDatabase(database, executor)
