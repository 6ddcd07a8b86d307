//! Page boundaries, as seen while part of a bucket is walked in one direction.

use super::bits::select;
use super::config::Granularity;
use super::encoder::Lengths;
use crate::elias_fano::{Downwards, EliasFano, Upwards};
use crate::processor::Portable;

/// A walk over keys, forwards or backwards, that knows which subtries are within one page.
pub(super) trait PageCursor {
    /// Whether every key is a page of its own, as in a dense trie.
    const EVERY_KEY: bool = false;

    /// Whether the next `keys` keys are in one page; always true for one key.
    fn holds(&self, keys: u64) -> bool;

    /// Skips `keys` keys, for which [`holds`](Self::holds) must be true (any number in a dense trie).
    fn advance(&mut self, keys: u64);
}

/// A walk that knows the numbers of pages.
pub(super) trait NumberedPages: PageCursor {
    /// The page of the next key.
    fn page(&self) -> u64;
}

/// Starts walks.
pub(super) trait PageMap: Copy {
    /// A walk in either direction.
    type Cursor: PageCursor;

    /// The walk whose next key is `rank`, or downwards `rank - 1`; then `rank` is not 0.
    fn walk(self, rank: u64, downwards: bool) -> Self::Cursor;
}

impl Lengths for Granularity {
    /// Dense: buckets of 256 keys are cut in eight parts. Sparse: in four, because their parts have few bits to skip.
    #[inline(always)]
    fn region_keys_min(&self) -> u64 {
        if *self == Self::Key { 96 } else { 192 }
    }

    /// The bits of the trie of one page and its boundary: a close estimate for 1 to 64 keys a page.
    #[inline(always)]
    fn bits_mean(&self, keys: u64) -> u64 {
        let keys_per_page = match self {
            Self::Key => return keys * 150 / 64,
            Self::RegularPage { keys_per_page } => u64::from(*keys_per_page).max(1),
            Self::ListedPage => 32,
        };
        let log2 = u64::from(keys_per_page.ilog2());
        keys * (150 + 102 * log2 + 16 * log2 * log2) / keys_per_page / 64
    }
}

/// The pages of a dense trie: one for each key.
#[derive(Clone, Copy)]
pub(super) struct EveryKey;

impl PageMap for EveryKey {
    type Cursor = Self;

    #[inline(always)]
    fn walk(self, _rank: u64, _downwards: bool) -> Self {
        self
    }
}

impl PageCursor for EveryKey {
    const EVERY_KEY: bool = true;

    #[inline(always)]
    fn holds(&self, keys: u64) -> bool {
        keys <= 1
    }

    #[inline(always)]
    fn advance(&mut self, _keys: u64) {}
}

/// Pages with the same number of keys, at least one.
#[derive(Clone, Copy)]
pub(super) struct RegularPages {
    pub(super) keys_per_page: u64,
}

/// A walk of [`RegularPages`].
pub(super) struct RegularCursor {
    keys_per_page: u64,
    /// Keys of the current page that the walk has not passed.
    left: u64,
    page: u64,
    /// Difference from a page to the next one of the walk: one more or, wrapping, one less.
    step: u64,
}

impl PageMap for RegularPages {
    type Cursor = RegularCursor;

    #[inline(always)]
    fn walk(self, rank: u64, downwards: bool) -> RegularCursor {
        let keys_per_page = self.keys_per_page.max(1);
        let page = rank.saturating_sub(u64::from(downwards)) / keys_per_page;
        let passed = rank - page * keys_per_page;
        let left = select(downwards, passed, keys_per_page.wrapping_sub(passed));
        RegularCursor { keys_per_page, left, page, step: select(downwards, u64::MAX, 1) }
    }
}

impl PageCursor for RegularCursor {
    #[inline(always)]
    fn holds(&self, keys: u64) -> bool {
        keys <= self.left
    }

    #[inline(always)]
    fn advance(&mut self, keys: u64) {
        let left = self.left.saturating_sub(keys);
        let done = left == 0;
        self.left = select(done, self.keys_per_page, left);
        self.page = self.page.wrapping_add(select(done, self.step, 0));
    }
}

impl NumberedPages for RegularCursor {
    /// There is no page below 0: only wrong bits lead a walk there.
    #[inline(always)]
    fn page(&self) -> u64 {
        if self.page == u64::MAX { 0 } else { self.page }
    }
}

/// Pages that start at listed ranks, as stored in a finished trie.
#[derive(Clone, Copy)]
pub(super) struct ListedPages<'list> {
    pub(super) starts: &'list EliasFano,
}

