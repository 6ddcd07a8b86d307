//! [`PrefixList`]: the items of a log shard by their prefixes.
//!
//! The log's index finds keys, not prefixes. This list has eight bytes per key, in sorted arrays of doubling lengths
//! (Bentley and Saxe's logarithmic method): each entry is moved log2(n) times in all, and a lookup searches log2(n)
//! arrays. A sorted map would take several times the memory; sorting for a lookup would take time proportional to all
//! items.

use std::ops::RangeInclusive;

/// Offsets of items, each with the first 32 bits of its prefix's hash.
#[derive(Debug, Default)]
pub(super) struct PrefixList {
    /// Each is ascending, and at least twice as long as the next.
    arrays: Vec<Vec<(u32, u32)>>,
}

/// Shorter arrays are filled up instead of starting another.
const ARRAY_LEN_MIN: usize = 16;

fn tag(prefix_hash: u64) -> u32 {
    (prefix_hash >> 32) as u32
}

impl PrefixList {
    /// Adds an item.
    pub fn push(&mut self, prefix_hash: u64, offset: u32) {
        let entry = (tag(prefix_hash), offset);
        match self.arrays.last_mut() {
            Some(last) if last.len() < ARRAY_LEN_MIN => {
                let place = last.partition_point(|other| *other < entry);
                last.insert(place, entry);
            }
            _ => self.arrays.push(vec![entry]),
        }
        while let [.., longer, last] = &self.arrays[..]
            && last.len() >= ARRAY_LEN_MIN
            && longer.len() < 2 * last.len()
        {
            let merged = merge(longer, last);
            self.arrays.truncate(self.arrays.len() - 2);
            self.arrays.push(merged);
        }
    }

    /// Offsets of items whose prefixes have hashes in this range. A few others may be among them.
    pub fn offsets(&self, prefix_hashes: RangeInclusive<u64>) -> Vec<u32> {
        self.within(prefix_hashes).flatten().map(|&(_, offset)| offset).collect()
    }

    /// The number of offsets that [`PrefixList::offsets`] returns.
    pub fn count(&self, prefix_hashes: RangeInclusive<u64>) -> usize {
        self.within(prefix_hashes).map(<[_]>::len).sum()
    }

    /// The part of each array in the range.
    fn within(&self, prefix_hashes: RangeInclusive<u64>) -> impl Iterator<Item = &[(u32, u32)]> {
        let (first, last) = (tag(*prefix_hashes.start()), tag(*prefix_hashes.end()));
        self.arrays.iter().map(move |array| {
            let start = array.partition_point(|entry| entry.0 < first);
            let len = array[start..].partition_point(|entry| entry.0 <= last);
            &array[start..start + len]
        })
    }

    /// Memory in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.arrays.iter().map(|array| (array.capacity() * size_of::<(u32, u32)>()) as u64).sum()
    }
}

fn merge(one: &[(u32, u32)], other: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut merged = Vec::with_capacity(one.len() + other.len());
    merged.extend_from_slice(one);
    merged.extend_from_slice(other);
    // Two ascending halves: the sort finds and merges them.
    merged.sort();
    merged
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_items_of_a_prefix_are_found(prefixes in prop::collection::vec(0u64..20, 0..700)) {
            let mut list = PrefixList::default();
            let mut model: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
            for (&prefix, offset) in prefixes.iter().zip(0u32..) {
                list.push(prefix << 32, offset);
                model.entry(prefix).or_default().push(offset);
            }
            for first in 0..20 {
                for last in first..20 {
                    let hashes = first << 32..=last << 32;
                    let mut found = list.offsets(hashes.clone());
                    found.sort_unstable();
                    let mut expected: Vec<u32> = model.range(first..=last).flat_map(|(_, of)| of.clone()).collect();
                    expected.sort_unstable();
                    prop_assert_eq!(list.count(hashes), expected.len());
                    prop_assert_eq!(found, expected);
                }
            }
            prop_assert!(list.memory_bytes() <= 8 * (2 * prefixes.len() as u64 + 32));
            prop_assert!(list.arrays.len() <= 12);
        }
    }
}
