//! [`PrefixRule`]: where the prefix of a key ends, in keyspaces whose order keeps the items of a prefix together.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Maximum length of a [`PrefixName`] in bytes.
pub const PREFIX_NAME_BYTES_MAX: usize = 32;

/// Says how long the prefix of a key is. Chosen when a keyspace is created and never changed: it defines the order on
/// disk (SlimDB, Ren et al., VLDB 2017, §3: semi-sorted data). SlimDB's prefixes have a fixed length; we also find them
/// by a byte or by the caller's function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "rule")]
pub enum PrefixRule {
    /// The first bytes of a key. Shorter keys have no prefix.
    Length {
        /// Length of the prefix in bytes.
        bytes: u16,
    },
    /// The bytes before the first occurrence of this byte; the whole key if it does not occur.
    Delimiter {
        /// The byte.
        byte: u8,
    },
    /// The length that the caller's function returns.
    Function(PrefixFunction),
}

/// A caller's function that says how many bytes of a key are its prefix.
///
/// The function must always return the same length for the same key, or items are lost: so it is a plain function,
/// which can depend on nothing but the key. A length beyond that of the key means that the key has no prefix.
pub type SplitKey = fn(&[u8]) -> usize;

/// A [`SplitKey`] with its name. Databases store only the name: the caller gives the function at each opening.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct PrefixFunction {
    name: PrefixName,
    #[serde(skip)]
    split: Option<SplitKey>,
}

/// The name of a prefix function: 1 to 32 bytes of UTF-8.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PrefixName {
    bytes: [u8; PREFIX_NAME_BYTES_MAX],
    len: u8,
}

impl PrefixRule {
    /// Returns the length of the prefix of `key`, or `None` if it has none.
    #[inline]
    pub fn prefix_len(&self, key: &[u8]) -> Option<usize> {
        match *self {
            Self::Length { bytes } => Some(usize::from(bytes)).filter(|&len| len <= key.len()),
            Self::Delimiter { byte } => Some(key.iter().position(|&at| at == byte).unwrap_or(key.len())),
            Self::Function(function) => function.prefix_len(key),
        }
    }

    /// Returns the name of the rule's function if the rule is one and it was not given yet.
    pub fn missing_function(&self) -> Option<PrefixName> {
        match self {
            Self::Function(PrefixFunction { name, split: None }) => Some(*name),
            _ => None,
        }
    }

    /// The rule with its function, if `given` contains it.
    pub fn with_functions(self, given: &[PrefixFunction]) -> Self {
        match self {
            Self::Function(function) => {
                let found = given.iter().find(|given| given.name == function.name);
                Self::Function(found.copied().unwrap_or(function))
            }
            rule => rule,
        }
    }
}

impl fmt::Display for PrefixRule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { bytes } => write!(out, "the first {bytes} bytes"),
            Self::Delimiter { byte } => write!(out, "up to the first byte {byte:#04x}"),
            Self::Function(function) => write!(out, "by the function {:?}", function.name.as_str()),
        }
    }
}

impl PrefixFunction {
    /// `split` under `name`; `None` unless the name has 1 to 32 bytes.
    pub fn new(name: &str, split: SplitKey) -> Option<Self> {
        PrefixName::new(name).map(|name| Self { name, split: Some(split) })
    }

    /// The function of this name, which is not given yet.
    pub fn named(name: PrefixName) -> Self {
        Self { name, split: None }
    }

    /// Its name.
    pub fn name(&self) -> PrefixName {
        self.name
    }

    fn prefix_len(&self, key: &[u8]) -> Option<usize> {
        let split = self.split?;
        Some(split(key)).filter(|&len| len <= key.len())
    }
}

impl fmt::Debug for PrefixFunction {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "PrefixFunction({:?})", self.name.as_str())
    }
}

/// Compares the names: what a function does can't be compared.
impl PartialEq for PrefixFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for PrefixFunction {}

impl PrefixName {
    /// Returns `None` unless `name` has 1 to 32 bytes.
    pub fn new(name: &str) -> Option<Self> {
        let mut bytes = [0; PREFIX_NAME_BYTES_MAX];
        bytes.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
        (!name.is_empty()).then_some(Self { bytes, len: name.len() as u8 })
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len.into()]).unwrap_or_default()
    }
}

impl fmt::Debug for PrefixName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), out)
    }
}

impl Serialize for PrefixName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for PrefixName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::new(&name).ok_or_else(|| serde::de::Error::custom("a prefix function's name has 1 to 32 bytes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_found_by_length_by_byte_and_by_function() {
        let length = PrefixRule::Length { bytes: 3 };
        assert_eq!((length.prefix_len(b"abcd"), length.prefix_len(b"ab")), (Some(3), None));
        let slash = PrefixRule::Delimiter { byte: b'/' };
        assert_eq!((slash.prefix_len(b"ab/c/d"), slash.prefix_len(b"ab")), (Some(2), Some(2)));
        let half = PrefixFunction::new("half", |key| key.len() / 2).unwrap();
        assert_eq!(PrefixRule::Function(half).prefix_len(b"abcd"), Some(2));
        let beyond = PrefixFunction::new("beyond", |key| key.len() + 1).unwrap();
        assert_eq!(PrefixRule::Function(beyond).prefix_len(b"abcd"), None);
    }

    #[test]
    fn a_function_is_known_by_its_name() {
        let half = PrefixFunction::new("half", |key| key.len() / 2).unwrap();
        let stored = PrefixRule::Function(PrefixFunction::named(half.name()));
        assert_eq!(stored.missing_function().unwrap().as_str(), "half");
        assert_eq!(stored.prefix_len(b"abcd"), None);
        let given = stored.with_functions(&[half]);
        assert_eq!((given.missing_function(), given.prefix_len(b"abcd")), (None, Some(2)));
        assert!(PrefixFunction::new("", |_| 0).is_none() && PrefixName::new(&"n".repeat(33)).is_none());
    }
}
