//! `UNLINK key [key ...]`: space is always reclaimed after the reply, so this is `DEL`.

use super::{Command, del};

pub(super) const COMMAND: Command =
    Command { name: "unlink", since: "4.0.0", flags: &["write", "fast"], ..del::COMMAND };
