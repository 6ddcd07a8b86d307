//! [`FilterBuilder`]: builds the filter of a section while its pages are written.

use alluvium_base::{KeyHash, KeyHasher};
use alluvium_index::cuckoo::CuckooTable;
use alluvium_index::hash_filter::HashFilter;
use alluvium_index::static_filter::StaticFilter;
use alluvium_index::trie::Fragments;

use crate::cluster_builder::ClusterBuilder;
use crate::covering_builder::CoveringBuilder;
use crate::error::Result;
use crate::own_filter::OwnFilter;

/// Number of attempts to build a filter, each in a larger table, if its keys do not fit.
const TRIES_MAX: usize = 8;
/// Number of hashes by which the prefetch of buckets runs ahead.
const PREFETCH_AHEAD: usize = 12;

/// The kind of a filter for one section alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterKind {
    /// Tags of this number of bits in a cuckoo table.
    Tags(u32),
    /// A static filter of this number of bits.
    Static(u32),
    /// This number of bits of each hash, in the order of a dense trie. For sections that have such an index.
    Fragments(u32),
}

/// A kind of filter that is made when all hashes are known, and its bits.
#[derive(Clone, Copy, Debug)]
pub(super) enum GatheredKind {
    Tags(u32),
    Static(u32),
}

/// The filter of the section being written.
#[derive(Debug)]
pub(super) enum FilterBuilder {
    None,
    /// Made before the items arrived.
    Made(HashFilter),
    /// Made at the end from the items' hashes.
    Gathered {
        kind: GatheredKind,
        hashes: Vec<KeyHash>,
        prefixes: GatheredPrefixes,
    },
    /// Fragments of the items so far.
    Fragments(Fragments),
    /// For a table in buckets: made at the end from the items' hashes and the filters of other tables.
    Clustered(ClusterBuilder),
    /// Made from the items' hashes and the filter of the tables below.
    Covering(CoveringBuilder),
}

/// The prefixes of a semi-sorted section's items. The filter may contain them as well, so that a scan of another prefix
/// reads nothing of the table.
#[derive(Debug, Default)]
pub(super) struct GatheredPrefixes {
    /// Their hashes, ascending.
    hashes: Vec<u64>,
    /// Whether the filter contains them regardless of the number of items per prefix.
    always: bool,
}

/// Minimum mean number of items per prefix for which a filter contains prefixes. They then take at most half of what
/// items take.
const ITEMS_A_PREFIX_MIN: usize = 2;

impl GatheredPrefixes {
    /// No prefixes yet, for a table of the level of this number. Tables of the youngest level are small and several, so
    /// that each scan would read most of them for nothing.
    pub fn of_level(level: Option<u8>) -> Self {
        Self { hashes: Vec::new(), always: level == Some(0) }
    }

    #[inline]
    fn push(&mut self, hasher: KeyHasher, hash: KeyHash) {
        if hasher.is_semi_sorted() && self.hashes.last() != Some(&hash.high()) {
            self.hashes.push(hash.high());
        }
    }

    /// The prefixes that are added to the filter of `items` items.
    fn worth_knowing(&self, items: usize) -> &[u64] {
        if self.always || self.hashes.len() * ITEMS_A_PREFIX_MIN <= items { &self.hashes } else { &[] }
    }
}

/// A finished filter.
#[derive(Debug)]
pub(super) struct MadeFilter {
    pub filter: OwnFilter,
    /// Whether it contains prefixes as well as items.
    pub knows_prefixes: bool,
}

impl FilterBuilder {
    /// A filter for approximately `items_expected` items, in a section of the level of this number.
    pub fn gathered(kind: FilterKind, level: Option<u8>, items_expected: u64) -> Self {
        let kind = match kind {
            FilterKind::Fragments(bits) => return Self::Fragments(Fragments::new(bits)),
            FilterKind::Tags(bits) => GatheredKind::Tags(bits),
            FilterKind::Static(bits) => GatheredKind::Static(bits),
        };
        let hashes = Vec::with_capacity(items_expected as usize);
        Self::Gathered { kind, hashes, prefixes: GatheredPrefixes::of_level(level) }
    }

