//! Where pages end, seen while a bucket is walked in key order.

/// Tells which subtries lie within one page. The walk moves it over keys in order.
pub(super) trait PageCursor {
    /// Whether the next `keys` keys lie in one page; always so for one key.
    fn holds(&self, keys: u64) -> bool;

    /// Moves over `keys` keys, which [`holds`](Self::holds) said lie in one page.
    fn advance(&mut self, keys: u64);
}

/// Every key is a page: the dense trie.
pub(super) struct EveryKey;

impl PageCursor for EveryKey {
    #[inline]
    fn holds(&self, keys: u64) -> bool {
        keys <= 1
    }

    #[inline]
    fn advance(&mut self, _keys: u64) {}
}

/// Pages of equally many keys.
pub(super) struct RegularPages {
    keys_per_page: u64,
    left: u64,
    page: u64,
}

impl RegularPages {
    /// In front of key `rank`. `keys_per_page` is not 0.
    pub(super) fn at(rank: u64, keys_per_page: u64) -> Self {
        Self { keys_per_page, left: keys_per_page - rank % keys_per_page, page: rank / keys_per_page }
    }

    /// The page of the next key.
    pub(super) fn page(&self) -> u64 {
        self.page
    }
}

impl PageCursor for RegularPages {
    #[inline]
    fn holds(&self, keys: u64) -> bool {
        keys <= self.left
    }

    #[inline]
    fn advance(&mut self, keys: u64) {
        self.left = self.left.saturating_sub(keys);
        if self.left == 0 {
            self.left = self.keys_per_page;
            self.page += 1;
        }
    }
}

/// Pages that start at given ranks.
pub(super) struct ListedPages<Starts> {
    /// First ranks of the pages after the present one.
    starts: Starts,
    rank: u64,
    end: u64,
    page: u64,
}

impl<Starts: Iterator<Item = u64>> ListedPages<Starts> {
    /// In front of key `rank` of page `page`; `starts` are the first ranks of the pages after it.
    pub(super) fn at(rank: u64, page: u64, mut starts: Starts) -> Self {
        let end = starts.next().unwrap_or(u64::MAX);
        let mut pages = Self { starts, rank, end, page };
        pages.settle();
        pages
    }

    /// The page of the next key.
    pub(super) fn page(&self) -> u64 {
        self.page
    }

    #[inline]
    fn settle(&mut self) {
        // Pages in which no key starts are passed over.
        while self.rank >= self.end {
            self.page += 1;
            self.end = self.starts.next().unwrap_or(u64::MAX);
        }
    }
}

impl<Starts: Iterator<Item = u64>> PageCursor for ListedPages<Starts> {
    #[inline]
    fn holds(&self, keys: u64) -> bool {
        keys <= self.end - self.rank
    }

    #[inline]
    fn advance(&mut self, keys: u64) {
        self.rank += keys;
        self.settle();
    }
}
