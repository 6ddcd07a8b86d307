//! The 128-bit hash of a key, and the ways to compute it.
//!
//! Every structure sees keys through this hash: it orders items and selects the container and the page. In hashed
//! keyspaces the high half does that, and the low half selects cuckoo buckets and tags, so the two choices are
//! independent. In semi-sorted keyspaces the halves are the hashes of prefix and suffix, neither of which is uniform
//! over the items: code that needs uniform bits takes them from [`KeyHash::spread`]. Equality is always that of full
//! keys.

use std::fmt;

use serde::{Deserialize, Serialize};
use siphasher::sip128::SipHasher13;

use crate::prefix_rule::{PrefixFunction, PrefixName, PrefixRule};

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

    /// Builds a hash from its two halves.
    #[inline]
    pub fn from_halves(high: u64, low: u64) -> Self {
        Self(u128::from(high) << 64 | u128::from(low))
    }

    /// The hash that filters store for the prefix with this hash, in addition to the items that have the prefix: one of
    /// the hashes that such an item may have, [spread](Self::spread) like all hashes in these filters. Frozen, because
    /// filters on disk are built from it.
    #[inline]
    pub fn of_prefix(prefix_hash: u64) -> Self {
        Self::from_halves(prefix_hash, 0x5851_f42d_4c95_7f2d).spread()
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

    /// The same hash, mixed so that both halves depend on all bits; the order changes. For code that takes some bits of
    /// a hash whose halves are not uniform by themselves. One to one. Frozen, because filters on disk are built from
    /// it.
    #[inline]
    pub fn spread(self) -> Self {
        let low = mixed(self.low() ^ mixed(self.high()));
        Self::from_halves(self.high() ^ mixed(low.wrapping_add(0x9e37_79b9_7f4a_7c15)), low)
    }
}

