//! `FLUSHDB [ASYNC|SYNC]`: there is one database, so this is `FLUSHALL`.

use super::Command;
use super::flushall;

pub(super) const COMMAND: Command =
    Command { name: "flushdb", summary: "Remove all keys from the current database", ..flushall::COMMAND };
