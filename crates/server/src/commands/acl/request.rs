//! Requests as the permissions of users look at them.

use alluvium_protocol::Arguments;

use crate::acl::{KeyAccess, Request};
use crate::commands::key_use::{key_flags, key_positions};
use crate::commands::{Command, catalog, find};

/// The request for `command`, which the arguments name.
pub(super) fn request<'a>(command: &'static Command, arguments: Arguments<'a>) -> Request<'a> {
    let container = find(&arguments[0]).unwrap_or(command);
    let number = catalog::number(container, command);
    let keys = key_positions(command, arguments).into_iter().enumerate();
    let keys = keys.map(|(number, position)| (position, access(command, number, arguments))).collect();
    let is_free = command.flags.contains(&"no_auth");
    Request { number, name: &catalog().entries[number].name, arguments, keys, is_free }
}

/// What the command does with its key of this number.
fn access(command: &Command, number: usize, arguments: Arguments<'_>) -> KeyAccess {
    let flags = key_flags(command, number, arguments);
    let has = |flag: &&str| flags.contains(flag);
    KeyAccess { reads: has(&"access"), writes: ["insert", "update", "delete"].iter().any(has) }
}
