//! [`Order`]: in which order a keyspace keeps its items, and what that asks of keys.

use alluvium_base::{KeyHasher, PrefixFunction, PrefixRule};
use alluvium_model::Plan;

use super::keyspace::KeyspaceShared;
use crate::blob::{INLINE_KEY_BYTES_MAX, StoredKey};
use crate::error::{Error, Result};

/// In which order a keyspace keeps its items. Chosen when it is created and never changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By the hash of the key. The default: least memory.
    #[default]
    Hashed,
    /// By the hash of the key's prefix, then that of the rest: items of one prefix are neighbours, so that
    /// [`crate::Keyspace::scan_prefix`] reads them in one go (SlimDB, VLDB 2017). Keys have at most 1024 bytes, and
    /// those of a fixed length of prefix no fewer than that.
    ///
    /// Why no longer keys: one of those lies in a blob file, and a mark with its SHA-256 stands for it in log and
    /// tables. That is hashed like a key, so whoever moves an item needs no blob. But it has no prefix: neither the
    /// place of the group nor `scan_prefix` and `delete_prefix` could tell whose it is without reading a blob for each
    /// such item, and a prefix function (which is the program's) need not find in a shorter text what it found in the
    /// key. Carrying the prefix in the stand-in would be another form of it, with room for short prefixes only.
    SemiSorted {
        /// Where prefixes end.
        prefix: PrefixRule,
        /// Whether [`crate::Keyspace::prefixes`] lists them in the order of their bytes. Tables then have the names of
        /// their prefixes too: each takes its bytes and 6 more in each table that has something of it, and 32 more
        /// besides while the table is made. Lookups, scans and what a put does in the log stay as they are.
        lists_prefixes: bool,
    },
}

/// What a keyspace is created with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyspaceOptions {
    /// Its order.
    pub order: Order,
    /// Its layout. `None`: the database's ([`crate::Builder::plan`]) where that suits the order, else for a semi-sorted
    /// keyspace [`Plan::semi_sorted`].
    pub plan: Option<Plan>,
}

impl KeyspaceOptions {
    /// A keyspace that keeps items of one prefix together.
    pub fn semi_sorted(prefix: PrefixRule) -> Self {
        Self { order: Order::SemiSorted { prefix, lists_prefixes: false }, plan: None }
    }

    /// The same with prefixes that can be listed ([`crate::Keyspace::prefixes`]). Of no consequence without prefixes.
    pub fn with_listed_prefixes(self) -> Self {
        match self.order {
            Order::Hashed => self,
            Order::SemiSorted { prefix, .. } => {
                Self { order: Order::SemiSorted { prefix, lists_prefixes: true }, ..self }
            }
        }
    }

    /// The same with this layout.
    pub fn with_plan(self, plan: Plan) -> Self {
        Self { plan: Some(plan), ..self }
    }
}

impl Order {
    /// The order that this hasher makes.
    pub(crate) fn of(hasher: &KeyHasher) -> Self {
        let lists_prefixes = hasher.lists_prefixes();
        hasher.prefix_rule().map_or(Self::Hashed, |prefix| Self::SemiSorted { prefix, lists_prefixes })
    }

    /// A hasher for this order with this secret key.
    pub(crate) fn hasher(self, key0: u64, key1: u64, given: &[PrefixFunction]) -> KeyHasher {
        match self {
            Self::Hashed => KeyHasher::SipHash13 { key0, key1 },
            Self::SemiSorted { prefix, lists_prefixes } => {
                KeyHasher::SemiSorted { key0, key1, prefix, lists_prefixes }.with_functions(given)
            }
        }
    }
}

/// The hasher of a keyspace with its prefix function, if it has one.
///
/// # Errors
/// [`Error::PrefixFunction`] when that was not given.
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
pub(crate) fn check_plan(plan: &Plan, hasher: &KeyHasher) -> Result<()> {
    match hasher.is_semi_sorted() {
        true => plan.check_executable_semi_sorted()?,
        false => plan.check_executable()?,
    }
    Ok(())
}

impl KeyspaceShared {
    /// Refuses a key that a semi-sorted keyspace can't place: one without a prefix, or one that would be stood for by a
    /// digest, which has no prefix.
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
