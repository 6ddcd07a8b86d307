//! [`SectionSpec`]: the description of a new section.

use alluvium_base::{HashRange, KeyHasher, KeyspaceId};

/// The description of a new section, for all layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionSpec {
    /// Keyspace that the items belong to.
    pub keyspace: KeyspaceId,
    /// The hasher of its keys.
    pub hasher: KeyHasher,
    /// The section's part of the hash space.
    pub range: HashRange,
    /// Number of the level in the keyspace's plan that the section is for.
    pub level: usize,
    /// Number of plans that the keyspace had before that one.
    pub plan_number: u16,
}