    /// Adds an item. Equal hashes follow each other.
    #[inline]
    pub fn push(&mut self, hasher: KeyHasher, hash: KeyHash, key: &[u8]) -> Result<()> {
        match self {
            Self::Gathered { hashes, prefixes, .. } => {
                prefixes.push(hasher, hash);
                let placed = hasher.placing(hash);
                if hashes.last() != Some(&placed) {
                    hashes.push(placed);
                }
            }
            Self::Clustered(builder) => builder.push(hash),
            Self::Fragments(fragments) => fragments.push(hash),
            Self::Covering(builder) => builder.push(hasher, hash, key)?,
            Self::None | Self::Made(_) => {}
        }
        Ok(())
    }

    /// Returns `None` if the section has no filter of its own, and for hashes so alike that no table takes them:
    /// lookups then work without.
    pub fn finish(self) -> Option<MadeFilter> {
        match self {
            Self::None | Self::Clustered(_) | Self::Covering(_) => None,
            Self::Fragments(mut fragments) => {
                fragments.shrink_to_fit();
                Some(MadeFilter { filter: OwnFilter::Fragments(fragments), knows_prefixes: false })
            }
            Self::Made(filter) => Some(MadeFilter { filter: OwnFilter::Tags(filter), knows_prefixes: false }),
            Self::Gathered { kind, mut hashes, prefixes } => {
                let known = prefixes.worth_knowing(hashes.len());
                hashes.extend(known.iter().map(|&prefix| KeyHash::of_prefix(prefix)));
                let knows_prefixes = !known.is_empty();
                let slack = hashes.len() / 16 + 1;
                let filter = match kind {
                    GatheredKind::Static(bits) => OwnFilter::Static(StaticFilter::new(&hashes, bits)),
                    GatheredKind::Tags(bits) => OwnFilter::Tags(
                        (0..TRIES_MAX).find_map(|attempt| tags_of(&hashes, bits, attempt * slack))?,
                    ),
                };
                Some(MadeFilter { filter, knows_prefixes })
            }
        }
    }
}

/// The tags of these hashes, in a table with room for `slack` more, or `None` if they do not fit.
fn tags_of(hashes: &[KeyHash], tag_bits: u32, slack: usize) -> Option<HashFilter> {
    let table = CuckooTable::with_entries(hashes.len() + slack);
    for (position, &hash) in hashes.iter().enumerate() {
        // Ascending hashes belong to random buckets.
        if let Some(&ahead) = hashes.get(position + PREFETCH_AHEAD) {
            table.prefetch(ahead);
        }
        table.insert(hash, 0).ok()?;
    }
    Some(HashFilter::from_table(&table, tag_bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(kind: FilterKind, hashes: impl Iterator<Item = KeyHash>) -> Option<OwnFilter> {
        let mut builder = FilterBuilder::gathered(kind, None, 0);
        hashes.for_each(|hash| builder.push(KeyHasher::Xxh3 { seed: 0 }, hash, b"").unwrap());
        builder.finish().map(|made| made.filter)
    }

    #[test]
    fn a_filter_of_gathered_hashes_has_them_all() {
        let hash = |number: u64| {
            KeyHash::from_halves(number << 40, number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17))
        };
        let kinds = [FilterKind::Tags(12), FilterKind::Static(9)];
        let counts = [0, 1, 2, 3, 10, 1000, 30_000];
        for (kind, count) in kinds.into_iter().flat_map(|kind| counts.map(|count| (kind, count))) {
            let filter = gathered(kind, (0..count).map(hash)).expect("different hashes fit");
            assert!((0..count).all(|number| filter.may_contain(hash(number))));
            let others = (count..count + 10_000).filter(|&number| filter.may_contain(hash(number))).count();
            assert!(others < 60, "{others} of 10,000 absent keys");
        }
    }

    #[test]
    fn hashes_too_alike_go_without_a_filter() {
        let alike = || (0..9).map(|high| KeyHash::from_halves(high, 7));
        assert!(gathered(FilterKind::Tags(12), alike()).is_none());
        assert!(gathered(FilterKind::Static(12), alike()).is_some());
        let equal = gathered(FilterKind::Tags(12), (0..9).map(|_| KeyHash::from_halves(1, 7)));
        assert_eq!(equal.expect("one hash fits").tags().map(HashFilter::len), Some(1));
    }
}
