"""The exceptions of the package. Each says what a program can do, and carries what the engine knows as attributes."""

from __future__ import annotations

from typing import Any

__all__ = [
    "AlluviumError",
    "IoError",
    "CorruptionError",
    "DamagedError",
    "TooLargeError",
    "SettingsError",
    "LockedError",
    "FormatError",
    "NotADatabaseError",
    "MissingFileError",
    "KeyspaceError",
    "KeyWithoutPrefixError",
    "WritesRefusedError",
    "FailedError",
    "DiskFullError",
    "DiskQuotaError",
    "StalledError",
    "ReadOnlyError",
    "MemoryBusyError",
    "ConditionFailedError",
    "ConflictError",
    "NotANumberError",
    "NumberOverflowError",
    "BackupError",
    "BuildError",
    "ClosedError",
    "ForkedError",
]


class AlluviumError(Exception):
    """The base of all exceptions of this package.

    What is known beside the message is in attributes, which each class lists.
    """

    def __init__(self, message: str = "", **attributes: Any) -> None:
        super().__init__(message)
        for name, value in attributes.items():
            setattr(self, name, value)


class IoError(AlluviumError, OSError):
    """The operating system refused an operation on a file. Attributes: ``errno`` (None if unknown), ``context``.

    Fix the cause (space, permissions, limits); then repeat a read, or reopen the database after a failed write.
    """


class CorruptionError(AlluviumError):
    """Stored bytes fail their check. Attributes: ``file``, ``offset``, ``expected``, ``found``.

    :meth:`Database.verify` lists all damage; restore a backup, or call :func:`repair`.
    """


class DamagedError(CorruptionError):
    """The database was not opened, because a part is damaged that must be sound for writes. Nothing was changed.

    Attributes: those of :class:`CorruptionError`, and ``directory``. Call :func:`repair`, or open with
    ``read_only=True`` to see what a repair would keep.
    """


class TooLargeError(AlluviumError, ValueError):
    """A key, a value or an atomic batch is longer than its limit. Attributes: ``what``, ``bytes``, ``bytes_max``."""


class SettingsError(AlluviumError, ValueError):
    """Settings contradict each other or cannot be executed: a plan, a memory limit, a name of a keyspace."""


class LockedError(AlluviumError):
    """Another process, or another handle in this one, has it open. Attributes: ``path``, ``holder``."""


class FormatError(AlluviumError):
    """A file is of a version that this one does not read. Attributes: ``file``, ``found``, ``supported``."""


class NotADatabaseError(AlluviumError):
    """The directory contains files, but no database."""


class MissingFileError(AlluviumError):
    """A file of the database does not exist: restore it from a backup. Attribute: ``file``."""


class KeyspaceError(AlluviumError):
    """The keyspace does not fit the request: its order, its hash key, or it was dropped. Attribute: ``keyspace``."""


class KeyWithoutPrefixError(AlluviumError, ValueError):
    """The keyspace stores the items of a prefix together, and the key has no prefix."""


class WritesRefusedError(AlluviumError):
    """The database accepts no writes now. Reads work."""


class FailedError(WritesRefusedError):
    """An earlier write or sync failed, so the state of the device is unknown. Fix the cause, then reopen."""


class DiskFullError(WritesRefusedError):
    """The disk is full. Remove items or make room otherwise; writes are accepted again shortly afterwards."""


class DiskQuotaError(WritesRefusedError):
    """The write would exceed ``disk_bytes_max``. Attributes: ``used``, ``bytes_max``."""


class StalledError(WritesRefusedError):
    """The log is full, and the work that makes room in it fails for a reason that may pass. Write again later."""


class ReadOnlyError(WritesRefusedError):
    """The database is open for reading only."""


class MemoryBusyError(AlluviumError):
    """The memory limit leaves no room for another iterator. Attributes: ``held``, ``bytes_max``."""


class ConditionFailedError(AlluviumError):
    """A condition of a batch does not hold, so nothing of it was written. Attributes: ``number``, ``keyspace``, ``key``."""


class ConflictError(AlluviumError):
    """A transaction was tried as often as allowed, and each time another write came between."""


class NotANumberError(AlluviumError, ValueError):
    """A value to be incremented is no number."""


class NumberOverflowError(AlluviumError, OverflowError):
    """A sum does not fit in 64 bits; the number is unchanged."""


class BackupError(AlluviumError):
    """The directory of backups does not fit the request."""


class BuildError(AlluviumError):
    """A part of a bulk build does not fit the others. Attributes: ``file``, ``part``, ``expected``, ``found``.

    ``part`` says in which respect: "manifest" (not finished or not committed, or finished already), "job",
    "keyspace", "order", "hash_key" (fingerprints), "shard_count", "shard", "plan", "range", "files", "size",
    "checksum", or "key" (a key of another shard).
    """


class ClosedError(AlluviumError):
    """The database or the cache was closed."""


class ForkedError(AlluviumError):
    """A handle was used in a process that was forked from the one that opened it.

    Threads and locks of the engine do not survive a fork. Open the database in one process only, after the fork.
    """
