//! Keys and values of the torture test. A value names its key, writer and operation, so that a wrong one reveals its
//! origin.

use std::collections::HashMap;

use alluvium_base::checksum::checksum64;

/// A keyspace with keys of all writers, which one thread clears, ingests into and deletes prefixes of at the same time.
pub const MIXED: u8 = 0;
/// The same, semi-sorted with listed prefixes.
pub const GROUPS: u8 = 1;
/// The same, repeatedly dropped and created.
pub const FLEETING: u8 = 2;
/// Counters, accounts, lists and registers that all writers change.
pub const SHARED: u8 = 3;
/// The second keyspace of the twins, which one batch writes together.
pub const BESIDE: u8 = 4;
/// The first of the writers' own keyspaces; those of odd writers are semi-sorted.
pub const OWN: u8 = 5;

/// Number of keys in a keyspace that belongs to one writer.
const OWN_KEYS: u32 = 240;
/// Number of keys of each writer in a shared keyspace.
const MIXED_KEYS: u32 = 60;
const FLEETING_KEYS: u32 = 20;
/// Number of prefixes in semi-sorted keyspaces.
pub const PREFIXES: u32 = 6;
/// Bytes before a value's filler.
const HEADER: usize = 28;
const MAGIC: [u8; 4] = [0xa1, 0x1b, 0x55, 0xee];

/// A key that one writer owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub space: u8,
    pub number: u32,
}

/// The kind of content of a key in a writer's own keyspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Value,
    Counter,
    List,
}

impl Key {
    pub fn role(self) -> Role {
        match self.number % 20 {
            0 if self.space >= OWN => Role::Counter,
            1 if self.space >= OWN => Role::List,
            _ => Role::Value,
        }
    }

    /// The only writer that writes the key.
    pub fn owner(self, writers: u8) -> u8 {
        if self.space >= OWN { self.space - OWN } else { (self.number % u32::from(writers)) as u8 }
    }

    /// The number of its prefix, if its keyspace has prefixes.
    pub fn prefix(self, writers: u8) -> u32 {
        if self.space >= OWN { self.number % PREFIXES } else { self.number / u32::from(writers) % PREFIXES }
    }

    /// The key's bytes in the database. Some are too long for tables.
    pub fn bytes(self, writers: u8) -> Vec<u8> {
        let number = self.number;
        match self.space {
            SHARED | BESIDE => format!("twin{number}").into_bytes(),
            space if is_semi_sorted(space) => {
                let pad = if number % 41 == 7 { "x".repeat(300) } else { String::new() };
                format!("{}/{number}{pad}", prefix_name(self.prefix(writers))).into_bytes()
            }
            _ => {
                let pad = if number % 29 == 7 { "x".repeat(1500) } else { String::new() };
                format!("k{number}{pad}").into_bytes()
            }
        }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "key {} of {}", self.number, space_name(self.space))
    }
}

/// Whether a keyspace keeps the items of one prefix together.
pub fn is_semi_sorted(space: u8) -> bool {
    space == GROUPS || (space >= OWN && (space - OWN) % 2 == 1)
}

/// The bytes of a prefix.
pub fn prefix_name(prefix: u32) -> String {
    format!("p{prefix}")
}

/// The name of a keyspace.
pub fn space_name(space: u8) -> String {
    match space {
        MIXED => "mixed".to_owned(),
        GROUPS => "groups".to_owned(),
        FLEETING => "fleeting".to_owned(),
        SHARED => "shared".to_owned(),
        BESIDE => "beside".to_owned(),
        own => format!("own-{}", own - OWN),
    }
}

/// Number of keyspaces.
pub fn spaces(writers: u8) -> u8 {
    OWN + writers
}

/// Number of owned keys of a keyspace; their numbers start at 0.
pub fn keys_of(space: u8, writers: u8) -> u32 {
    let writers = u32::from(writers);
    match space {
        MIXED | GROUPS => MIXED_KEYS * writers,
        FLEETING => FLEETING_KEYS * writers,
        SHARED | BESIDE => writers,
        _ => OWN_KEYS,
    }
}

/// All owned keys of a keyspace.
pub fn all_keys(space: u8, writers: u8) -> impl Iterator<Item = Key> {
    (0..keys_of(space, writers)).map(move |number| Key { space, number })
}

/// Keys by their bytes, to identify what iterations return.
#[derive(Debug)]
pub struct Catalog(HashMap<Vec<u8>, Key>);

impl Catalog {
    pub fn of(space: u8, writers: u8) -> Self {
        Self(all_keys(space, writers).map(|key| (key.bytes(writers), key)).collect())
    }

