//! [`FilterBuilder`]: the filter of a section while its pages are being written.

use alluvium_base::{KeyHash, KeyHasher};
use alluvium_index::cuckoo::CuckooTable;
use alluvium_index::hash_filter::HashFilter;
use alluvium_index::static_filter::StaticFilter;

use super::cluster_filter::ClusterBuilder;
use super::covering_builder::CoveringBuilder;
use super::error::Result;
use super::own_filter::OwnFilter;

/// How often a filter is tried in a larger table when its keys don't fit.
const TRIES_MAX: usize = 8;
/// Hashes whose places are fetched into the cache before they are needed.
const PREFETCH_AHEAD: usize = 12;

/// What a filter of a section's own is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilterKind {
    /// Tags of so many bits in a cuckoo table.
    Tags(u32),
    /// A static filter of so many bits.
    Static(u32),
}

/// The filter of the section being written.
#[derive(Debug)]
pub(super) enum FilterBuilder {
    None,
    /// Made before the items came.
    Made(HashFilter),
    /// Made of the items' hashes at the end.
    Gathered {
        kind: FilterKind,
        hashes: Vec<KeyHash>,
        prefixes: GatheredPrefixes,
    },
    /// Of a table in buckets, made of the items' hashes at the end, and of the filters of others.
    Clustered(ClusterBuilder),
    /// Made of the items' hashes, and of what tables below have.
    Covering(CoveringBuilder),
}

/// The prefixes of a semi-sorted section's items, which its filter may know as well: then a scan of another prefix
/// reads nothing of the table.
#[derive(Debug, Default)]
pub(super) struct GatheredPrefixes {
    /// Their hashes, ascending.
    hashes: Vec<u64>,
    /// Whether they are worth it however few items each has.
    always: bool,
}

/// A filter knows prefixes that have so many items in the table on average: they take half of what items take at most.
const ITEMS_A_PREFIX_MIN: usize = 2;

impl GatheredPrefixes {
    /// None yet, of a table of the level of this number. Tables of the youngest level are small and several, so each
    /// scan would read most of them for nothing.
    pub fn of_level(level: Option<u8>) -> Self {
        Self { hashes: Vec::new(), always: level == Some(0) }
    }

    #[inline]
    fn push(&mut self, hasher: KeyHasher, hash: KeyHash) {
        if hasher.is_semi_sorted() && self.hashes.last() != Some(&hash.high()) {
            self.hashes.push(hash.high());
        }
    }

    /// Those that go into the filter of so many items.
    fn worth_knowing(&self, items: usize) -> &[u64] {
        if self.always || self.hashes.len() * ITEMS_A_PREFIX_MIN <= items { &self.hashes } else { &[] }
    }
}

/// A finished filter.
#[derive(Debug)]
pub(super) struct MadeFilter {
    pub filter: OwnFilter,
    /// Whether it knows prefixes besides items.
    pub knows_prefixes: bool,
}

impl FilterBuilder {
    /// Of about so many items, in a section of the level of this number.
    pub fn gathered(kind: FilterKind, level: Option<u8>, items_expected: u64) -> Self {
        let hashes = Vec::with_capacity(items_expected as usize);
        Self::Gathered { kind, hashes, prefixes: GatheredPrefixes::of_level(level) }
    }

    /// Notes an item. Equal hashes come one after the other.
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
            Self::Covering(builder) => builder.push(hasher, hash, key)?,
            Self::None | Self::Made(_) => {}
        }
        Ok(())
    }

    /// `None` without a filter of the section's own, and for hashes so alike that no table takes them: then lookups do
    /// without.
    pub fn finish(self) -> Option<MadeFilter> {
        match self {
            Self::None | Self::Clustered(_) | Self::Covering(_) => None,
            Self::Made(filter) => Some(MadeFilter { filter: OwnFilter::Tags(filter), knows_prefixes: false }),
            Self::Gathered { kind, mut hashes, prefixes } => {
                let known = prefixes.worth_knowing(hashes.len());
                hashes.extend(known.iter().map(|&prefix| KeyHash::of_prefix(prefix)));
                let knows_prefixes = !known.is_empty();
                let slack = hashes.len() / 16 + 1;
                let filter = match kind {
                    FilterKind::Static(bits) => OwnFilter::Static(StaticFilter::new(&hashes, bits)),
                    FilterKind::Tags(bits) => OwnFilter::Tags(
                        (0..TRIES_MAX).find_map(|attempt| tags_of(&hashes, bits, attempt * slack))?,
                    ),
                };
                Some(MadeFilter { filter, knows_prefixes })
            }
        }
    }
}

/// The tags of these hashes, in a table with room for so many more; `None` when they don't fit.
fn tags_of(hashes: &[KeyHash], tag_bits: u32, slack: usize) -> Option<HashFilter> {
    let table = CuckooTable::with_entries(hashes.len() + slack);
    for (position, &hash) in hashes.iter().enumerate() {
        // Ascending hashes go to random buckets.
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
