//! [`Permissions`]: commands, with the keys and channels that they may name.

use super::catalog::Catalog;
use super::channel_patterns::ChannelPatterns;
use super::command_rules::CommandRules;
use super::denial::Denial;
use super::key_patterns::KeyPatterns;
use super::request::Request;
use super::rule_error::RuleError;

/// Commands that may be executed, on these keys and channels. A user may have several: one must allow the whole
/// request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Permissions {
    commands: CommandRules,
    keys: KeyPatterns,
    channels: ChannelPatterns,
}

impl Permissions {
    pub(super) fn all(catalog: &Catalog) -> Self {
        Self {
            commands: CommandRules::new(catalog, true),
            keys: KeyPatterns::all(),
            channels: ChannelPatterns::new(true),
        }
    }

    /// No command, no key, and all channels or none.
    pub(super) fn none(catalog: &Catalog, all_channels: bool) -> Self {
        Self {
            commands: CommandRules::new(catalog, false),
            keys: KeyPatterns::default(),
            channels: ChannelPatterns::new(all_channels),
        }
    }

    pub(super) fn is_all(&self) -> bool {
        self.commands.is_all() && self.keys.is_all && self.channels.is_all
    }

    pub(super) fn apply(&mut self, catalog: &Catalog, rule: &[u8]) -> Result<(), RuleError> {
        let is = |words: &[&str]| words.iter().any(|word| rule.eq_ignore_ascii_case(word.as_bytes()));
        match rule {
            _ if is(&["allkeys", "~*"]) => self.keys = KeyPatterns::all(),
            _ if is(&["resetkeys"]) => self.keys = KeyPatterns::default(),
            _ if is(&["allchannels", "&*"]) => self.channels = ChannelPatterns::new(true),
            _ if is(&["resetchannels"]) => self.channels = ChannelPatterns::new(false),
            _ if is(&["allcommands"]) => self.commands = CommandRules::new(catalog, true),
            _ if is(&["nocommands"]) => self.commands = CommandRules::new(catalog, false),
            [b'~' | b'%', ..] => self.keys.add(rule)?,
            [b'&', pattern @ ..] => self.channels.add(pattern)?,
            [b'+', subject @ ..] => self.commands.apply(catalog, true, subject)?,
            [b'-', subject @ ..] => self.commands.apply(catalog, false, subject)?,
            _ => return Err(RuleError::Syntax),
        }
        Ok(())
    }

    pub(super) fn check(&self, request: &Request<'_>) -> Result<(), Denial> {
        if !request.is_free && !self.commands.allows(request.number, request.arguments.get(1)) {
            return Err(Denial::Command);
        }
        for &(position, access) in &request.keys {
            if !self.keys.allow(&request.arguments[position], access) {
                return Err(Denial::Key(position));
            }
        }
        if let Some(topic) = request.topic() {
            for position in request.channels() {
                if !self.channels.allow(topic, &request.arguments[position]) {
                    return Err(Denial::Channel(position));
                }
            }
        }
        Ok(())
    }

    pub(super) fn allows_channel(&self, topic: crate::pubsub::Topic, name: &[u8]) -> bool {
        self.channels.allow(topic, name)
    }

    pub(crate) fn commands_text(&self) -> String {
        self.commands.text()
    }

    pub(crate) fn keys_text(&self) -> Vec<u8> {
        self.keys.text()
    }

    pub(crate) fn channels_text(&self) -> Vec<u8> {
        self.channels.text()
    }

    /// The rules that give these permissions to a new user.
    pub(super) fn text(&self) -> Vec<u8> {
        let mut words = Vec::new();
        let (keys, channels) = (self.keys_text(), self.channels_text());
        if !keys.is_empty() {
            words.push(keys);
        }
        if !self.channels.is_all {
            words.push(b"resetchannels".to_vec());
        }
        if !channels.is_empty() {
            words.push(channels);
        }
        words.push(self.commands_text().into_bytes());
        words.join(&b' ')
    }
}
