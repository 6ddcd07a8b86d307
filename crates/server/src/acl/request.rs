//! [`Request`]: a command with its arguments, as permissions look at it.

use std::ops::Range;

use alluvium_protocol::Arguments;

use super::key_patterns::KeyAccess;
use crate::pubsub::Topic;

/// A command that a client wants to be executed.
pub(crate) struct Request<'a> {
    /// In the catalog.
    pub(crate) number: usize,
    /// The whole name of the command.
    pub(crate) name: &'static str,
    pub(crate) arguments: Arguments<'a>,
    /// The positions of the keys among the arguments, with what the command does with them.
    pub(crate) keys: Vec<(usize, KeyAccess)>,
    /// Whether every user may execute the command.
    pub(crate) is_free: bool,
}

impl Request<'_> {
    /// What the channels among the arguments are; `None` if the command needs no permission for channels.
    pub(super) fn topic(&self) -> Option<Topic> {
        match self.name {
            "publish" | "subscribe" => Some(Topic::Channel),
            "psubscribe" => Some(Topic::Pattern),
            _ => None,
        }
    }

    pub(super) fn channels(&self) -> Range<usize> {
        1..if self.name == "publish" { 2 } else { self.arguments.len() }
    }
}
