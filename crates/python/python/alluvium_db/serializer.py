"""How :class:`alluvium_db.cache.DiskCache` stores Python objects as bytes."""

from __future__ import annotations

import json
import pickle
from typing import Any, Protocol


class Serializer(Protocol):
    """Objects to bytes and back. Equal keys must give equal bytes."""

    def dumps(self, value: Any) -> bytes:
        """The object as bytes."""

    def loads(self, stored: bytes) -> Any:
        """The object of these bytes."""


class Plain:
    """Plain data: bytes, str, int, float, bool, None, and lists, dicts and flat tuples of JSON's types.

    A file that somebody has changed can have wrong data, but no code. What would come back as something else, such
    as a dict with numbers as keys, is refused with TypeError.
    """

    def dumps(self, value: Any) -> bytes:
        """The object as bytes, behind a letter for its type."""
        kind = type(value)
        if kind is bytes:
            return b"b" + value
        if kind is str:
            return b"s" + value.encode()
        if kind is int:
            return b"i%d" % value
        if kind is float:
            return b"f" + value.hex().encode()
        if value is None or kind is bool:
            return b"n" if value is None else b"t" if value else b"F"
        if kind in (list, dict, tuple):
            try:
                text = json.dumps(value, separators=(",", ":"))
                back = json.loads(text)
            except (TypeError, ValueError):
                back = None
            if back == (list(value) if kind is tuple else value):
                return (b"T" if kind is tuple else b"j") + text.encode()
        raise TypeError(f"{kind.__name__} is no plain data: see alluvium_db.serializer.Plain")

    def loads(self, stored: bytes) -> Any:
        """The object of these bytes."""
        letter, rest = stored[:1], stored[1:]
        match letter:
            case b"b":
                return rest
            case b"s":
                return rest.decode()
            case b"i":
                return int(rest)
            case b"f":
                return float.fromhex(rest.decode())
            case b"n":
                return None
            case b"t":
                return True
            case b"F":
                return False
            case b"j":
                return json.loads(rest)
            case b"T":
                return tuple(json.loads(rest))
        raise ValueError(f"stored bytes begin with {letter!r}: another serializer has written them")


class Pickle:
    """Any object that can be pickled.

    Only for a directory that nobody else can write: a changed file runs code in every process that reads it. Keys are stored by :class:`Plain`, since pickles of equal objects may differ.
    """

    def dumps(self, value: Any) -> bytes:
        """The object as bytes."""
        return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)

    def loads(self, stored: bytes) -> Any:
        """The object of these bytes."""
        return pickle.loads(stored)
