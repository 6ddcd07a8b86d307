//! [`TrieBuilder`]: sorted hashes in, trie out.

use alluvium_base::KeyHash;

use super::bits::BitWriter;
use super::config::{Granularity, TrieConfig};
use super::encoder::{Scratch, encode_bucket};
use super::golomb::BUCKET_KEYS_MAX;
use super::index::{Parts, Trie};
use super::key_bits::{KeyBits, WideKey};
use super::pages::{EveryKey, PageMap, RecentPages, RegularPages};
use crate::elias_fano::{Differences, EliasFanoBuilder, NearLinearList, PackedInts};
use crate::fences::cells::Cells;

/// Takes key hashes in ascending order, as a merge emits them, and makes a [`Trie`].
///
/// Memory while building: the trie so far plus about 32 bytes for each key of the current bucket.
#[derive(Debug)]
pub struct TrieBuilder {
    config: TrieConfig,
    cells: Cells,
    places: Vec<u64>,
    lows: Vec<u64>,
    /// Whether two keys of the bucket have the same place.
    places_tie: bool,
    scratch: Scratch<u64>,
    /// Number of the current bucket; its keys wait in `places` and `lows`.
    bucket: u64,
    /// Keys in finished buckets.
    encoded_keys: u64,
    last: KeyHash,
    code: BitWriter,
    first_ranks: Differences,
    code_starts: Differences,
    /// First ranks of the pages begun so far, if pages are listed.
    page_starts: EliasFanoBuilder,
    /// Those of them that are after the current bucket's first key.
    recent_page_starts: Vec<u64>,
    page_is_open: bool,
    fragments: PackedInts,
}

impl TrieBuilder {
    /// A builder for about `keys_expected` keys, which determine the number of buckets. A wrong number costs space
    /// (fewer keys than expected: the directory is made for those expected) or time per lookup (more keys), never
    /// correctness.
    ///
    /// # Panics
    /// When the config's range is empty, pages have no keys, buckets have no keys, or fragments more than 64 bits.
    pub fn new(keys_expected: u64, config: TrieConfig) -> Self {
        assert!(config.bucket_keys_mean > 0, "a bucket holds at least one key on average");
        assert!(
            config.fragment_bits <= 64,
            "fragments of {} bits: a fragment has at most 64",
            config.fragment_bits
        );
        let bits_per_key = match config.granularity {
            Granularity::Key => 2.5,
            Granularity::RegularPage { keys_per_page } => {
                assert!(keys_per_page > 0, "a page holds at least one key");
                (20.0 / f64::from(keys_per_page)).min(2.5)
            }
            Granularity::ListedPage => 0.6,
        };
        let buckets = keys_expected / u64::from(config.bucket_keys_mean);
        let mut first_ranks = Differences::default();
        let mut code_starts = Differences::default();
        first_ranks.push(0);
        code_starts.push(0);
        // An expectation may be wrong: reserve no more than 64 MiB for it.
        let code_bits = (keys_expected as f64 * bits_per_key).min((1u64 << 29) as f64) as u64;
        Self {
            config,
            cells: Cells::new(config.range_low, config.range_high, buckets),
            places: Vec::new(),
            lows: Vec::new(),
            places_tie: false,
            scratch: Scratch::default(),
            bucket: 0,
            encoded_keys: 0,
            last: KeyHash::default(),
            code: BitWriter::with_capacity(code_bits),
            first_ranks,
            code_starts,
            page_starts: EliasFanoBuilder::new(),
            recent_page_starts: Vec::new(),
            page_is_open: false,
            fragments: PackedInts::new(config.fragment_bits),
        }
    }

    /// Keys so far.
    pub fn len(&self) -> u64 {
        self.encoded_keys + self.places.len() as u64
    }

    /// Whether there are no keys yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes held now.
    pub fn memory_bytes(&self) -> u64 {
        let keys = self.places.capacity() + self.lows.capacity() + self.recent_page_starts.capacity();
        (keys * size_of::<u64>()) as u64
            + self.scratch.memory_bytes()
            + self.code.memory_bytes()
            + self.first_ranks.memory_bytes()
            + self.code_starts.memory_bytes()
            + self.page_starts.memory_bytes()
            + self.fragments.memory_bytes()
    }

