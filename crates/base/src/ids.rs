//! Numbers of files, segments and keyspaces, each of its own type so that none is taken for another.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$documentation:meta])* $name:ident($number:ty)) => {
        $(#[$documentation])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $number);

        impl $name {
            /// The id after this one.
            pub fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(out)
            }
        }
    };
}

id! {
    /// A table file. Shares its sequence with [`BlobId`]; never used twice.
    TableId(u64)
}
id! {
    /// A blob file. Shares its sequence with [`TableId`]; never used twice.
    BlobId(u64)
}
id! {
    /// A segment of the log. Ids ascend; none is used twice for acknowledged data.
    SegmentId(u64)
}
impl SegmentId {
    /// The id `count` before this one, or the first.
    #[must_use]
    pub fn back(self, count: u64) -> Self {
        Self(self.0.saturating_sub(count))
    }

    /// The ids from this one to the one before `end`.
    pub fn until(self, end: Self) -> impl Iterator<Item = Self> {
        (self.0..end.0).map(Self)
    }
}

id! {
    /// A keyspace; never used twice.
    KeyspaceId(u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_stored_and_shown_as_its_number() {
        assert_eq!(serde_json::to_string(&TableId(7)).unwrap(), "7");
        assert_eq!(serde_json::from_str::<KeyspaceId>("9").unwrap(), KeyspaceId(9));
        assert_eq!(format!("{:08} {}", BlobId(12), SegmentId(3).next()), "00000012 4");
    }
}
