//! `SUBSTR key start end`: the old name of `GETRANGE`.

use super::{Command, getrange};

pub(super) const COMMAND: Command = Command { name: "substr", since: "1.0.0", ..getrange::COMMAND };
