//! How items are stored in a keyspace that a server serves.
//!
//! The two highest bits of the flags say what an item is. A string has none of them, so that programs that open the
//! database see the strings of Redis clients as they are, and the other way round. Flags of memcached clients that need
//! these bits are stored before the value.
//!
//! ```text
//! bits 30-31   0 string, 1 hash, 2 set, 3 by the first byte of the value
//! first byte   0 string: 4 bytes of flags, little-endian, then the value
//!              1 string with a mark: a byte of bits (1 stale, 2 has a winner), 8 bytes of CAS, 4 bytes of flags, then
//!                the value
//! ```

use std::borrow::Cow;

use alluvium::Metadata;

use crate::store::{Attributes, Change, Found, Keep, Kind, Mark};

const KIND_SHIFT: u32 = 30;
/// Flags from here on are stored before the value.
const FLAGS_END: u32 = 1 << KIND_SHIFT;
const BY_FIRST_BYTE: u32 = 3;
const STRING_WITH_FLAGS: u8 = 0;
const STRING_WITH_MARK: u8 = 1;
/// Maximum bytes that are stored before a value.
pub(crate) const PREFIX_BYTES_MAX: usize = 14;
const STALE: u8 = 1;
const HAS_WINNER: u8 = 2;

/// A value with its metadata, as stored.
pub(crate) type Stored<'a> = (Cow<'a, [u8]>, Metadata);

/// Whether an item with this metadata is a string stored as it is, without a prefix.
pub(crate) fn is_plain_string(metadata: Metadata) -> bool {
    metadata.flags < FLAGS_END
}

/// The item as commands see it.
pub(crate) fn found(value: &[u8], metadata: Metadata) -> Found<'_> {
    let Metadata { flags, expires_at_ms } = metadata;
    let found = Found { kind: Kind::String, value, flags, expires_at_ms, mark: Mark::default() };
    match flags >> KIND_SHIFT {
        0 => found,
        1 => Found { kind: Kind::Hash, flags: 0, ..found },
        2 => Found { kind: Kind::Set, flags: 0, ..found },
        _ => by_first_byte(found),
    }
}

