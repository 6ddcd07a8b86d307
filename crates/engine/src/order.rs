//! [`Order`]: the order in which a keyspace stores its items.

use alluvium_base::{KeyHasher, PrefixFunction, PrefixRule};
use alluvium_model::Plan;

use crate::hash_key::HashKey;

/// The order in which a keyspace stores its items. Chosen when the keyspace is created, and never changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By the hash of the key. The default: takes the least memory.
    #[default]
    Hashed,
    /// By the hash of the key's prefix, then that of the rest: items of one prefix are neighbours, so that
    /// [`crate::Keyspace::scan_prefix`] reads them together (SlimDB, VLDB 2017). Keys have at most 1024 bytes; with
    /// prefixes of a fixed length, they have at least that length.
    ///
    /// The reason for the maximum: a longer key is stored in a blob file, and a stand-in with its SHA-256 represents it
    /// in the log and in tables. The stand-in is hashed like a key, so moving an item needs no blob. But it has no
    /// prefix: without reading a blob for each such item, neither the position of the group nor `scan_prefix` and
    /// `delete_prefix` could tell to which prefix it belongs, and a prefix function (which is the program's) need not
    /// find in a shorter text what it found in the key. A stand-in that includes the prefix would be a different
    /// format, with room for short prefixes only.
    SemiSorted {
        /// The rule that says where prefixes end.
        prefix: PrefixRule,
        /// Whether [`crate::Keyspace::prefixes`] lists them in the order of their bytes. Tables then store the names of
        /// their prefixes, too. Each prefix takes its bytes and 6 more in each table with items of it, and another 32
        /// bytes of memory while the table is made. Lookups, scans and the log's part of a put stay the same.
        lists_prefixes: bool,
    },
}

/// Options for creating a keyspace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyspaceOptions {
    /// Its order.
    pub order: Order,
    /// Its plan. `None` means the database's ([`crate::Builder::plan`]) if that suits the order; otherwise, for a
    /// semi-sorted keyspace, [`Plan::semi_sorted`].
    pub plan: Option<Plan>,
    /// The secret key of its hash function. `None` means a new random one.
    pub hash_key: Option<HashKey>,
}

impl KeyspaceOptions {
    /// A keyspace that stores items of one prefix together.
    pub fn semi_sorted(prefix: PrefixRule) -> Self {
        Self { order: Order::SemiSorted { prefix, lists_prefixes: false }, ..Self::default() }
    }

    /// The same options, with prefixes that can be listed ([`crate::Keyspace::prefixes`]). Has no effect on a keyspace
    /// without prefixes.
    pub fn with_listed_prefixes(self) -> Self {
        match self.order {
            Order::Hashed => self,
            Order::SemiSorted { prefix, .. } => {
                Self { order: Order::SemiSorted { prefix, lists_prefixes: true }, ..self }
            }
        }
    }

    /// The same options, with this secret key of the hash function: that of a keyspace in another database, for example
    /// ([`crate::Keyspace::hash_key`]).
    pub fn with_hash_key(self, hash_key: HashKey) -> Self {
        Self { hash_key: Some(hash_key), ..self }
    }

    /// The same options, with this plan.
    pub fn with_plan(self, plan: Plan) -> Self {
        Self { plan: Some(plan), ..self }
    }
}

impl Order {
    /// The order that this hasher produces.
    pub(crate) fn of(hasher: &KeyHasher) -> Self {
        let lists_prefixes = hasher.lists_prefixes();
        hasher.prefix_rule().map_or(Self::Hashed, |prefix| Self::SemiSorted { prefix, lists_prefixes })
    }

    /// A hasher for this order with this secret key.
    pub(crate) fn hasher(self, key: HashKey, given: &[PrefixFunction]) -> KeyHasher {
        let HashKey { key0, key1 } = key;
        match self {
            Self::Hashed => KeyHasher::SipHash13 { key0, key1 },
            Self::SemiSorted { prefix, lists_prefixes } => {
                KeyHasher::SemiSorted { key0, key1, prefix, lists_prefixes }.with_functions(given)
            }
        }
    }
}
