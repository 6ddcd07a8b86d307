//! [`Order`]: the order in which a keyspace stores its items, and what it requires of keys.

use alluvium_base::{KeyHasher, PrefixFunction, PrefixRule};
use alluvium_model::LevelsPlan;

use super::keyspace::KeyspaceShared;
use crate::blob::{INLINE_KEY_BYTES_MAX, StoredKey};
use crate::error::{Error, Result};

/// Completes the hasher of a keyspace with its prefix function, if it has one.
///
/// # Errors
/// [`Error::PrefixFunction`] if that function was not given.
pub(crate) fn complete_hasher(name: &str, hasher: KeyHasher, given: &[PrefixFunction]) -> Result<KeyHasher> {
    let hasher = hasher.with_functions(given);
    match hasher.missing_function() {
        None => Ok(hasher),
        Some(function) => {
            Err(Error::PrefixFunction { keyspace: name.to_owned(), function: function.as_str().to_owned() })
        }
    }
}

/// Checks that the engine executes the plan for a keyspace of this hasher.
pub(crate) fn check_plan(plan: &LevelsPlan, hasher: &KeyHasher) -> Result<()> {
    match hasher.is_semi_sorted() {
        true => plan.check_executable_semi_sorted()?,
        false => plan.check_executable()?,
    }
    Ok(())
}

impl KeyspaceShared {
    /// Refuses a key that a semi-sorted keyspace cannot place: one without a prefix, or one so long that a digest,
    /// which has no prefix, would stand in for it.
    #[inline]
    pub fn check_key(&self, key: &[u8]) -> Result<()> {
        match self.hasher.prefix_rule() {
            None => Ok(()),
            Some(rule) => check_prefixed(rule, key),
        }
    }
}

fn check_prefixed(rule: PrefixRule, key: &[u8]) -> Result<()> {
    if rule.prefix_len(key).is_none() {
        return Err(Error::KeyWithoutPrefix { len: key.len(), rule });
    }
    match StoredKey::of(key) {
        StoredKey::Itself(_) => Ok(()),
        StoredKey::StandIn(_) => Err(Error::KeyTooLarge { len: key.len(), max: INLINE_KEY_BYTES_MAX }),
    }
}
