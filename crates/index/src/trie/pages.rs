//! Where pages end, seen while part of a bucket is walked in one direction.

use super::config::Granularity;
use crate::elias_fano::EliasFano;
use crate::processor::Portable;

/// A walk over keys, forwards or backwards, that knows which subtries lie within one page.
pub(super) trait PageCursor {
    /// Whether every key is a page of its own, as in a dense trie.
    const EVERY_KEY: bool = false;

    /// Whether the next `keys` keys lie in one page; always so for one key.
    fn holds(&self, keys: u64) -> bool;

    /// Moves over `keys` keys, which [`holds`](Self::holds) said lie in one page (any number in a dense trie).
    fn advance(&mut self, keys: u64);

    /// The page of the next key.
    fn page(&self) -> u64;
}

/// Where walks begin.
pub(super) trait PageMap: Copy {
    /// A walk from low to high ranks.
    type After: PageCursor;
    /// A walk from high to low ranks.
    type Before: PageCursor;

    /// The walk whose next key is `rank`.
    fn after(self, rank: u64) -> Self::After;

    /// The walk whose next key is `rank - 1`; `rank` is not 0.
    fn before(self, rank: u64) -> Self::Before;
}

/// Bits that the trie of one page and its boundary take on average, in 64ths: close for 1 to 64 keys a page. The bits
/// up to the middle of a bucket are written as a distance from this.
pub(super) fn bits_mean_64ths(granularity: Granularity, keys: u64) -> u64 {
    let keys_per_page = match granularity {
        Granularity::Key => 1,
        Granularity::RegularPage { keys_per_page } => u64::from(keys_per_page.max(1)),
        Granularity::ListedPage => 32,
    };
    let log2 = u64::from(keys_per_page.ilog2());
    keys * (150 + 102 * log2 + 16 * log2 * log2) / keys_per_page
}

/// The pages of a dense trie: one for each key.
#[derive(Clone, Copy)]
pub(super) struct EveryKey;

/// A walk of [`EveryKey`] upwards.
pub(super) struct EveryKeyAfter(u64);

/// A walk of [`EveryKey`] downwards.
pub(super) struct EveryKeyBefore(u64);

impl PageMap for EveryKey {
    type After = EveryKeyAfter;
    type Before = EveryKeyBefore;

    #[inline]
    fn after(self, rank: u64) -> EveryKeyAfter {
        EveryKeyAfter(rank)
    }

    #[inline]
    fn before(self, rank: u64) -> EveryKeyBefore {
        EveryKeyBefore(rank)
    }
}

impl PageCursor for EveryKeyAfter {
    const EVERY_KEY: bool = true;

    #[inline]
    fn holds(&self, keys: u64) -> bool {
        keys <= 1
    }

    #[inline]
    fn advance(&mut self, keys: u64) {
        self.0 += keys;
    }

    #[inline]
    fn page(&self) -> u64 {
        self.0
    }
}

impl PageCursor for EveryKeyBefore {
    const EVERY_KEY: bool = true;

    #[inline]
    fn holds(&self, keys: u64) -> bool {
        keys <= 1
    }

    #[inline]
    fn advance(&mut self, keys: u64) {
        self.0 = self.0.saturating_sub(keys);
    }

    #[inline]
    fn page(&self) -> u64 {
        self.0.saturating_sub(1)
    }
}

/// Pages of equally many keys, at least one.
#[derive(Clone, Copy)]
pub(super) struct RegularPages {
    pub(super) keys_per_page: u64,
}

/// A walk of [`RegularPages`], upwards or downwards.
pub(super) struct RegularCursor<const UPWARDS: bool> {
    keys_per_page: u64,
    /// Keys of the present page in front of the walk.
    left: u64,
    page: u64,
}

impl PageMap for RegularPages {
    type After = RegularCursor<true>;
    type Before = RegularCursor<false>;

    #[inline]
    fn after(self, rank: u64) -> RegularCursor<true> {
        let keys_per_page = self.keys_per_page.max(1);
        let page = rank / keys_per_page;
        RegularCursor { keys_per_page, left: (page + 1) * keys_per_page - rank, page }
    }

