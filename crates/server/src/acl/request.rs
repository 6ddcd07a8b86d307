//! [`Request`]: a command with its arguments, as permissions look at it.

use std::ops::Range;

use alluvium_protocol::Arguments;

use super::catalog::Catalog;
use super::key_patterns::KeyAccess;
use crate::commands;
use crate::pubsub::Topic;

/// A command that a client wants to be executed.
pub(crate) struct Request<'a> {
    /// In the catalog.
    pub(crate) number: usize,
    pub(crate) arguments: Arguments<'a>,
}

impl<'a> Request<'a> {
    /// The request for `command`, which the arguments name.
    pub(crate) fn new(command: &'static commands::Command, arguments: Arguments<'a>) -> Self {
        let container = commands::find(&arguments[0]).unwrap_or(command);
        Self { number: Catalog::get().number(container, command), arguments }
    }

    /// The whole name of the command.
    pub(crate) fn name(&self) -> &'static str {
        &Catalog::get().entries[self.number].name
    }

    /// The keys, with what the command does with them.
    pub(super) fn keys(&self) -> Vec<(usize, KeyAccess)> {
        let command = Catalog::get().entries[self.number].command;
        let positions = commands::key_positions(command, self.arguments).into_iter().enumerate();
        positions
            .map(|(number, position)| {
                let flags = commands::key_flags(command, number, self.arguments);
                let has = |flag: &&str| flags.contains(flag);
                let access = KeyAccess {
                    reads: has(&"access"),
                    writes: ["insert", "update", "delete"].iter().any(has),
                };
                (position, access)
            })
            .collect()
    }

    /// What the channels among the arguments are; `None` if the command needs no permission for channels.
    pub(super) fn topic(&self) -> Option<Topic> {
        match self.name() {
            "publish" | "subscribe" => Some(Topic::Channel),
            "psubscribe" => Some(Topic::Pattern),
            _ => None,
        }
    }

    pub(super) fn channels(&self) -> Range<usize> {
        1..if self.name() == "publish" { 2 } else { self.arguments.len() }
    }
}
