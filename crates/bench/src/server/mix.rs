//! [`Mix`]: which requests, and how often.

use std::fmt;
use std::str::FromStr;

use crate::random::Random;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Gets an item.
    Get,
    /// Sets an item to its value.
    Set,
    /// Sets an item to its value if there is none.
    SetIfAbsent,
    /// Adds one to a counter.
    Increment,
    /// Sets a counter to one.
    SetCounter,
    /// Deletes an item.
    Delete,
    /// Asks whether there is an item.
    Exists,
    /// Has the value of an item sent back: what the server takes without a store.
    Echo,
}

impl Operation {
    /// Whether the reply has the value.
    #[inline]
    pub fn returns_value(self) -> bool {
        matches!(self, Self::Get | Self::Echo)
    }
}

const NAMES: [(&str, Operation); 7] = [
    ("get", Operation::Get),
    ("set", Operation::Set),
    ("setnx", Operation::SetIfAbsent),
    ("incr", Operation::Increment),
    ("del", Operation::Delete),
    ("exists", Operation::Exists),
    ("echo", Operation::Echo),
];

/// Operations with their shares.
#[derive(Clone, Debug)]
pub struct Mix(Vec<(Operation, u64)>);

impl Mix {
    /// Whether `operation` occurs.
    pub fn has(&self, operation: Operation) -> bool {
        self.0.iter().any(|(other, _)| *other == operation)
    }

    /// Whether no others than `operations` occur.
    pub fn is_of(&self, operations: &[Operation]) -> bool {
        self.0.iter().all(|(operation, _)| operations.contains(operation))
    }

    /// One of the operations, at random.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> Operation {
        if let [(only, _)] = self.0[..] {
            return only;
        }
        let mut rest = random.below(self.0.iter().map(|(_, share)| share).sum());
        for &(operation, share) in &self.0 {
            if rest < share {
                return operation;
            }
            rest -= share;
        }
        unreachable!("the number is less than the sum of all shares")
    }
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut shares = Vec::new();
        for part in text.split(',') {
            let (name, share) = part.split_once('=').unwrap_or((part, "1"));
            let known = NAMES.iter().find(|(known, _)| *known == name);
            let &(_, operation) = known.ok_or_else(|| format!("no operation is called {name:?}"))?;
            let share = share.parse().ok().filter(|share| (1..=1 << 32).contains(share));
            shares.push((operation, share.ok_or_else(|| format!("{part:?} has no share above 0"))?));
        }
        Ok(Self(shares))
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (operation, share)) in self.0.iter().enumerate() {
            let named = NAMES.iter().find(|(_, named)| named == operation);
            let name = named.map_or("", |(name, _)| name);
            write!(out, "{}{name}={share}", if number > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}
