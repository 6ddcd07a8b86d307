//! [`SectionSpec`]: what a section is about.

use alluvium_base::{HashRange, KeyHasher};

/// What a section is about, whatever its layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SectionSpec {
    /// Keyspace that the items belong to.
    pub keyspace: u32,
    /// How the keys became hashes.
    pub hasher: KeyHasher,
    /// The section's part of the hash space.
    pub range: HashRange,
    /// Number of the level in the keyspace's plan that the section is for.
    pub level: usize,
    /// How many plans the keyspace had before that one.
    pub plan_number: u16,
}
