//! [`Separator`]: separates the suffixes of two adjacent pages.

use super::cursor::Cursor;
use crate::trie::bits::BitWriter;

/// Number of symbols: one for "splits no group", one for each number of bits from 0 to 63, one for zero.
pub(super) const SYMBOLS: usize = 66;

const NONE: u8 = 0;
const ZERO: u8 = SYMBOLS as u8 - 1;

/// The point at which a group continues in the next page, as the shortest string of bits that separates them: the bits
/// that the last suffix of one page and the first of the next share, then a one, which is implicit. Suffixes from the
/// point on are in the later page. Or a mark that the boundary splits no group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Separator {
    symbol: u8,
    value: u64,
}

impl Separator {
    /// A boundary between two groups.
    pub(super) const NONE: Self = Self { symbol: NONE, value: 0 };

    /// Between suffix `before` and `first`, which is not below it. If they are equal, the point is that suffix.
    pub(super) fn between(before: u64, first: u64) -> Self {
        let shared = (before ^ first).leading_zeros();
        Self::at(if shared == 64 { first } else { first & (u64::MAX << (63 - shared)) })
    }

    /// At `point`.
    fn at(point: u64) -> Self {
        if point == 0 {
            return Self { symbol: ZERO, value: 0 };
        }
        let zeros = point.trailing_zeros();
        Self { symbol: (64 - zeros) as u8, value: point >> zeros >> 1 }
    }

    /// The separator of `symbol` with `value`, which has the symbol's number of bits.
    #[inline(always)]
    pub(super) fn from_parts(symbol: u8, value: u64) -> Self {
        Self { symbol, value }
    }

    /// Its symbol, which determines the number of bits.
    pub(super) fn symbol(self) -> u8 {
        self.symbol
    }

    /// The bits before the last one.
    pub(super) fn value(self) -> u64 {
        self.value
    }

    /// Whether the boundary splits a group.
    pub(super) fn splits(self) -> bool {
        self.symbol != NONE
    }

    /// The first suffix after the boundary; 0 if the boundary splits no group.
    #[inline(always)]
    pub(super) fn point(self) -> u64 {
        match self.symbol {
            NONE | ZERO => 0,
            symbol => (self.value << 1 | 1) << ((64 - u32::from(symbol)) & 63),
        }
    }
}

/// Bits that follow `symbol`, at most 63.
#[inline(always)]
pub(super) fn value_bits(symbol: u8) -> u32 {
    if symbol >= ZERO { 0 } else { u32::from(symbol).saturating_sub(1) }
}

/// The separators of all boundaries while the index is built, before the best code for them is known: a byte and the
/// bits of each.
#[derive(Debug, Default)]
pub(super) struct Separators {
    symbols: Vec<u8>,
    values: BitWriter,
}

impl Separators {
    /// Appends the separator of the next boundary.
    pub(super) fn push(&mut self, separator: Separator) {
        self.symbols.push(separator.symbol);
        self.values.put(separator.value, value_bits(separator.symbol));
    }

    /// Bytes held now.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.symbols.capacity() as u64 + self.values.memory_bytes()
    }

    /// Finishes the list for reading.
    pub(super) fn finish(self) -> FinishedSeparators {
        FinishedSeparators { symbols: self.symbols, values: self.values.finish() }
    }
}

/// The separators of all boundaries.
pub(super) struct FinishedSeparators {
    symbols: Vec<u8>,
    values: Vec<u64>,
}

impl FinishedSeparators {
    /// In the order of boundaries.
    pub(super) fn iter(&self) -> impl Iterator<Item = Separator> + '_ {
        let mut cursor = Cursor::new(&self.values, 0);
        self.symbols.iter().map(move |&symbol| Separator::from_parts(symbol, cursor.take(value_bits(symbol))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_point_lies_behind_the_one_and_not_behind_the_other(a: u64, b: u64, shift in 0u32..64) {
            let (before, first) = (a.min(a ^ b >> shift), a.max(a ^ b >> shift));
            let separator = Separator::between(before, first);
            prop_assert!(separator.splits());
            prop_assert!(separator.point() <= first);
            prop_assert!(before < separator.point() || before == first && separator.point() == first);
            let mut all = Separators::default();
            let (zero, half) = (Separator::between(0, 0), Separator::between(0, u64::MAX));
            let pushed = [separator, Separator::NONE, zero, half, separator];
            pushed.iter().for_each(|separator| all.push(*separator));
            prop_assert!(all.finish().iter().eq(pushed));
        }
    }
}
