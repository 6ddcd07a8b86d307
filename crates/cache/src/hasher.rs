//! How a cache or store hashes keys.
//!
//! No hash outlives the process, so its values need not be frozen: keys of up to 16 bytes take two multiplications, a
//! quarter of the instructions of XXH3 with 128 bits, and a lookup that is short enough overlaps with the next
//! (decision 0036).

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher as _};

use alluvium_base::checksum::checksum64;
use alluvium_base::{KeyHash, KeyHasher};
use foldhash::SharedSeed;
use foldhash::quality::SeedableRandomState;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) enum Hasher {
    /// The default: folded multiplications with secrets.
    Folded(SeedableRandomState),
    /// The caller's choice.
    Given(KeyHasher),
    /// As by default, but the high half, which chooses the partition, is XXH3 with a seed that others know.
    Directed(SeedableRandomState, u64),
}

impl Default for Hasher {
    fn default() -> Self {
        Self::Folded(secret())
    }
}

/// Only those who know the seed can aim keys at one bucket, and such keys would only evict one another anyway.
fn secret() -> SeedableRandomState {
    let seed = RandomState::new().build_hasher().finish();
    SeedableRandomState::with_seed(seed, SharedSeed::global_random())
}

impl Hasher {
    /// One that chooses partitions by XXH3 with this seed.
    pub fn directed(seed: u64) -> Self {
        Self::Directed(secret(), seed)
    }

    /// Hashes `key`.
    #[inline(always)]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        match self {
            Self::Folded(state) => widened(folded(state, key)),
            Self::Given(hasher) => given(*hasher, key),
            Self::Directed(state, seed) => directed(state, *seed, key),
        }
    }
}

#[inline(always)]
fn folded(state: &SeedableRandomState, key: &[u8]) -> u64 {
    let mut hasher = state.build_hasher();
    hasher.write(key);
    hasher.finish()
}

#[inline(never)]
fn directed(state: &SeedableRandomState, seed: u64, key: &[u8]) -> KeyHash {
    KeyHash::from_halves(checksum64(key, seed), folded(state, key))
}

/// Derives both halves of a hash from 64 bits. The first bits of the high half choose the partition and depend on all
/// bits of the low half, so the bits that choose bucket and tag say nothing about them.
#[inline(always)]
fn widened(low: u64) -> KeyHash {
    KeyHash::from_halves(low.wrapping_mul(0x9e37_79b9_7f4a_7c15), low)
}

#[inline(never)]
fn given(hasher: KeyHasher, key: &[u8]) -> KeyHash {
    hasher.hash(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{Place, owner_of, partition_of};

    /// Keys that differ in a few bits spread evenly over partitions, owners, buckets within a partition, and tags.
    #[test]
    fn what_is_taken_from_a_hash_is_even() {
        const KEYS: u64 = 160_000;
        const PARTS: usize = 8;
        for (hasher, key_bytes) in [Hasher::default(), Hasher::directed(7)]
            .iter()
            .flat_map(|hasher| [8, 16, 40].map(|len| (hasher, len)))
        {
            let mut counts = vec![[[0_u32; PARTS]; PARTS]; 3];
            let mut key = vec![0; key_bytes];
            for number in 0..KEYS {
                key[..8].copy_from_slice(&number.to_le_bytes());
                let hash = hasher.hash(&key);
                assert_eq!(hash, hasher.hash(&key));
                let place = Place::of(hash, PARTS);
                let partition = partition_of(hash, PARTS);
                counts[0][partition][place.bucket] += 1;
                counts[1][partition][usize::from(place.tag) % PARTS] += 1;
                counts[2][owner_of(hash, PARTS)][place.bucket] += 1;
            }
            let mean = KEYS as u32 / (PARTS * PARTS) as u32;
            for count in counts.into_iter().flatten().flatten() {
                assert!(count.abs_diff(mean) < mean / 10, "{count} where {mean} are the mean");
            }
        }
    }
}
