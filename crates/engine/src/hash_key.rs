//! [`HashKey`]: the secret key of a keyspace's hash function.

use std::fmt;

use alluvium_base::KeyHasher;
use alluvium_base::checksum::checksum64;

/// The secret key of a keyspace's hash function. Keyspaces of the same order with the same hash key store items in the
/// same order, also in different databases: shards of one set of items, and programs that route keys to them, share it.
///
/// Someone who knows it can choose keys that collide. Its `Debug` output does not show it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashKey {
    pub(crate) key0: u64,
    pub(crate) key1: u64,
}

impl HashKey {
    /// The key in these 16 bytes, which should be random.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        let [low, high] = [0, 8].map(|at| bytes[at..at + 8].try_into().expect("eight bytes"));
        Self { key0: u64::from_le_bytes(low), key1: u64::from_le_bytes(high) }
    }

    /// The key as bytes, for [`HashKey::from_bytes`].
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.key0.to_le_bytes());
        bytes[8..].copy_from_slice(&self.key1.to_le_bytes());
        bytes
    }

    /// Says whether two keys are the same, without showing them: that of [`crate::Build::hash_key_fingerprint`].
    pub fn fingerprint(self) -> String {
        format!("{:016x}", checksum64(&self.to_bytes(), u64::from_le_bytes(*b"ALVMHKEY")))
    }

    /// The key of a hasher; `None` if it has none.
    pub(crate) fn of(hasher: &KeyHasher) -> Option<Self> {
        match *hasher {
            KeyHasher::SipHash13 { key0, key1 } | KeyHasher::SemiSorted { key0, key1, .. } => {
                Some(Self { key0, key1 })
            }
            KeyHasher::Xxh3 { .. } => None,
        }
    }
}

impl fmt::Debug for HashKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("HashKey(..)")
    }
}
