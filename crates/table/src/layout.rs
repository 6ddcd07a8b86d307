//! [`Layout`]: the order of items in a section.

/// The order of items in a section. On disk: do not renumber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// In the order of the slots of the section's hash filter (SILT's HashStore).
    Hash = 1,
    /// By key hash, then by key (SILT's SortedStore).
    Sorted = 2,
    /// In the bucket of the hash, or in one to which that bucket has migrated the item (LSM-trie's HTable). Groups of
    /// buckets are in the order of key hashes.
    Bucketed = 3,
    /// Not the layout of a section: pages after those of a section, with the names of its prefixes in the order of
    /// their bytes.
    Names = 4,
}

impl Layout {
    /// The layout of a section that `byte` stands for.
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Hash),
            2 => Some(Self::Sorted),
            3 => Some(Self::Bucketed),
            _ => None,
        }
    }

    /// Whether a scan returns the items in the order of key hashes.
    #[inline]
    pub fn is_ordered(self) -> bool {
        self != Self::Hash
    }
}
