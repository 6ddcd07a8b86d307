//! [`Header`]: the item under the key of a collection.

use crate::store::{CollectionId, Found, StoreError};

/// What a key says about its collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) id: CollectionId,
    /// Number of members, at least 1.
    pub(crate) len: u64,
}

impl Header {
    /// The header in an item that is a collection.
    pub(crate) fn decode(found: Found<'_>) -> Result<Self, StoreError> {
        let bytes: &[u8; 16] = found.value.try_into().map_err(|_| {
            format!("the header of a {} has {} bytes, not 16", found.kind.name(), found.value.len())
        })?;
        let (id, len) = bytes.split_at(8);
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
        Ok(Self { id: CollectionId(number(id)), len: number(len) })
    }

    /// The value of the item.
    pub(crate) fn encode(self) -> Vec<u8> {
        [self.id.0.to_le_bytes(), self.len.to_le_bytes()].concat()
    }
}
