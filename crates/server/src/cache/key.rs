//! Keys of all databases in one cache.
//!
//! ```text
//! database 0   the key, if it does not begin with byte 255
//! others       255, the number of the database, then the key; also keys of database 0 that begin with 255
//! ```

use std::borrow::Cow;

use crate::store::DatabaseNumber;

const PREFIX: u8 = 255;

/// Whether a key of the database is stored as it is.
#[inline]
pub(super) fn is_plain(number: DatabaseNumber, key: &[u8]) -> bool {
    number == DatabaseNumber::FIRST && key.first() != Some(&PREFIX)
}

/// The key as it is stored.
#[inline]
pub(super) fn stored(number: DatabaseNumber, key: &[u8]) -> Cow<'_, [u8]> {
    if is_plain(number, key) { Cow::Borrowed(key) } else { Cow::Owned(prefixed(number, key)) }
}

#[cold]
fn prefixed(number: DatabaseNumber, key: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(2 + key.len());
    stored.extend_from_slice(&[PREFIX, number.position() as u8]);
    stored.extend_from_slice(key);
    stored
}

/// The key of the database that is stored as `stored`; `None` if that belongs to another database.
pub(super) fn of_database(number: DatabaseNumber, stored: &[u8]) -> Option<&[u8]> {
    match stored {
        [PREFIX, position, key @ ..] => (usize::from(*position) == number.position()).then_some(key),
        key => (number == DatabaseNumber::FIRST).then_some(key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_belongs_to_one_database() {
        let keys = [&b""[..], b"a", b"\xff", b"\xff\0", b"\xff\x01a", b"\x01"];
        let mut all: Vec<Vec<u8>> = Vec::new();
        for number in DatabaseNumber::all() {
            for key in keys {
                let stored = stored(number, key).into_owned();
                for other in DatabaseNumber::all() {
                    assert_eq!(of_database(other, &stored), (number == other).then_some(key));
                }
                assert!(!all.contains(&stored));
                all.push(stored);
            }
        }
    }
}
