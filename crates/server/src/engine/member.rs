//! How members of collections are stored.
//!
//! ```text
//! key     8 bytes number of the collection, big-endian
//!         1 byte 0, then the member; or for a member of more than 1,000 bytes: 1 byte 1, then its SHA-256
//! value   the value; for a long member: 4 bytes length of the member, little-endian, the member, then the value
//! ```

use sha2::{Digest, Sha256};

use crate::store::{CollectionId, StoreError};

/// Bytes of a collection's number in front of its members.
pub(super) const ID_BYTES: usize = 8;
/// Maximum length of a member that is part of its key: keys of semi-sorted keyspaces have at most 1,024 bytes.
const MEMBER_BYTES_MAX: usize = 1000;
const SHORT: u8 = 0;
const LONG: u8 = 1;

/// The bytes with which the keys of a collection's members start.
pub(super) fn prefix(id: CollectionId) -> [u8; ID_BYTES] {
    id.0.to_be_bytes()
}

/// The key of a member.
pub(super) fn key(id: CollectionId, member: &[u8]) -> Vec<u8> {
    let prefix = prefix(id);
    if member.len() <= MEMBER_BYTES_MAX {
        [&prefix[..], &[SHORT], member].concat()
    } else {
        [&prefix[..], &[LONG], &Sha256::digest(member)].concat()
    }
}

/// What is stored for a member with this value.
pub(super) fn encode(member: &[u8], value: &[u8]) -> Vec<u8> {
    if member.len() <= MEMBER_BYTES_MAX {
        return value.to_vec();
    }
    let len = u32::try_from(member.len()).expect("requests are shorter than 4 GiB");
    [&len.to_le_bytes()[..], member, value].concat()
}

/// The member and its value.
pub(super) fn decode<'a>(key: &'a [u8], stored: &'a [u8]) -> Result<(&'a [u8], &'a [u8]), StoreError> {
    let decoded = match key.get(ID_BYTES..).and_then(<[u8]>::split_first) {
        Some((&SHORT, member)) => Some((member, stored)),
        Some((&LONG, _)) => stored.split_first_chunk::<4>().and_then(|(len, rest)| {
            let len = u32::from_le_bytes(*len) as usize;
            rest.split_at_checked(len)
        }),
        _ => None,
    };
    decoded.ok_or_else(|| format!("the member stored under {} is damaged", key.escape_ascii()).into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn members_of_any_length_are_found_again(
            id: u64,
            member in proptest::collection::vec(any::<u8>(), 0..3),
            len in prop_oneof![0usize..4, 998usize..1003, Just(5_000)],
            value in proptest::collection::vec(any::<u8>(), 0..20),
        ) {
            let member: Vec<u8> = member.into_iter().chain([7]).cycle().take(len).collect();
            let id = CollectionId(id);
            let (key, stored) = (key(id, &member), encode(&member, &value));
            prop_assert!(key.starts_with(&prefix(id)) && key.len() <= 1024);
            prop_assert_eq!(decode(&key, &stored).unwrap(), (&member[..], &value[..]));
        }

        #[test]
        fn damaged_members_are_refused(key: Vec<u8>, stored: Vec<u8>) {
            let _ = decode(&key, &stored);
        }
    }
}
