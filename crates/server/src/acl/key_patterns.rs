//! [`KeyPatterns`]: which keys commands may name.

use super::has_spaces;
use super::rule_error::RuleError;
use crate::glob;

/// What a command does with a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyAccess {
    /// Whether the reply depends on the value.
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct KeyPattern {
    pattern: Box<[u8]>,
    access: KeyAccess,
}

/// Patterns of keys, each for reading, writing, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KeyPatterns {
    pub(super) is_all: bool,
    patterns: Vec<KeyPattern>,
}

impl KeyPatterns {
    pub(super) fn all() -> Self {
        Self { is_all: true, patterns: Vec::new() }
    }

    /// Adds the pattern of a rule that begins with `~` or `%`.
    pub(super) fn add(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        if self.is_all {
            return Err(RuleError::KeysAfterAll);
        }
        let tilde = rule.iter().position(|byte| *byte == b'~').ok_or(RuleError::Syntax)?;
        let (head, pattern) = (&rule[..tilde], &rule[tilde + 1..]);
        let access = match head.to_ascii_uppercase().as_slice() {
            b"" | b"%RW" | b"%WR" => KeyAccess { reads: true, writes: true },
            b"%R" => KeyAccess { reads: true, writes: false },
            b"%W" => KeyAccess { reads: false, writes: true },
            _ => return Err(RuleError::Syntax),
        };
        if has_spaces(pattern) {
            return Err(RuleError::Syntax);
        }
        match self.patterns.iter_mut().find(|known| *known.pattern == *pattern) {
            Some(known) => {
                known.access.reads |= access.reads;
                known.access.writes |= access.writes;
            }
            None => self.patterns.push(KeyPattern { pattern: pattern.into(), access }),
        }
        Ok(())
    }

    /// Whether a command may do this to the key. One pattern must allow all of it.
    pub(super) fn allow(&self, key: &[u8], access: KeyAccess) -> bool {
        self.is_all
            || self.patterns.iter().any(|known| {
                (known.access.reads || !access.reads)
                    && (known.access.writes || !access.writes)
                    && glob::matches(&known.pattern, key, false)
            })
    }

    /// The rules that give these patterns.
    pub(super) fn text(&self) -> Vec<u8> {
        if self.is_all {
            return b"~*".to_vec();
        }
        let rule = |known: &KeyPattern| {
            let head: &[u8] = match known.access {
                KeyAccess { reads: true, writes: true } => b"~",
                KeyAccess { reads: true, writes: false } => b"%R~",
                KeyAccess { reads: false, .. } => b"%W~",
            };
            [head, &known.pattern].concat()
        };
        self.patterns.iter().map(rule).collect::<Vec<_>>().join(&b' ')
    }
}
