//! Which shard of a build has a key: shards are equal ranges of hashes.

use alluvium_base::{HashRange, KeyHasher};

use crate::blob::StoredKey;
use crate::hash_key::HashKey;
use crate::order::Order;

/// Maximum number of shards of a build.
pub const SHARDS_MAX: u32 = 1 << 16;

/// Numbers for the files of each shard, so that no two shards of a build have files of the same number.
const FILES_PER_SHARD: u64 = 1 << 20;

/// The hash of `key` in a keyspace of hashed order: the first 8 bytes, little-endian, of its SipHash-1-3 of 128 bits
/// under `hash_key`. Programs that route keys to shards compute it in any language. A key of more than 1024 bytes is
/// represented by 48 bytes, which are hashed instead (docs/format.md, "Item"). Takes about 20 ns for 16 bytes.
pub fn hash_of(key: &[u8], hash_key: HashKey) -> u64 {
    Order::Hashed.hasher(hash_key, &[]).hash(&StoredKey::of(key)).high()
}

/// The shard, from 0 to `shards` - 1, that has `key` in a build of hashed order: ⌊h · `shards` / 2⁶⁴⌋, where h is its
/// [`hash_of`]. Shards are thus ranges of the order in which tables store items.
///
/// ```
/// use alluvium::{HashKey, hash_of, shard_of};
/// let hash_key = HashKey::from_bytes([7; 16]);
/// assert_eq!(hash_of(b"apple", hash_key), 0xe8fa_9d97_7a48_c261);
/// assert_eq!(shard_of(b"apple", hash_key, 8), 7);
/// ```
///
/// # Panics
/// If `shards` is 0.
pub fn shard_of(key: &[u8], hash_key: HashKey, shards: u32) -> u32 {
    assert!(shards > 0, "a build has at least one shard");
    shard_of_hash(hash_of(key, hash_key), shards)
}

/// The shard of a key, for any order.
pub(super) fn shard_of_key(key: &[u8], hasher: &KeyHasher, shards: u32) -> u32 {
    shard_of_hash(hasher.hash(&StoredKey::of(key)).high(), shards)
}

/// The shard of a key whose hash has this high half.
pub(crate) fn shard_of_hash(hash: u64, shards: u32) -> u32 {
    ((u128::from(hash) * u128::from(shards)) >> 64) as u32
}

/// The hashes of a shard.
pub(crate) fn shard_range(shard: u32, shards: u32) -> HashRange {
    // The first high half of a hash that belongs to a shard; 2^64 for the one behind the last.
    let first = |shard: u32| (u128::from(shard) << 64).div_ceil(u128::from(shards));
    let high = match shard + 1 == shards {
        true => u128::MAX,
        false => (first(shard + 1) << 64) - 1,
    };
    HashRange::new(first(shard) << 64, high)
}

/// The first number for files of a shard. Those of the next shard follow after 2^20.
pub(crate) fn first_file(shard: u32) -> u64 {
    1 + u64::from(shard) * FILES_PER_SHARD
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_hash_belongs_to_the_shard_whose_range_has_it(hash: u64, shards in 1..=SHARDS_MAX) {
            let shard = shard_of_hash(hash, shards);
            prop_assert!(shard < shards);
            let range = HashRange::of_high_half(hash);
            prop_assert!(shard_range(shard, shards).covers(range));
        }

        #[test]
        fn ranges_tile_the_hash_space(shards in 1..=2000_u32) {
            prop_assert_eq!(shard_range(0, shards).low, 0);
            prop_assert_eq!(shard_range(shards - 1, shards).high, u128::MAX);
            for shard in 1..shards {
                prop_assert!(shard_range(shard - 1, shards).meets(shard_range(shard, shards)));
            }
        }
    }

    #[test]
    fn the_last_shard_ends_with_the_hash_space() {
        assert_eq!(shard_of_hash(u64::MAX, SHARDS_MAX), SHARDS_MAX - 1);
        assert_eq!(shard_range(0, 1), HashRange::ALL);
        assert_eq!(first_file(SHARDS_MAX), 1 << 36 | 1);
    }
}
