//! [`ChannelPatterns`]: which channels commands may name.

use super::has_spaces;
use super::rule_error::RuleError;
use crate::glob;
use crate::pubsub::Topic;

/// Patterns of channels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ChannelPatterns {
    pub(super) is_all: bool,
    patterns: Vec<Box<[u8]>>,
}

impl ChannelPatterns {
    pub(super) fn new(is_all: bool) -> Self {
        Self { is_all, patterns: Vec::new() }
    }

    /// Adds a pattern.
    pub(super) fn add(&mut self, pattern: &[u8]) -> Result<(), RuleError> {
        if self.is_all {
            return Err(RuleError::ChannelsAfterAll);
        }
        if has_spaces(pattern) {
            return Err(RuleError::Syntax);
        }
        if !self.patterns.iter().any(|known| **known == *pattern) {
            self.patterns.push(pattern.into());
        }
        Ok(())
    }

    /// Whether a command may name this channel, or this pattern of channels, which must be one of those here.
    pub(super) fn allow(&self, topic: Topic, name: &[u8]) -> bool {
        let matches = |known: &[u8]| match topic {
            Topic::Channel => glob::matches(known, name, false),
            Topic::Pattern => known == name,
        };
        self.is_all || self.patterns.iter().any(|known| matches(known))
    }

    /// The rules that give these patterns.
    pub(super) fn text(&self) -> Vec<u8> {
        if self.is_all {
            return b"&*".to_vec();
        }
        self.patterns.iter().map(|pattern| [b"&", &pattern[..]].concat()).collect::<Vec<_>>().join(&b' ')
    }
}
