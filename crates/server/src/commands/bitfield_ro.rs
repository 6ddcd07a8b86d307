//! `BITFIELD_RO key [GET type offset ...]`

use super::{Command, bitfield};

pub(super) const COMMAND: Command = Command {
    name: "bitfield_ro",
    arity: -2,
    flags: &["readonly", "fast"],
    keys: (1, 1, 1),
    group: "bitmap",
    since: "6.2.0",
    complexity: "O(1) for each operation",
    summary: "Get integers of any width inside the value of a key",
    syntax: "key [GET type offset ...]",
    handler: bitfield::bitfield_ro,
    ..Command::DEFAULT
};
