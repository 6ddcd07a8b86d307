//! [`SectionSpec`]: what a section is about.

use alluvium_base::{KeyHash, KeyHasher};

/// What a section is about, whatever its layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SectionSpec {
    /// Keyspace that the items belong to.
    pub keyspace: u32,
    /// How the keys became hashes.
    pub hasher: KeyHasher,
    /// Lowest hash of the section's part of the hash space.
    pub range_low: u128,
    /// Highest one, included.
    pub range_high: u128,
    /// Number of the level in the keyspace's plan that the section is for.
    pub level: usize,
    /// How many plans the keyspace had before that one.
    pub plan_number: u16,
}

/// The high halves of the lowest and the highest hash of a range, by which buckets are found.
pub(super) fn high_halves((low, high): (u128, u128)) -> (u64, u64) {
    (KeyHash(low).high(), KeyHash(high).high())
}