#[cold]
fn by_first_byte(found: Found<'_>) -> Found<'_> {
    let unknown = Found { kind: Kind::Unknown, flags: 0, ..found };
    match found.value.split_first() {
        Some((&STRING_WITH_FLAGS, rest)) => match rest.split_first_chunk() {
            Some((flags, value)) => Found { value, flags: u32::from_le_bytes(*flags), ..found },
            None => unknown,
        },
        Some((&STRING_WITH_MARK, rest)) => {
            let parts = rest.split_first().and_then(|(bits, rest)| {
                let (cas, rest) = rest.split_first_chunk()?;
                let (flags, value) = rest.split_first_chunk()?;
                Some((*bits, u64::from_le_bytes(*cas), u32::from_le_bytes(*flags), value))
            });
            let Some((bits, cas, flags, value)) = parts else { return unknown };
            let mark = Mark { cas, is_stale: bits & STALE != 0, has_winner: bits & HAS_WINNER != 0 };
            Found { value, flags, mark, ..found }
        }
        _ => unknown,
    }
}

/// An item as it is stored.
pub(crate) fn stored(kind: Kind, value: Cow<'_, [u8]>, flags: u32, expires_at_ms: Option<u64>) -> Stored<'_> {
    let bits = match kind {
        Kind::String if flags < FLAGS_END => return (value, Metadata { flags, expires_at_ms }),
        Kind::String => {
            let mut bytes = Vec::with_capacity(5 + value.len());
            bytes.push(STRING_WITH_FLAGS);
            bytes.extend_from_slice(&flags.to_le_bytes());
            bytes.extend_from_slice(&value);
            let metadata = Metadata { flags: BY_FIRST_BYTE << KIND_SHIFT, expires_at_ms };
            return (Cow::Owned(bytes), metadata);
        }
        Kind::Hash => 1,
        Kind::Set => 2,
        Kind::Unknown => BY_FIRST_BYTE,
    };
    (value, Metadata { flags: bits << KIND_SHIFT, expires_at_ms })
}

/// A string with a mark as it is stored.
fn marked(value: &[u8], flags: u32, expires_at_ms: Option<u64>, mark: Mark) -> (Vec<u8>, Metadata) {
    let bits = if mark.is_stale { STALE } else { 0 } | if mark.has_winner { HAS_WINNER } else { 0 };
    let parts: [&[u8]; 4] = [&[STRING_WITH_MARK, bits], &mark.cas.to_le_bytes(), &flags.to_le_bytes(), value];
    (parts.concat(), Metadata { flags: BY_FIRST_BYTE << KIND_SHIFT, expires_at_ms })
}

/// What a change writes.
pub(crate) enum Effect {
    Nothing,
    Insert(Vec<u8>, Metadata),
    Remove,
}

/// What `change` writes over the item `current`.
pub(crate) fn effect(change: Change, current: Option<(&[u8], Metadata)>) -> Effect {
    let insert = |kind, value: Vec<u8>, flags, expires_at_ms| {
        let (value, metadata) = stored(kind, Cow::Owned(value), flags, expires_at_ms);
        Effect::Insert(value.into_owned(), metadata)
    };
    let expiry = current.and_then(|(_, metadata)| metadata.expires_at_ms);
    match (change, current) {
        (Change::Keep, _) | (Change::Expire(_), None) => Effect::Nothing,
        (Change::Expire(expires_at_ms), Some((value, metadata))) => {
            Effect::Insert(value.to_vec(), Metadata { expires_at_ms, ..metadata })
        }
        (Change::Insert(value, keep), current) => {
            let flags = current.map_or(0, |(value, metadata)| found(value, metadata).flags);
            let (flags, expires_at_ms) = match keep {
                Keep::Nothing => (0, None),
                Keep::Expiry => (0, expiry),
                Keep::Everything => (flags, expiry),
                Keep::NothingUntil(at_ms) => (0, Some(at_ms)),
            };
            insert(Kind::String, value, flags, expires_at_ms)
        }
        (Change::InsertWith(value, attributes), _) => {
            insert(Kind::String, value, attributes.flags, attributes.expires_at_ms)
        }
        (Change::InsertMarked(value, Attributes { flags, expires_at_ms }, mark), _) => {
            if mark == Mark::default() {
                return insert(Kind::String, value, flags, expires_at_ms);
            }
            let (value, metadata) = marked(&value, flags, expires_at_ms, mark);
            Effect::Insert(value, metadata)
        }
        (Change::InsertKind(kind, value), _) => insert(kind, value, 0, expiry),
        (Change::Remove, current) => current.map_or(Effect::Nothing, |_| Effect::Remove),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_stored_is_found(
            value in proptest::collection::vec(any::<u8>(), 0..20),
            flags: u32,
            expires_at_ms: Option<u64>,
            kind in 0..3,
        ) {
            let kind = [Kind::String, Kind::Hash, Kind::Set][kind as usize];
            let (bytes, metadata) = stored(kind, Cow::Borrowed(&value), flags, expires_at_ms);
            let flags = if kind == Kind::String { flags } else { 0 };
            let expected = Found { kind, value: &value, flags, expires_at_ms, mark: Mark::default() };
            prop_assert_eq!(found(&bytes, metadata), expected);
            prop_assert_eq!(is_plain_string(metadata), kind == Kind::String && flags < FLAGS_END);
        }

        #[test]
        fn marks_are_found(
            value in proptest::collection::vec(any::<u8>(), 0..20),
            flags: u32,
            cas: u64,
            is_stale: bool,
            has_winner: bool,
        ) {
            let mark = Mark { cas, is_stale, has_winner };
            let change = Change::InsertMarked(value.clone(), Attributes { flags, expires_at_ms: Some(7) }, mark);
            let Effect::Insert(bytes, metadata) = effect(change, None) else { panic!("nothing is written") };
            let expected = Found { kind: Kind::String, value: &value, flags, expires_at_ms: Some(7), mark };
            prop_assert_eq!(found(&bytes, metadata), expected);
        }

        #[test]
        fn any_bytes_are_an_item(value in proptest::collection::vec(any::<u8>(), 0..8), flags: u32) {
            let item = found(&value, Metadata { flags, expires_at_ms: None });
            prop_assert!(value.ends_with(item.value));
        }
    }
}
