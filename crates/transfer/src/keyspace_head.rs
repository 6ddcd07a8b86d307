//! [`KeyspaceHead`]: the description of a keyspace that precedes its items in a file, and how it is written: as one
//! JSON object in every format.

use std::borrow::Cow;

use alluvium_base::PrefixRule;
use serde::{Deserialize, Serialize};

use crate::error::Mismatch;

/// Maximum bytes of a keyspace's name in a head.
const NAME_BYTES_MAX: usize = 255;
/// Maximum bytes of a plan in a head.
const PLAN_BYTES_MAX: usize = 32 << 10;

/// The description of a keyspace that precedes its items in a file, so that an import can create it as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyspaceHead {
    /// Name of the keyspace, at most 255 bytes.
    pub name: String,
    /// The order of its items.
    pub order: KeyspaceOrder,
    /// Its plan as JSON of at most 32 KiB, if it has one of its own. Opaque here.
    pub plan: Option<String>,
}

/// The order in which a keyspace keeps its items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyspaceOrder {
    /// By the hash of the key.
    Hashed,
    /// By the hash of the key's prefix.
    SemiSorted {
        /// Where prefixes end.
        prefix: PrefixRule,
        /// Whether its tables list the prefixes.
        lists_prefixes: bool,
    },
}

/// The order's name in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OrderName {
    Hashed,
    SemiSorted,
}

/// The fields of a head except the keyspace's name.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Object<'a> {
    keyspace: Cow<'a, str>,
    order: OrderName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prefix: Option<PrefixRule>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lists_prefixes: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plan: Option<Cow<'a, str>>,
}

impl KeyspaceHead {
    /// Builds a head from the fields of a file.
    pub(crate) fn from_fields(
        name: String,
        order: OrderName,
        prefix: Option<PrefixRule>,
        lists_prefixes: Option<bool>,
        plan: Option<String>,
    ) -> Result<Self, Mismatch> {
        let order = match (order, prefix, lists_prefixes) {
            (OrderName::Hashed, None, None) => KeyspaceOrder::Hashed,
            (OrderName::Hashed, ..) => {
                return Err(Mismatch::new("a hashed keyspace without prefixes", "prefix or lists_prefixes"));
            }
            (OrderName::SemiSorted, Some(prefix), lists_prefixes) => {
                KeyspaceOrder::SemiSorted { prefix, lists_prefixes: lists_prefixes.unwrap_or_default() }
            }
            (OrderName::SemiSorted, None, _) => {
                return Err(Mismatch::new("the prefix rule of a semi-sorted keyspace", "none"));
            }
        };
        Ok(Self { name, order, plan })
    }

    pub(crate) fn from_json(json: &[u8]) -> Result<Self, Mismatch> {
        let object: Object<'_> = serde_json::from_slice(json)
            .map_err(|error| Mismatch::new("the head of a keyspace in JSON", error.to_string()))?;
        let Object { keyspace, order, prefix, lists_prefixes, plan } = object;
        Self::from_fields(keyspace.into_owned(), order, prefix, lists_prefixes, plan.map(Cow::into_owned))
    }

    pub(crate) fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        let (order, prefix, lists_prefixes) = match self.order {
            KeyspaceOrder::Hashed => (OrderName::Hashed, None, None),
            KeyspaceOrder::SemiSorted { prefix, lists_prefixes } => {
                (OrderName::SemiSorted, Some(prefix), Some(lists_prefixes))
            }
        };
        let (keyspace, plan) = (Cow::Borrowed(&*self.name), self.plan.as_deref().map(Cow::Borrowed));
        serde_json::to_vec(&Object { keyspace, order, prefix, lists_prefixes, plan })
    }

    /// What is too long, and how long it is.
    pub(crate) fn excess(&self) -> Option<(String, String)> {
        let plan_len = self.plan.as_ref().map_or(0, String::len);
        let limits =
            [("keyspace's name", self.name.len(), NAME_BYTES_MAX), ("plan", plan_len, PLAN_BYTES_MAX)];
        let (name, len, max) = limits.into_iter().find(|(_, len, max)| len > max)?;
        Some((format!("a {name} of at most {max} bytes"), format!("{len} bytes")))
    }
}
