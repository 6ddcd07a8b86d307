"""A cache of Python objects on disk, with the face of ``diskcache.Cache``: most programs change their import only."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ._native import open as _open
from .errors import NotANumberError, SettingsError
from .serializer import Plain, Serializer

_ABSENT = object()

#: The smallest size that leaves room for the log and merges.
SIZE_LIMIT_MIN = 256 << 20


class DiskCache:
    """A cache in a directory: objects under keys, each until it expires, or is among the oldest when it is full.

    Keys are plain data (:class:`alluvium_db.serializer.Plain`). So are values, unless ``serializer`` is given:
    ``alluvium_db.serializer.Pickle()`` stores any object, and a changed file can then run code.

    ``size_limit`` is the maximum number of bytes on disk, 1 GiB by default and at least 256 MiB; None is no limit.
    ``options`` are those of :func:`alluvium_db.open`; the durability is "process" unless given. One process at a time
    has the directory open; its threads may all use the same cache.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        size_limit: int | None = 1 << 30,
        serializer: Serializer | None = None,
        **options: Any,
    ) -> None:
        if size_limit is not None and size_limit < SIZE_LIMIT_MIN:
            raise SettingsError(f"a size limit of {size_limit} bytes is too small: give {SIZE_LIMIT_MIN} or more")
        options.setdefault("durability", "process")
        if size_limit is not None:
            options.update(disk_bytes_max=size_limit, drop_oldest=True)
        self._keys = Plain()
        self._values: Serializer = Plain() if serializer is None else serializer
        self._items = _open(directory, **options)
        self.directory = os.fspath(directory)

    def set(self, key: Any, value: Any, expire: float | None = None) -> bool:
        """Stores ``value`` for ``expire`` seconds, or as long as there is room."""
        self._items.put(self._keys.dumps(key), self._values.dumps(value), ttl=expire)
        return True

    def set_many(self, items: Any, expire: float | None = None) -> None:
        """Stores many items, of a mapping or an iterable of pairs."""
        pairs = items.items() if hasattr(items, "items") else items
        dumped = [(self._keys.dumps(key), self._values.dumps(value)) for key, value in pairs]
        self._items.put_many(dumped, ttl=expire)

    def get(self, key: Any, default: Any = None, expire_time: bool = False) -> Any:
        """The value of ``key``, or ``default``; with ``expire_time`` also when it expires, in seconds since 1970."""
        if expire_time:
            found = self._items.get_with_metadata(self._keys.dumps(key))
            return (default, None) if found is None else (self._values.loads(found[0]), found[2])
        stored = self._items.get(self._keys.dumps(key))
        return default if stored is None else self._values.loads(stored)

    def get_many(self, keys: Iterable[Any], default: Any = None) -> list[Any]:
        """The values of many keys, in their order; all reads are in flight together."""
        found = self._items.get_many([self._keys.dumps(key) for key in keys])
        return [default if stored is None else self._values.loads(stored) for stored in found]

    def add(self, key: Any, value: Any, expire: float | None = None) -> bool:
        """Stores ``value`` if ``key`` is absent; returns whether it did. Atomic."""
        stored = self._keys.dumps(key)
        batch = self._items.batch()
        batch.require_absent(stored)
        batch.put(stored, self._values.dumps(value), ttl=expire)
        return batch.try_commit()

    def incr(self, key: Any, delta: int = 1, default: int | None = 0) -> int:
        """Adds ``delta`` to a number and returns the sum. An absent key counts as ``default``; KeyError if None."""
        total = 0

        def add(stored: bytes | None) -> bytes:
            nonlocal total
            if stored is None:
                if default is None:
                    raise KeyError(key)
                number = default
            else:
                number = self._values.loads(stored)
                if type(number) is not int:
                    raise NotANumberError(f"the value of {key!r} is no int")
            total = number + delta
            return self._values.dumps(total)

        self._items.modify(self._keys.dumps(key), add)
        return total

    def decr(self, key: Any, delta: int = 1, default: int | None = 0) -> int:
        """Subtracts ``delta``: see :meth:`incr`."""
        return self.incr(key, -delta, default)

    def pop(self, key: Any, default: Any = None) -> Any:
        """Removes ``key`` and returns its value, or ``default``. Atomic."""
        stored = self._items.pop(self._keys.dumps(key), None)
        return default if stored is None else self._values.loads(stored)

    def delete(self, key: Any) -> bool:
        """Removes ``key``; returns whether there was an item."""
        return self._items.pop(self._keys.dumps(key), None) is not None

    def touch(self, key: Any, expire: float | None = None) -> bool:
        """Lets ``key`` expire in ``expire`` seconds, or never; returns whether there is an item."""
        return self._items.touch(self._keys.dumps(key), expire)

    def memoize(
        self, name: str | None = None, expire: float | None = None
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """A decorator: results are kept under the function's name and arguments, which must be plain data.

        The function that it returns has ``__cache_key__(*args, **kwargs)``, the key of a call.
        """

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            prefix = name or f"{function.__module__}.{function.__qualname__}"

            def cache_key(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
                dumped = [self._keys.dumps(argument).decode("latin-1") for argument in args]
                named = [[word, self._keys.dumps(kwargs[word]).decode("latin-1")] for word in sorted(kwargs)]
                return (prefix, dumped, named)

            @functools.wraps(function)
            def remembered(*args: Any, **kwargs: Any) -> Any:
                key = cache_key(*args, **kwargs)
                value = self.get(key, _ABSENT)
                if value is _ABSENT:
                    value = function(*args, **kwargs)
                    self.set(key, value, expire)
                return value

            remembered.__cache_key__ = cache_key  # type: ignore[attr-defined]
            return remembered

        return decorate

    def volume(self) -> int:
        """Bytes on disk."""
        return sum(entry.stat().st_blocks * 512 for entry in os.scandir(self.directory) if entry.is_file())

    def stats(self) -> dict[str, Any]:
        """Figures of the database below."""
        return self._items.stats()

    def clear(self) -> None:
        """Removes all items."""
        self._items.clear()

    def close(self) -> None:
        """Closes the cache; what it has is there when it is opened again."""
        self._items.close()

    def __getitem__(self, key: Any) -> Any:
        stored = self._items.get(self._keys.dumps(key))
        if stored is None:
            raise KeyError(key)
        return self._values.loads(stored)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.set(key, value)

    def __delitem__(self, key: Any) -> None:
        if not self.delete(key):
            raise KeyError(key)

    def __contains__(self, key: Any) -> bool:
        return self._keys.dumps(key) in self._items

    def __iter__(self) -> Iterator[Any]:
        return map(self._keys.loads, self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __bool__(self) -> bool:
        return True

    def __enter__(self) -> DiskCache:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
