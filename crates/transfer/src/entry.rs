//! [`Entry`]: one entry of a file.

use crate::keyspace_head::KeyspaceHead;
use crate::record::Record;

/// One entry of a file: an item, or the description of a keyspace before its items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A keyspace. Comes before its items, or alone if it has none.
    Keyspace(KeyspaceHead),
    /// An item.
    Record(Record),
}

impl Entry {
    pub(crate) fn is_record(&self) -> bool {
        matches!(self, Self::Record(_))
    }

    /// What is too long, and how long it is.
    pub(crate) fn excess(&self) -> Option<(String, String)> {
        match self {
            Self::Keyspace(head) => head.excess(),
            Self::Record(record) => record.excess(),
        }
    }
}