/// The finalizer of MurmurHash3: one to one, and each bit depends on all.
#[inline]
fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ bits >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits = (bits ^ bits >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ bits >> 33
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
    /// SipHash-1-3, with a secret 128-bit key, of the prefix and then of the suffix, 64 bits each: items of one prefix
    /// are neighbours (SlimDB §3.1).
    SemiSorted {
        /// First half of the secret key.
        key0: u64,
        /// Second half of the secret key; that of suffixes is its complement.
        key1: u64,
        /// Where prefixes end.
        prefix: PrefixRule,
        /// Whether tables also store the names of prefixes, so that prefixes can be listed in order. Hashes do not
        /// depend on it.
        #[serde(default, skip_serializing_if = "is_false")]
        lists_prefixes: bool,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// The prefix of the key hashed last, and its hash: see [`KeyHasher::hash_next`].
#[derive(Clone, Debug, Default)]
pub struct LastPrefix {
    prefix: Vec<u8>,
    hash: Option<u64>,
}

impl KeyHasher {
    /// Hashes `key`. In a semi-sorted keyspace a key without a prefix is hashed as if all of it were the prefix; such
    /// keys are never stored.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        match *self {
            Self::SipHash13 { key0, key1 } => {
                let hash = SipHasher13::new_with_keys(key0, key1).hash(key);
                KeyHash::from_halves(hash.h1, hash.h2)
            }
            Self::Xxh3 { seed } => KeyHash(twox_hash::XxHash3_128::oneshot_with_seed(seed, key)),
            Self::SemiSorted { key0, key1, prefix, .. } => {
                let (prefix, suffix) = key.split_at(prefix.prefix_len(key).unwrap_or(key.len()));
                let suffix = SipHasher13::new_with_keys(key0, !key1).hash(suffix);
                KeyHash::from_halves(SipHasher13::new_with_keys(key0, key1).hash(prefix).h1, suffix.h1)
            }
        }
    }

    /// Like [`KeyHasher::hash`], for keys that come in order: if a key has the prefix of the previous key, only its
    /// suffix is hashed. `last` belongs to this hasher.
    #[inline]
    pub fn hash_next(&self, key: &[u8], last: &mut LastPrefix) -> KeyHash {
        let Self::SemiSorted { key0, key1, prefix, .. } = *self else { return self.hash(key) };
        let (prefix, suffix) = key.split_at(prefix.prefix_len(key).unwrap_or(key.len()));
        if last.hash.is_none() || last.prefix != prefix {
            last.prefix.clear();
            last.prefix.extend_from_slice(prefix);
            last.hash = self.prefix_hash(prefix);
        }
        let suffix = SipHasher13::new_with_keys(key0, !key1).hash(suffix);
        KeyHash::from_halves(last.hash.unwrap_or_default(), suffix.h1)
    }

    /// Whether items of one prefix are neighbours.
    #[inline]
    pub fn is_semi_sorted(&self) -> bool {
        matches!(self, Self::SemiSorted { .. })
    }

    /// Whether tables store the names of prefixes.
    #[inline]
    pub fn lists_prefixes(&self) -> bool {
        matches!(self, Self::SemiSorted { lists_prefixes: true, .. })
    }

    /// The rule that says where prefixes end; `None` for keyspaces without prefixes.
    pub fn prefix_rule(&self) -> Option<PrefixRule> {
        match *self {
            Self::SemiSorted { prefix, .. } => Some(prefix),
            Self::SipHash13 { .. } | Self::Xxh3 { .. } => None,
        }
    }

    /// Returns the prefix of `key`, or `None` if there is none.
    pub fn prefix_of<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        key.get(..self.prefix_rule()?.prefix_len(key)?)
    }

    /// The high half of the hashes of all keys with this prefix; `None` for keyspaces without prefixes.
    pub fn prefix_hash(&self, prefix: &[u8]) -> Option<u64> {
        match *self {
            Self::SemiSorted { key0, key1, .. } => {
                Some(SipHasher13::new_with_keys(key0, key1).hash(prefix).h1)
            }
            Self::SipHash13 { .. } | Self::Xxh3 { .. } => None,
        }
    }

    /// The bits of `hash`, which this hasher made, by which filters, the log's index and its shards place items:
    /// uniform over all items, whatever their prefixes and suffixes.
    #[inline]
    pub fn placing(&self, hash: KeyHash) -> KeyHash {
        if self.is_semi_sorted() { hash.spread() } else { hash }
    }

    /// Returns the name of the prefix function if there is one and it was not given yet.
    pub fn missing_function(&self) -> Option<PrefixName> {
        self.prefix_rule()?.missing_function()
    }

    /// The hasher with its prefix function, if it has one and `given` contains it.
    pub fn with_functions(self, given: &[PrefixFunction]) -> Self {
        match self {
            Self::SemiSorted { key0, key1, prefix, lists_prefixes } => {
                Self::SemiSorted { key0, key1, prefix: prefix.with_functions(given), lists_prefixes }
            }
            hasher => hasher,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn semi_sorted(lists_prefixes: bool) -> KeyHasher {
        KeyHasher::SemiSorted {
            key0: 1,
            key1: 2,
            prefix: PrefixRule::Delimiter { byte: b'/' },
            lists_prefixes,
        }
    }

    #[test]
    fn values_are_frozen_because_they_are_on_disk() {
        let sip = KeyHasher::SipHash13 { key0: 1, key1: 2 };
        let xxh3 = KeyHasher::Xxh3 { seed: 3 };
        assert_eq!(format!("{:?}", sip.hash(b"key")), "6eb73a254c3c75bca80e24ccab3ff9b2");
        assert_eq!(format!("{:?}", xxh3.hash(b"key")), "ca45b2ce49cbb1f20b35c40d7676be50");
    }

    #[test]
    fn keys_of_one_prefix_share_the_high_half() {
        let hasher = semi_sorted(false);
        assert_eq!(format!("{:?}", hasher.hash(b"dir/name")), "ab72bf17567333e932ab6c56031124c4");
        assert_eq!(format!("{:?}", hasher.hash(b"dir/name").spread()), "ab572062e3f91b6535889fdf71a75f3f");
        assert_eq!(hasher.hash(b"dir").high(), hasher.hash(b"dir/name").high());
        let of_prefix = KeyHash::of_prefix(hasher.hash(b"dir").high());
        assert_eq!(format!("{of_prefix:?}"), "33e0e6d0c516ab1976d6e994865bedae");
        assert_eq!(hasher.prefix_hash(b"dir"), Some(hasher.hash(b"dir/name").high()));
        assert_eq!(hasher.prefix_of(b"dir/name"), Some(&b"dir"[..]));
        assert_ne!(hasher.hash(b"dir").low(), hasher.hash(b"dir/name").low());
        assert_eq!(hasher.hash(b"a/name").low(), hasher.hash(b"b/name").low());
        for hasher in [hasher, semi_sorted(true)] {
            let json = serde_json::to_string(&hasher).unwrap();
            assert_eq!(serde_json::from_str::<KeyHasher>(&json).unwrap(), hasher);
        }
    }

    #[test]
    fn keys_in_order_hash_as_they_do_alone() {
        for hasher in [semi_sorted(false), KeyHasher::Xxh3 { seed: 3 }] {
            let mut last = LastPrefix::default();
            for key in ["", "/", "/a", "a/b", "a/c", "a", "b", "b/a", "b/", "a/b"] {
                let key = key.as_bytes();
                assert_eq!(hasher.hash_next(key, &mut last), hasher.hash(key));
            }
        }
    }

    #[test]
    fn spread_bits_are_uniform_where_the_halves_are_not() {
        let shards = |hash: fn(u64) -> KeyHash| {
            let mut counts = [[0; 16]; 2];
            for number in 0..16_000 {
                let spread = hash(number).spread();
                counts[0][(spread.high() >> 60) as usize] += 1;
                counts[1][(spread.low() % 16) as usize] += 1;
            }
            counts.into_iter().flatten().all(|count| (850..1150).contains(&count))
        };
        assert!(shards(|number| KeyHash::from_halves(number, 7)));
        assert!(shards(|number| KeyHash::from_halves(7, number << 40)));
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
