"""The views that ``keys()``, ``values()`` and ``items()`` return: as those of dict, over items on disk."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any


class Keys(KeysView[bytes]):
    """Keys, in the order of their hashes. ``len`` reads all items."""

    _mapping: Any

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._mapping)


class Values(ValuesView[bytes]):
    """Values, in the order of the hashes of their keys. ``in`` reads all items."""

    _mapping: Any

    def __iter__(self) -> Iterator[bytes]:
        return self._mapping._iter_values()

    def __contains__(self, value: object) -> bool:
        return any(found == value for found in self)


class Items(ItemsView[bytes, bytes]):
    """Pairs of keys and values, in the order of the hashes of keys."""

    _mapping: Any

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return self._mapping._iter_items()


def is_equal(items: Iterable[tuple[bytes, bytes]], other: Any) -> Any:
    """Whether a mapping has exactly these items; NotImplemented for what is no mapping."""
    if not isinstance(other, Mapping):
        return NotImplemented
    return dict(items) == dict(other.items())