    /// Adds the next key. Keys may share their hash; each has a rank of its own.
    ///
    /// # Panics
    /// When `hash` is below the one before it, its high half is outside the config's range, or a bucket gets 2^32
    /// keys.
    #[inline]
    pub fn push(&mut self, hash: KeyHash) {
        assert!(hash >= self.last, "key hashes don't descend: {hash:?} after {:?}", self.last);
        assert!(self.cells.contains(hash.high()), "key hash {hash:?} lies outside the trie's range");
        self.last = hash;
        let (bucket, place) = self.cells.locate(hash.high());
        if bucket != self.bucket {
            self.start_bucket(bucket);
        }
        if !self.page_is_open && self.config.granularity == Granularity::ListedPage {
            self.start_page();
        }
        self.places_tie |= self.places.last() == Some(&place);
        self.places.push(place);
        self.lows.push(hash.low());
        if self.config.fragment_bits > 0 {
            self.fragments.push(fragment(hash, self.config.fragment_bits));
        }
    }

    /// Ends a page of a [`Granularity::ListedPage`] trie after the keys so far; the next key starts the next page.
    /// To end a page in which no key starts (the inside of a long value), call this without adding a key before. No
    /// effect for other granularities.
    pub fn end_page(&mut self) {
        if self.config.granularity == Granularity::ListedPage {
            if !self.page_is_open {
                self.start_page();
            }
            self.page_is_open = false;
        }
    }

    fn start_page(&mut self) {
        let rank = self.len();
        self.page_starts.push(rank);
        self.recent_page_starts.push(rank);
        self.page_is_open = true;
    }

    #[cold]
    fn start_bucket(&mut self, bucket: u64) {
        self.end_bucket();
        while self.bucket < bucket {
            self.first_ranks.push(self.encoded_keys);
            self.code_starts.push(self.code.len());
            self.bucket += 1;
        }
    }

    fn end_bucket(&mut self) {
        let count = self.places.len() as u64;
        assert!(
            count <= BUCKET_KEYS_MAX,
            "a bucket of {count} keys: at most {BUCKET_KEYS_MAX} are supported"
        );
        let places = std::mem::take(&mut self.places);
        if self.places_tie {
            self.encode_bucket(&WideKey::of_bucket(&places, &self.lows), &mut Scratch::default());
            self.places_tie = false;
        } else {
            let mut scratch = std::mem::take(&mut self.scratch);
            self.encode_bucket(&places, &mut scratch);
            self.scratch = scratch;
        }
        self.encoded_keys += count;
        self.places = places;
        self.places.clear();
        self.lows.clear();
    }

    fn encode_bucket<Key: KeyBits>(&mut self, keys: &[Key], scratch: &mut Scratch<Key>) {
        match self.config.granularity {
            Granularity::Key => self.encode_pages(keys, EveryKey, scratch),
            Granularity::RegularPage { keys_per_page } => {
                self.encode_pages(keys, RegularPages { keys_per_page: u64::from(keys_per_page) }, scratch);
            }
            Granularity::ListedPage => {
                let starts = std::mem::take(&mut self.recent_page_starts);
                self.encode_pages(keys, RecentPages { starts: &starts }, scratch);
                self.recent_page_starts = starts;
                self.recent_page_starts.clear();
            }
        }
    }

    fn encode_pages<Key: KeyBits>(&mut self, keys: &[Key], pages: impl PageMap, scratch: &mut Scratch<Key>) {
        let lengths = self.config.granularity;
        encode_bucket(keys, self.encoded_keys, pages, &lengths, scratch, &mut self.code);
    }

    /// The trie. Linear in the number of buckets and pages.
    pub fn finish(mut self) -> Trie {
        self.start_bucket(self.cells.count());
        self.fragments.shrink_to_fit();
        Trie::new(Parts {
            cells: self.cells,
            granularity: self.config.granularity,
            first_ranks: NearLinearList::new(
                self.first_ranks.iter(),
                self.first_ranks.len(),
                self.first_ranks.last(),
            ),
            code_starts: NearLinearList::new(
                self.code_starts.iter(),
                self.code_starts.len(),
                self.code_starts.last(),
            ),
            code: self.code.finish(),
            page_starts: self.page_starts.finish(),
            fragments: self.fragments,
        })
    }
}

/// The bits of a hash that serve as its fragment: the leading ones of the half that does not determine the order.
#[inline]
pub(super) fn fragment(hash: KeyHash, bits: u32) -> u64 {
    if bits == 0 { 0 } else { hash.low() >> (64 - bits) }
}