/// Pages that start at listed ranks, as stored in a builder: only those that start in the current bucket. Their numbers
/// have no meaning.
#[derive(Clone, Copy)]
pub(super) struct RecentPages<'list> {
    pub(super) starts: &'list [u64],
}

/// A walk upwards over listed pages.
pub(super) struct ListedAfter<Starts> {
    /// First ranks of the pages after the current one.
    starts: Starts,
    rank: u64,
    end: u64,
    page: u64,
}

/// A walk downwards over listed pages.
pub(super) struct ListedBefore<Starts> {
    /// First ranks of the pages before the current one, downwards.
    starts: Starts,
    rank: u64,
    start: u64,
    page: u64,
}

/// A walk over listed pages in either direction.
pub(super) enum ListedCursor<Ascending, Descending> {
    After(ListedAfter<Ascending>),
    Before(ListedBefore<Descending>),
}

impl<'list> PageMap for ListedPages<'list> {
    type Cursor = ListedCursor<Upwards<'list>, Downwards<'list>>;

    #[inline]
    fn walk(self, rank: u64, downwards: bool) -> Self::Cursor {
        if downwards {
            let (page, starts) = self.starts.downwards_from_last_at_most(Portable, rank.saturating_sub(1));
            ListedCursor::Before(ListedBefore::new(rank, page, starts))
        } else {
            let (page, mut starts) = self.starts.upwards_from_last_at_most(Portable, rank);
            starts.next();
            ListedCursor::After(ListedAfter::new(rank, page, starts))
        }
    }
}

impl<'list> PageMap for RecentPages<'list> {
    type Cursor = ListedCursor<
        std::iter::Copied<std::slice::Iter<'list, u64>>,
        std::iter::Rev<std::iter::Copied<std::slice::Iter<'list, u64>>>,
    >;

    fn walk(self, rank: u64, downwards: bool) -> Self::Cursor {
        if downwards {
            let after = self.starts.partition_point(|start| *start < rank);
            ListedCursor::Before(ListedBefore::new(rank, 0, self.starts[..after].iter().copied().rev()))
        } else {
            let after = self.starts.partition_point(|start| *start <= rank);
            ListedCursor::After(ListedAfter::new(rank, 0, self.starts[after..].iter().copied()))
        }
    }
}

impl<Ascending: Iterator<Item = u64>, Descending: Iterator<Item = u64>> PageCursor
    for ListedCursor<Ascending, Descending>
{
    #[inline]
    fn holds(&self, keys: u64) -> bool {
        match self {
            Self::After(walk) => walk.holds(keys),
            Self::Before(walk) => walk.holds(keys),
        }
    }

    #[inline]
    fn advance(&mut self, keys: u64) {
        match self {
            Self::After(walk) => walk.advance(keys),
            Self::Before(walk) => walk.advance(keys),
        }
    }
}

impl<Ascending: Iterator<Item = u64>, Descending: Iterator<Item = u64>> NumberedPages
    for ListedCursor<Ascending, Descending>
{
    #[inline]
    fn page(&self) -> u64 {
        match self {
            Self::After(walk) => walk.page,
            Self::Before(walk) => walk.page,
        }
    }
}

impl<Starts: Iterator<Item = u64>> ListedAfter<Starts> {
    #[inline]
    fn new(rank: u64, page: u64, mut starts: Starts) -> Self {
        let end = starts.next().unwrap_or(u64::MAX);
        let mut walk = Self { starts, rank, end, page };
        walk.advance(0);
        walk
    }
}

impl<Starts: Iterator<Item = u64>> ListedAfter<Starts> {
    #[inline]
    fn holds(&self, keys: u64) -> bool {
        keys <= self.end - self.rank
    }

    #[inline]
    fn advance(&mut self, keys: u64) {
        self.rank += keys;
        // Repeats where no key starts in a page.
        while self.rank >= self.end {
            self.page += 1;
            self.end = self.starts.next().unwrap_or(u64::MAX);
        }
    }
}

impl<Starts: Iterator<Item = u64>> ListedBefore<Starts> {
    #[inline]
    fn new(rank: u64, page: u64, mut starts: Starts) -> Self {
        let start = starts.next().unwrap_or(0);
        Self { starts, rank, start, page }
    }
}

impl<Starts: Iterator<Item = u64>> ListedBefore<Starts> {
    #[inline]
    fn holds(&self, keys: u64) -> bool {
        keys <= self.rank - self.start
    }

    #[inline]
    fn advance(&mut self, keys: u64) {
        self.rank = self.rank.saturating_sub(keys);
        while self.rank <= self.start && self.start > 0 {
            self.page = self.page.saturating_sub(1);
            self.start = self.starts.next().unwrap_or(0);
        }
    }
}
