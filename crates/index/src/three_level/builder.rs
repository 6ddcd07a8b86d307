//! [`ThreeLevelBuilder`]: items in semi-sorted order in, index out.

use alluvium_base::KeyHash;

use super::config::{SuffixCode, ThreeLevelConfig, is_dense};
use super::groups::GroupsBuilder;
use super::index::{Parts, ThreeLevelIndex};
use super::partial::PartialSuffixes;
use super::separator::{Separator, Separators};
use super::suffix_trie::SuffixTries;
use super::suffixes::Suffixes;
use crate::elias_fano::{EliasFano, EliasFanoBuilder};
use crate::trie::{Granularity, TrieBuilder, TrieConfig};

/// Takes the hashes of a table's items in order, each with its page, and makes a [`ThreeLevelIndex`].
///
/// Memory while building: the first two levels as they grow, about three bytes a page, and 32 bytes for each prefix of
/// the current bucket. No group is held in memory, however large.
#[derive(Debug)]
pub struct ThreeLevelBuilder {
    suffix_code: SuffixCode,
    prefixes: TrieBuilder,
    is_dense: bool,
    groups: GroupsBuilder,
    separators: Separators,
    /// Boundaries with the same hash on both sides.
    ties: EliasFanoBuilder,
    /// Numbers of the pages so far, once a number was skipped.
    numbers: Option<EliasFanoBuilder>,
    /// Number of pages so far in which items begin.
    pages: u64,
    /// The last item and its page.
    last: Option<(KeyHash, u64)>,
    group: Group,
    /// Whether the cell before the group is within one page, so that more groups of the page may join it.
    cell_is_open: bool,
}

/// The group whose items are being added.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    first_page: u64,
    last_page: u64,
    /// Whether other groups' items are before it in its first page.
    begins_within: bool,
}

impl ThreeLevelBuilder {
    /// A builder for a table with the properties in `config`.
    ///
    /// # Panics
    /// When the config's range is empty or its buckets hold no prefix.
    pub fn new(config: ThreeLevelConfig) -> Self {
        let is_dense = is_dense(config.items_expected, config.prefixes_expected);
        let trie_config = TrieConfig {
            granularity: if is_dense { Granularity::Key } else { Granularity::ListedPage },
            bucket_keys_mean: config.bucket_prefixes_mean,
            fragment_bits: 0,
            range_low: config.range_low,
            range_high: config.range_high,
        };
        Self {
            suffix_code: config.suffix_code,
            prefixes: TrieBuilder::new(config.prefixes_expected, trie_config),
            is_dense,
            groups: GroupsBuilder::default(),
            separators: Separators::default(),
            ties: EliasFanoBuilder::new(),
            numbers: None,
            pages: 0,
            last: None,
            group: Group::default(),
            cell_is_open: false,
        }
    }

    /// Bytes held now.
    pub fn memory_bytes(&self) -> u64 {
        self.prefixes.memory_bytes()
            + self.groups.memory_bytes()
            + self.separators.memory_bytes()
            + self.ties.memory_bytes()
            + self.numbers.as_ref().map_or(0, EliasFanoBuilder::memory_bytes)
    }

    /// Adds the next item, which begins in `page`. The hash of its prefix is `hash.high()`, that of its suffix is
    /// `hash.low()`. Several items may have the same hash.
    ///
    /// # Panics
    /// When `hash` or `page` is below the one before it, or the prefix is outside the config's range.
    pub fn push(&mut self, hash: KeyHash, page: u64) {
        let Some((last, last_page)) = self.last.replace((hash, page)) else {
            self.start_page(page);
            return;
        };
        assert!(hash >= last, "key hashes don't descend: {hash:?} after {last:?}");
        assert!(page >= last_page, "pages don't descend: {page} after {last_page}");
        let is_new_group = hash.high() != last.high();
        let is_new_page = page != last_page;
        if is_new_group {
            self.end_group(last.high());
        }
        if is_new_page {
            self.end_page(last, hash);
            self.start_page(page);
        }
        if is_new_group {
            let page = self.pages - 1;
            self.group = Group { first_page: page, last_page: page, begins_within: !is_new_page };
        } else {
            self.group.last_page = self.pages - 1;
        }
    }

    fn start_page(&mut self, number: u64) {
        if number != self.pages && self.numbers.is_none() {
            let mut numbers = EliasFanoBuilder::new();
            (0..self.pages).for_each(|page| numbers.push(page));
            self.numbers = Some(numbers);
        }
        if let Some(numbers) = &mut self.numbers {
            numbers.push(number);
        }
        self.pages += 1;
    }

    /// Ends a page whose last item has the hash `last`; the next page begins with `first`.
    fn end_page(&mut self, last: KeyHash, first: KeyHash) {
        if last == first {
            self.ties.push(self.pages - 1);
        }
        self.separators.push(if last.high() == first.high() {
            Separator::between(last.low(), first.low())
        } else {
            Separator::NONE
        });
    }

    fn end_group(&mut self, prefix: u64) {
        let Group { first_page, last_page, begins_within } = self.group;
        let is_split = first_page != last_page;
        let joins_cell = self.cell_is_open && begins_within && !is_split && !self.is_dense;
        if !joins_cell {
            if self.cell_is_open {
                self.prefixes.end_page();
            }
            self.groups.push(first_page, begins_within);
        }
        self.prefixes.push(KeyHash::from_halves(prefix, 0));
        if is_split {
            self.prefixes.end_page();
        }
        self.cell_is_open = !is_split;
    }

    /// The index. Linear in pages and prefixes.
    pub fn finish(mut self) -> ThreeLevelIndex {
        if let Some((last, _)) = self.last {
            self.end_group(last.high());
        }
        let groups = self.groups.finish(self.pages);
        let separators = self.separators.finish();
        let suffixes = match self.suffix_code {
            SuffixCode::Partial => Suffixes::Partial(PartialSuffixes::new(&separators)),
            SuffixCode::Trie => Suffixes::Trie(SuffixTries::new(&separators, &groups)),
        };
        let numbers = self.numbers.map_or_else(|| EliasFano::new(&[]), EliasFanoBuilder::finish);
        ThreeLevelIndex::new(Parts {
            prefixes: self.prefixes.finish(),
            groups,
            suffixes,
            ties: self.ties.finish(),
            numbers,
        })
    }
}
