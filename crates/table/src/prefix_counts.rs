//! [`PrefixCounts`]: how many items a prefix has in a table, as far as it shows whether the prefix has any.

use alluvium_base::varint;

use crate::item::Item;

/// Counts of a prefix in a table or in the log, where each key occurs once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefixCounts {
    /// Lasting items: values without an expiry.
    pub lasting: u64,
    /// Items that may hide a lasting one: tombstones, and items that expire.
    pub hiding: u64,
}

impl PrefixCounts {
    /// Counts one more item of the same table.
    #[inline]
    pub fn add(&mut self, item: &Item<'_>) {
        if item.is_tombstone() || item.expires_at_ms.is_some() {
            self.hiding += 1;
        } else {
            self.lasting += 1;
        }
    }

    /// The counts with those of more items of the same table.
    pub fn and(self, other: Self) -> Self {
        Self { lasting: self.lasting + other.lasting, hiding: self.hiding + other.hiding }
    }

    /// The counts of two tables together: the larger number of lasting items, and the sum of those that may hide.
    #[inline]
    pub fn beside(self, other: Self) -> Self {
        Self { lasting: self.lasting.max(other.lasting), hiding: self.hiding.saturating_add(other.hiding) }
    }

    /// Whether the prefix certainly has an item: each hiding item hides one key, and some table has more keys.
    #[inline]
    pub fn is_live(self) -> bool {
        self.lasting > self.hiding
    }

    /// Appends the two numbers.
    pub fn encode(self, out: &mut Vec<u8>) {
        varint::write(self.lasting, out);
        varint::write(self.hiding, out);
    }

    /// Decodes the counts.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (lasting, len) = varint::read(bytes)?;
        let (hiding, rest_len) = varint::read(&bytes[len..])?;
        (bytes.len() == len + rest_len).then_some(Self { lasting, hiding })
    }
}
