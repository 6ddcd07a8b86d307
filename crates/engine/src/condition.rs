//! [`Condition`]: what a batch demands of a key before it writes.

use std::fmt;

use crate::metadata::Metadata;
use sha2::{Digest, Sha256};

/// What [`crate::Batch::require`] demands of a key. An expired item counts as absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// There is no item.
    Absent,
    /// There is an item, with any value. Costs as much as [`crate::Keyspace::contains_key`].
    Present,
    /// There is an item with this value, and any flags and expiry.
    Value(Vec<u8>),
    /// The item, or its absence, is the same as when this version was read.
    Unchanged(ItemVersion),
}

/// Identifies what was stored under a key at some moment: value, flags and expiry, or that there was no item. From
/// [`crate::Keyspace::get_with_version`].
///
/// Two versions are equal if and only if what they stand for is: a version is a digest (SHA-256), so it may be kept for
/// any time, even across openings of the database. An item that was changed and changed back has its earlier version
/// again.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ItemVersion([u8; 32]);

impl ItemVersion {
    pub(crate) fn of(item: Option<&(Vec<u8>, Metadata)>) -> Self {
        let mut digest = Sha256::new();
        if let Some((value, Metadata { flags, expires_at_ms })) = item {
            digest.update([1, u8::from(expires_at_ms.is_some())]);
            digest.update(flags.to_le_bytes());
            digest.update(expires_at_ms.unwrap_or(0).to_le_bytes());
            digest.update(value);
        }
        Self(digest.finalize().into())
    }

    /// The version as bytes, to be sent or stored.
    pub fn to_bytes(self) -> [u8; 32] {
        self.0
    }

    /// The version of these bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for ItemVersion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("ItemVersion(")?;
        self.0[..8].iter().try_for_each(|byte| write!(out, "{byte:02x}"))?;
        out.write_str("..)")
    }
}

/// The condition because of which a batch was not written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedCondition {
    /// Its number, counted from 0 in the order of [`crate::Batch::require`]. The first that failed.
    pub number: usize,
    /// Name of the keyspace.
    pub keyspace: String,
    /// The key.
    pub key: Vec<u8>,
    /// The condition on the key.
    pub condition: Condition,
}

impl fmt::Display for FailedCondition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let demand = match &self.condition {
            Condition::Absent => "to be absent".to_owned(),
            Condition::Present => "to be present".to_owned(),
            Condition::Value(value) => format!("to have a given value of {} bytes", value.len()),
            Condition::Unchanged(_) => "to be as it was when it was read".to_owned(),
        };
        let key = self.key[..self.key.len().min(32)].escape_ascii();
        write!(
            out,
            "nothing was written: condition {} demands key \"{key}\" of keyspace {:?} {demand}",
            self.number, self.keyspace
        )
    }
}
