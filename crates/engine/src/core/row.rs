//! [`RowKey`] and the content of a row: what the row cache stores for a key.

use alluvium_base::KeyspaceId;

use crate::item::{Item, ItemKind};

/// Maximum bytes of a key that has rows.
const KEY_BYTES_MAX: usize = 256;
/// Bytes of keyspace and epoch in front of a key.
const PREFIX_BYTES: usize = 12;
/// Set in the epoch of a row that has a group: epochs count changes, and never get that far.
const IS_GROUP: u64 = 1 << 63;

const IS_PRESENT: u8 = 1;
const HAS_EXPIRY: u8 = 1 << 1;
const HAS_FLAGS: u8 = 1 << 2;
const IS_REFERENCE: u8 = 1 << 3;

/// A key of a keyspace in an epoch ([`crate::level::Version::epoch`]). A change of items without a write to the log
/// begins an epoch, and with it all rows of the keyspace are out of reach.
pub(super) struct RowKey {
    bytes: [u8; PREFIX_BYTES + KEY_BYTES_MAX],
    len: usize,
}

impl RowKey {
    /// The row key of `key`; `None` if that is too long for rows.
    #[inline]
    pub fn of(keyspace: KeyspaceId, epoch: u64, key: &[u8]) -> Option<Self> {
        let len = PREFIX_BYTES + key.len();
        let mut bytes = [0; PREFIX_BYTES + KEY_BYTES_MAX];
        bytes.get_mut(PREFIX_BYTES..len)?.copy_from_slice(key);
        bytes[..4].copy_from_slice(&keyspace.0.to_le_bytes());
        bytes[4..PREFIX_BYTES].copy_from_slice(&epoch.to_le_bytes());
        Some(Self { bytes, len })
    }

    /// The row key of the group with this prefix; `None` if that is too long for rows.
    pub fn of_group(keyspace: KeyspaceId, epoch: u64, prefix: &[u8]) -> Option<Self> {
        Self::of(keyspace, epoch | IS_GROUP, prefix)
    }

    /// Its bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// The key in its keyspace.
    #[inline]
    pub fn key(&self) -> &[u8] {
        &self.bytes[PREFIX_BYTES..self.len]
    }
}

impl AsRef<[u8]> for RowKey {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

/// Space for the copy of a row.
#[derive(Debug, Default)]
pub(crate) struct RowBuffer {
    pub(super) key: Vec<u8>,
    pub(super) row: Vec<u8>,
}

/// Appends the row of an item, or of the absence of one, to `out`.
pub(super) fn encode(item: Option<&Item<'_>>, out: &mut Vec<u8>) {
    let Some(item) = item.filter(|item| !item.is_tombstone()) else {
        out.push(0);
        return;
    };
    let kind = if item.is_reference() { IS_REFERENCE } else { 0 };
    let expiry = if item.expires_at_ms.is_some() { HAS_EXPIRY } else { 0 };
    let flags = if item.flags != 0 { HAS_FLAGS } else { 0 };
    out.push(IS_PRESENT | kind | expiry | flags);
    if let Some(expiry) = item.expires_at_ms {
        out.extend_from_slice(&expiry.to_le_bytes());
    }
    if item.flags != 0 {
        out.extend_from_slice(&item.flags.to_le_bytes());
    }
    out.extend_from_slice(item.value);
}

/// The item of `key` in a row, which is `None` if the row says that there is none.
#[inline]
pub(super) fn decode<'r>(key: &'r [u8], row: &'r [u8]) -> Option<Item<'r>> {
    let (&header, mut rest) = row.split_first()?;
    if header & IS_PRESENT == 0 {
        return None;
    }
    let kind = if header & IS_REFERENCE != 0 { ItemKind::Reference } else { ItemKind::Value };
    let mut item = Item { kind, flags: 0, expires_at_ms: None, key, value: &[] };
    if header & HAS_EXPIRY != 0 {
        let (expiry, after) = rest.split_first_chunk()?;
        (item.expires_at_ms, rest) = (Some(u64::from_le_bytes(*expiry)), after);
    }
    if header & HAS_FLAGS != 0 {
        let (flags, after) = rest.split_first_chunk()?;
        (item.flags, rest) = (u32::from_le_bytes(*flags), after);
    }
    item.value = rest;
    Some(item)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_all_of_an_item() {
        for flags in [0, 7] {
            for expires_at_ms in [None, Some(0), Some(u64::MAX)] {
                let values = [
                    (ItemKind::Value, &b""[..]),
                    (ItemKind::Value, b"value"),
                    (ItemKind::Reference, b"value"),
                ];
                for (kind, value) in values {
                    let item = Item { kind, flags, expires_at_ms, key: b"key", value };
                    let mut row = Vec::new();
                    encode(Some(&item), &mut row);
                    assert_eq!(decode(b"key", &row), Some(item));
                }
            }
        }
        for absent in [None, Some(&Item::tombstone(b"key"))] {
            let mut row = Vec::new();
            encode(absent, &mut row);
            assert_eq!((row.len(), decode(b"key", &row)), (1, None));
        }
    }

    #[test]
    fn keys_of_keyspaces_and_epochs_differ() {
        let key = |keyspace, epoch, key: &[u8]| {
            RowKey::of(KeyspaceId(keyspace), epoch, key).map(|key| key.bytes().to_vec())
        };
        assert_ne!(key(1, 2, b"a"), key(2, 2, b"a"));
        assert_ne!(key(1, 2, b"a"), key(1, 3, b"a"));
        assert_ne!(key(1, 2, b""), key(1, 2, b"\0"));
        let group = RowKey::of_group(KeyspaceId(1), 2, b"a").unwrap();
        assert_ne!(key(1, 2, b"a"), Some(group.bytes().to_vec()));
        assert!(key(1, 2, &[0; KEY_BYTES_MAX]).is_some() && key(1, 2, &[0; KEY_BYTES_MAX + 1]).is_none());
    }
}
