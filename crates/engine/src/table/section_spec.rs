//! [`SectionSpec`]: what a section is about.

use alluvium_base::KeyHasher;

/// What a section is about, whatever its layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SectionSpec {
    /// Keyspace that the items belong to.
    pub keyspace: u32,
    /// How the keys became hashes.
    pub hasher: KeyHasher,
    /// Lowest [`KeyHash::high`] of the section's part of the hash space.
    pub range_low: u64,
    /// Highest one, included.
    pub range_high: u64,
    /// Number of the level in the keyspace's plan that the section is for.
    pub level: usize,
}