    #[inline]
    fn before(self, rank: u64) -> RegularCursor<false> {
        let keys_per_page = self.keys_per_page.max(1);
        let page = rank.saturating_sub(1) / keys_per_page;
        RegularCursor { keys_per_page, left: rank - page * keys_per_page, page }
    }
}

impl<const UPWARDS: bool> PageCursor for RegularCursor<UPWARDS> {
    #[inline]
    fn holds(&self, keys: u64) -> bool {
        keys <= self.left
    }

    #[inline]
    fn advance(&mut self, keys: u64) {
        let left = self.left.saturating_sub(keys);
        let done = left == 0;
        self.left = if done { self.keys_per_page } else { left };
        self.page =
            if UPWARDS { self.page + u64::from(done) } else { self.page.saturating_sub(u64::from(done)) };
    }

    #[inline]
    fn page(&self) -> u64 {
        self.page
    }
}

/// Pages that start at listed ranks, as a finished trie has them.
#[derive(Clone, Copy)]
pub(super) struct ListedPages<'list> {
    pub(super) starts: &'list EliasFano,
}

/// Pages that start at listed ranks, as a builder has them: only those that start in the present bucket. Their numbers
/// have no meaning.
#[derive(Clone, Copy)]
pub(super) struct RecentPages<'list> {
    pub(super) starts: &'list [u64],
}

/// A walk upwards over listed pages.
pub(super) struct ListedAfter<Starts> {
    /// First ranks of the pages after the present one.
    starts: Starts,
    rank: u64,
    end: u64,
    page: u64,
}

/// A walk downwards over listed pages.
pub(super) struct ListedBefore<Starts> {
    /// First ranks of the pages before the present one, downwards.
    starts: Starts,
    rank: u64,
    start: u64,
    page: u64,
}

impl<'list> PageMap for ListedPages<'list> {
    type After = ListedAfter<crate::elias_fano::Upwards<'list>>;
    type Before = ListedBefore<crate::elias_fano::Downwards<'list>>;

    #[inline]
    fn after(self, rank: u64) -> Self::After {
        let (page, mut starts) = self.starts.upwards_from_last_at_most(Portable, rank);
        starts.next();
        ListedAfter::new(rank, page, starts)
    }

    #[inline]
    fn before(self, rank: u64) -> Self::Before {
        let (page, starts) = self.starts.downwards_from_last_at_most(Portable, rank.saturating_sub(1));
        ListedBefore::new(rank, page, starts)
    }
}

impl<'list> PageMap for RecentPages<'list> {
    type After = ListedAfter<std::iter::Copied<std::slice::Iter<'list, u64>>>;
    type Before = ListedBefore<std::iter::Rev<std::iter::Copied<std::slice::Iter<'list, u64>>>>;

    fn after(self, rank: u64) -> Self::After {
        let after = self.starts.partition_point(|start| *start <= rank);
        ListedAfter::new(rank, 0, self.starts[after..].iter().copied())
    }

    fn before(self, rank: u64) -> Self::Before {
        let after = self.starts.partition_point(|start| *start < rank);
        ListedBefore::new(rank, 0, self.starts[..after].iter().copied().rev())
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

impl<Starts: Iterator<Item = u64>> PageCursor for ListedAfter<Starts> {
    #[inline]
    fn holds(&self, keys: u64) -> bool {
        keys <= self.end - self.rank
    }

    #[inline]
    fn advance(&mut self, keys: u64) {
        self.rank += keys;
        // More than once where no key starts in a page.
        while self.rank >= self.end {
            self.page += 1;
            self.end = self.starts.next().unwrap_or(u64::MAX);
        }
    }

    #[inline]
    fn page(&self) -> u64 {
        self.page
    }
}

impl<Starts: Iterator<Item = u64>> ListedBefore<Starts> {
    #[inline]
    fn new(rank: u64, page: u64, mut starts: Starts) -> Self {
        let start = starts.next().unwrap_or(0);
        Self { starts, rank, start, page }
    }
}

impl<Starts: Iterator<Item = u64>> PageCursor for ListedBefore<Starts> {
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

    #[inline]
    fn page(&self) -> u64 {
        self.page
    }
}
