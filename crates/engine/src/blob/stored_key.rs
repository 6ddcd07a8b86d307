//! [`StoredKey`]: a key as stored in items.

use std::ops::Deref;

use sha2::{Digest, Sha256};

/// Longer keys are replaced by a digest, so that an item fits in half a page whatever its key. Fixed for all databases:
/// a key must have exactly one stored form.
pub(crate) const INLINE_KEY_BYTES_MAX: usize = 1024;

/// First bytes of every digest that replaces a key. A short key that looks like one is treated as a long one, so no key
/// is ever mistaken for the digest of another. On disk: never change.
const STAND_IN_MARK: [u8; 16] = *b"\xf7\x00ALVM long key\x00";
const STAND_IN_BYTES: usize = STAND_IN_MARK.len() + 32;

/// A key as stored in items, logs and tables: the key itself, or its digest if it is long.
///
/// The digest is a mark and the SHA-256 of the key. It is hashed, ordered and compared like any key, so merges never
/// read a blob to distinguish two keys. Reads of the value compare the full key, which is stored before the value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StoredKey<'a> {
    Itself(&'a [u8]),
    StandIn([u8; STAND_IN_BYTES]),
}

impl<'a> StoredKey<'a> {
    /// Free for short keys; takes the time of a SHA-256 for long ones.
    #[inline]
    pub fn of(key: &'a [u8]) -> Self {
        if key.len() <= INLINE_KEY_BYTES_MAX && !is_stand_in(key) {
            return Self::Itself(key);
        }
        Self::stand_in(key)
    }

    #[cold]
    fn stand_in(key: &[u8]) -> Self {
        let mut bytes = [0; STAND_IN_BYTES];
        bytes[..STAND_IN_MARK.len()].copy_from_slice(&STAND_IN_MARK);
        bytes[STAND_IN_MARK.len()..].copy_from_slice(&Sha256::digest(key));
        Self::StandIn(bytes)
    }
}

/// Whether the key of an item is the digest of a longer key.
#[inline]
pub(crate) fn is_stand_in(stored: &[u8]) -> bool {
    stored.len() == STAND_IN_BYTES && stored.starts_with(&STAND_IN_MARK)
}

/// The SHA-256 of the long key for which a stored key stands; `None` if that is the key itself.
pub(crate) fn stand_in_digest(stored: &[u8]) -> Option<[u8; 32]> {
    let digest = stored.get(STAND_IN_MARK.len()..).filter(|_| is_stand_in(stored))?;
    digest.try_into().ok()
}

impl Deref for StoredKey<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Itself(key) => key,
            Self::StandIn(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_keys_stand_for_themselves_and_long_ones_are_stood_for() {
        for len in [0, 1, STAND_IN_BYTES, INLINE_KEY_BYTES_MAX] {
            let key = vec![b'k'; len];
            let stored = StoredKey::of(&key);
            assert_eq!(&*stored, &key[..]);
            assert!(!is_stand_in(&stored));
        }
        let long = vec![b'k'; INLINE_KEY_BYTES_MAX + 1];
        let stored = StoredKey::of(&long);
        assert!(is_stand_in(&stored));
        let expected = "f7 00 41 4c 56 4d 20 6c 6f 6e 67 20 6b 65 79 00";
        let mark: Vec<String> = stored[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(mark.join(" "), expected);
    }

    #[test]
    fn a_key_that_looks_like_a_stand_in_is_another_key() {
        let long = vec![7; 5000];
        let impostor = StoredKey::of(&long).to_vec();
        let stored = StoredKey::of(&impostor);
        assert!(is_stand_in(&stored));
        assert_ne!(&*stored, &impostor[..]);
    }
}
