"""Transactions: reads and writes of several keys that take effect at one moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, TypeVar

from .errors import ConflictError

if TYPE_CHECKING:
    from ._native import Database, Keyspace

Result = TypeVar("Result")


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


class Transaction:
    """A transaction in progress; made by :meth:`Database.transaction`.

    A read returns what the transaction wrote before, or else the newest value. Reads of several keys may be from
    different moments: then the transaction does not commit, and is tried again. It commits if each item that it read
    is still the same (or the same again), so committed transactions are serializable.

    A read costs a get and a digest of the value, and one more get at the commit.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._batch = database.batch()
        self._known: dict[tuple[str, bytes], bytes | None] = {}

    def get(self, key: Any, default: Any = None, *, keyspace: Keyspace | None = None) -> Any:
        """The value of ``key``, or ``default``."""
        owner = self._database if keyspace is None else keyspace
        name = (owner.name, _bytes(key))
        if name not in self._known:
            value, version = owner.get_with_version(name[1])
            self._batch.require_unchanged(name[1], version, keyspace=owner)
            self._known[name] = value
        value = self._known[name]
        return default if value is None else value

    def put(
        self,
        key: Any,
        value: Any,
        *,
        keyspace: Keyspace | None = None,
        ttl: float | None = None,
        expires_at: float | None = None,
        flags: int = 0,
    ) -> None:
        """Stores ``value`` when the transaction commits."""
        owner = self._database if keyspace is None else keyspace
        self._batch.put(key, value, keyspace=owner, ttl=ttl, expires_at=expires_at, flags=flags)
        self._known[owner.name, _bytes(key)] = _bytes(value)

    def delete(self, key: Any, *, keyspace: Keyspace | None = None) -> None:
        """Removes ``key`` when the transaction commits."""
        owner = self._database if keyspace is None else keyspace
        self._batch.delete(key, keyspace=owner)
        self._known[owner.name, _bytes(key)] = None

    def __getitem__(self, key: Any) -> bytes:
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key: Any, value: Any) -> None:
        self.put(key, value)

    def __delitem__(self, key: Any) -> None:
        if self.get(key) is None:
            raise KeyError(key)
        self.delete(key)

    def __contains__(self, key: Any) -> bool:
        return self.get(key) is not None


def run(database: Database, function: Callable[[Transaction], Result], attempts: int) -> Result:
    """Calls ``function`` and commits, until a commit succeeds: see :meth:`Database.transaction`."""
    for _ in range(max(attempts, 1)):
        transaction = Transaction(database)
        result = function(transaction)
        if transaction._batch.try_commit():
            return result
    raise ConflictError(f"another write came between in each of {attempts} attempts")
