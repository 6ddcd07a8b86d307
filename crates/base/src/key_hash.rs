//! The 128-bit hash of a key, and the two ways to compute it.
//!
//! Every structure sees keys through this hash: its high half orders items and picks shard, container and page; its
//! low half picks cuckoo buckets and tags. So the two choices are independent. Equality is always that of full keys.

use std::fmt;

use serde::{Deserialize, Serialize};
use siphasher::sip128::SipHasher13;

/// A 128-bit key hash. Ordered as an unsigned number, which is the order of items in a hashed keyspace (ties by key).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct KeyHash(pub u128);

impl KeyHash {
    /// The high 64 bits: position in the key space. Ranges, shards and pages are cut by these.
    #[inline]
    pub fn high(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// The low 64 bits: cuckoo bucket, tag and in-page tag.
    #[inline]
    pub fn low(self) -> u64 {
        self.0 as u64
    }

    /// From its two halves.
    #[inline]
    pub fn from_halves(high: u64, low: u64) -> Self {
        Self(u128::from(high) << 64 | u128::from(low))
    }

    /// The first `bits` bits as a number in `0..2^bits`; 0 for `bits == 0`.
    ///
    /// # Panics
    /// In debug builds when `bits > 64`.
    #[inline]
    pub fn prefix(self, bits: u32) -> u64 {
        debug_assert!(bits <= 64);
        if bits == 0 { 0 } else { self.high() >> (64 - bits) }
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:032x}", self.0)
    }
}

/// How keys become hashes. Chosen when a keyspace is created and never changed: it defines the order on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum KeyHasher {
    /// SipHash-1-3 with a secret 128-bit key: nobody who lacks the key can craft colliding keys. About 20 ns for
    /// 16 bytes. The default.
    SipHash13 {
        /// First half of the secret key.
        key0: u64,
        /// Second half of the secret key.
        key1: u64,
    },
    /// XXH3-128 with a seed: about 4 ns for 16 bytes, for keys that no adversary chooses.
    Xxh3 {
        /// The seed.
        seed: u64,
    },
}

impl KeyHasher {
    /// Hashes `key`.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        match *self {
            Self::SipHash13 { key0, key1 } => {
                let hash = SipHasher13::new_with_keys(key0, key1).hash(key);
                KeyHash::from_halves(hash.h1, hash.h2)
            }
            Self::Xxh3 { seed } => KeyHash(twox_hash::XxHash3_128::oneshot_with_seed(seed, key)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_frozen_because_they_are_on_disk() {
        let sip = KeyHasher::SipHash13 { key0: 1, key1: 2 };
        let xxh3 = KeyHasher::Xxh3 { seed: 3 };
        assert_eq!(format!("{:?}", sip.hash(b"key")), "6eb73a254c3c75bca80e24ccab3ff9b2");
        assert_eq!(format!("{:?}", xxh3.hash(b"key")), "ca45b2ce49cbb1f20b35c40d7676be50");
    }

    #[test]
    fn prefix_takes_leading_bits() {
        let hash = KeyHash::from_halves(0xf000_0000_0000_0001, 5);
        assert_eq!(hash.prefix(0), 0);
        assert_eq!(hash.prefix(4), 0xf);
        assert_eq!(hash.prefix(64), hash.high());
        assert_eq!(hash.low(), 5);
    }
}