    pub fn find(&self, bytes: &[u8]) -> Option<Key> {
        self.0.get(bytes).copied()
    }
}

/// The content of a key after an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Absent,
    /// The value of [`value_bytes`]. It expires at a time in milliseconds; 0 means never.
    Value {
        writer: u8,
        op: u64,
        expires_at_ms: u64,
    },
    /// These bytes: a number, a list.
    Raw(Vec<u8>),
}

impl Outcome {
    pub fn value(writer: u8, op: u64) -> Self {
        Self::Value { writer, op, expires_at_ms: 0 }
    }

    /// Whether a reader may find nothing at some time.
    pub fn may_be_absent(&self) -> bool {
        matches!(self, Self::Absent)
            || matches!(self, Self::Value { expires_at_ms, .. } if *expires_at_ms > 0)
    }

    /// Whether a read between `times`, in milliseconds, may see `seen` if this is the content.
    pub fn allows(&self, seen: &Seen, times: Times) -> bool {
        match (self, seen) {
            (Self::Absent, Seen::Absent) => true,
            (Self::Value { expires_at_ms, .. }, Seen::Absent) => {
                *expires_at_ms > 0 && *expires_at_ms <= times.latest
            }
            (Self::Value { writer, op, expires_at_ms }, Seen::Value { writer: by, op: of }) => {
                writer == by && op == of && (*expires_at_ms == 0 || *expires_at_ms > times.earliest)
            }
            (Self::Raw(bytes), Seen::Raw(found)) => bytes == found,
            _ => false,
        }
    }
}

/// The range of times that a read may have used.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub earliest: u64,
    pub latest: u64,
}

/// What was read for a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    Absent,
    Value { writer: u8, op: u64 },
    Raw(Vec<u8>),
}

impl Seen {
    /// Parses a value and checks each of its bytes.
    pub fn of(key: Key, bytes: Option<&[u8]>) -> Result<Self, String> {
        let Some(bytes) = bytes else { return Ok(Self::Absent) };
        if bytes.len() < HEADER || bytes[..4] != MAGIC {
            return Ok(Self::Raw(bytes.to_vec()));
        }
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let number = u32::from_le_bytes(bytes[8..12].try_into().expect("four bytes"));
        let (found, writer, op) = (Key { space: bytes[4], number }, bytes[5], word(12));
        if found != key {
            return Err(format!("{key}: the value of {found}, of writer {writer}, operation {op}"));
        }
        if value_bytes(key, writer, op) != bytes {
            let len = bytes.len();
            return Err(format!("{key}: a damaged value of writer {writer}, operation {op}, {len} bytes"));
        }
        Ok(Self::Value { writer, op })
    }
}

/// The bytes of a value: a header and filler. Most values are small, some large enough for blob files.
pub fn value_bytes(key: Key, writer: u8, op: u64) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&[key.space, writer, 0, 0]);
    bytes.extend_from_slice(&key.number.to_le_bytes());
    bytes.extend_from_slice(&op.to_le_bytes());
    let mut state = checksum64(&bytes, 0) | 1;
    bytes.extend_from_slice(&state.to_le_bytes());
    let len = HEADER + filler_bytes(key, state >> 3);
    while bytes.len() < len {
        // Xorshift (Marsaglia 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

fn filler_bytes(key: Key, random: u64) -> usize {
    let within = |low: u64, high: u64| (low + (random >> 16) % (high - low)) as usize;
    // A tenth of the keys has only large values, so that blob files fill with replaced ones.
    let class = if key.number % 10 == 3 { 80 + random % 20 } else { random % 90 };
    match class {
        0..60 => within(0, 120),
        60..80 => within(200, 1700),
        80..90 => within(1900, 6000),
        90..98 => within(6000, 40_000),
        98 => within(40_000, 200_000),
        _ => within(200_000, 1_300_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_tells_its_origin_and_each_change_of_it() {
        let key = Key { space: OWN, number: 13 };
        for op in 0..100 {
            let mut bytes = value_bytes(key, 2, op);
            assert_eq!(Seen::of(key, Some(&bytes)), Ok(Seen::Value { writer: 2, op }));
            assert!(Seen::of(Key { space: OWN, number: 14 }, Some(&bytes)).is_err());
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
            assert!(Seen::of(key, Some(&bytes)).is_err());
        }
    }

    #[test]
    fn keys_of_a_keyspace_differ() {
        for space in 0..spaces(4) {
            assert_eq!(Catalog::of(space, 4).0.len(), keys_of(space, 4) as usize, "{}", space_name(space));
        }
    }
}
