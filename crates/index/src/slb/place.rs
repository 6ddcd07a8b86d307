//! [`Place`]: what the tables derive from a key's hash.

/// A key's 64-bit hash, split into fields:
///
/// ```text
///   63                 48 47            16 15        0
///  [ lines: its product with their number | tag       ]
///                       [ tag of the log  ]
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    hash: u64,
}

impl Place {
    #[inline(always)]
    pub fn of(hash: u64) -> Self {
        Self { hash }
    }

    /// Its line among `lines`.
    #[inline(always)]
    pub fn line_of(self, lines: usize) -> usize {
        ((u128::from(self.hash) * lines as u128) >> 64) as usize
    }

    /// Its tag in the cache table: never 0, which marks an empty entry.
    #[inline(always)]
    pub fn tag(self) -> u16 {
        (self.hash as u16).max(1)
    }

    /// Its tag in the log: never 0.
    pub fn log_tag(self) -> u32 {
        ((self.hash >> 16) as u32).max(1)
    }
}
