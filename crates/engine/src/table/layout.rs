//! [`Layout`]: the order of items in a section.

/// The order of items in a section. On disk: do not renumber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// In the order of the slots of the section's hash filter (SILT's HashStore).
    Hash = 1,
    /// By key hash, ties by key (SILT's SortedStore).
    Sorted = 2,
    /// In the bucket that the hash says, or where that bucket says (LSM-trie's HTable); groups of buckets by key hash.
    Bucketed = 3,
    /// No section's own: pages behind those of a section, with the names of its prefixes, by their bytes.
    Names = 4,
}

impl Layout {
    /// The layout of a section that `byte` stands for.
    pub fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Hash),
            2 => Some(Self::Sorted),
            3 => Some(Self::Bucketed),
            _ => None,
        }
    }

    /// Whether a scan gives the items by key hash.
    pub fn is_ordered(self) -> bool {
        self != Self::Hash
    }
}
