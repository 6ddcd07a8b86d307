//! [`ThreeLevelIndex`]: the finished index.

use alluvium_base::{Corruption, KeyHash};

use super::config::SuffixCode;
use super::groups::Groups;
use super::suffixes::Suffixes;
use crate::elias_fano::EliasFano;
use crate::elias_fano::wire::{WireReader, WireWriter};
use crate::fences::PageRange;
use crate::processor::{Processor, Work, specialized};
use crate::trie::Trie;

const NAME: &str = "three-level index";
const KIND: u64 = 0x314c_5645_4c33_4c53;

/// Maps a semi-sorted table's keys and prefixes to pages. Immutable; built by
/// [`ThreeLevelBuilder`](super::ThreeLevelBuilder). See the module for idea, cost and bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreeLevelIndex {
    parts: Parts,
}

/// The parts of an index. Page numbers here count only pages in which items begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    /// From prefix to cell.
    pub(super) prefixes: Trie,
    /// From cell to pages.
    pub(super) groups: Groups,
    /// From suffix to one of the cell's pages.
    pub(super) suffixes: Suffixes,
    /// Boundaries with the same hash on both sides, each given by the page before it.
    pub(super) ties: EliasFano,
    /// The numbers of pages; empty when they are 0, 1, 2 and so on.
    pub(super) numbers: EliasFano,
}

impl ThreeLevelIndex {
    pub(super) fn new(parts: Parts) -> Self {
        Self { parts }
    }

    /// Number of pages in which items begin.
    pub fn pages(&self) -> u64 {
        self.parts.groups.pages()
    }

    /// The number of the last page in which items begin, or `None` if there are no items.
    pub fn last_page(&self) -> Option<u64> {
        let last = self.pages().checked_sub(1)?;
        Some(if self.parts.numbers.is_empty() {
            last
        } else {
            self.parts.numbers.get(last).unwrap_or(u64::MAX)
        })
    }

    /// Number of different prefix hashes.
    pub fn prefixes(&self) -> u64 {
        self.parts.prefixes.len()
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.parts.prefixes.is_empty()
    }

    /// The third level's form.
    pub fn suffix_code(&self) -> SuffixCode {
        self.parts.suffixes.code()
    }

    /// The pages in which the item may begin whose prefix has the hash `hash.high()` and whose suffix the hash
    /// `hash.low()`. An item of the table begins in one of them. It is one page, unless items with this very hash
    /// begin in several. For absent keys, arbitrary pages. Returns `None` if there are no items at all.
    #[inline]
    pub fn lookup(&self, hash: KeyHash) -> Option<PageRange> {
        let cell = self.parts.prefixes.lookup(KeyHash::from_halves(hash.high(), 0))?;
        Some(specialized(FindPage { index: self, cell, suffix: hash.low() }))
    }

    #[inline(always)]
    fn page_in(&self, cell: u64, suffix: u64) -> PageRange {
        let parts = &self.parts;
        let (first, last) = parts.groups.pages_of(cell);
        if first == last {
            return self.numbered(first, first);
        }
        let page = parts.suffixes.page(&parts.groups, cell, (first, last), suffix);
        if parts.ties.is_empty() {
            return self.numbered(page, page);
        }
        let mut tied = page;
        while tied > first && self.is_tied(tied - 1) {
            tied -= 1;
        }
        self.numbered(tied, page)
    }

    /// The pages in which the items with the prefix hash `prefix_hash` begin, or pages of other prefixes if there are
    /// no such items. Returns `None` if there are no items at all.
    #[inline]
    pub fn prefix_pages(&self, prefix_hash: u64) -> Option<PageRange> {
        let cell = self.parts.prefixes.lookup(KeyHash::from_halves(prefix_hash, 0))?;
        let (first, last) = self.parts.groups.pages_of(cell);
        Some(self.numbered(first, last))
    }

    /// Whether `page` ends and the next one begins with the same hash.
    fn is_tied(&self, page: u64) -> bool {
        let found = self.parts.ties.last_at_most(page);
        found.and_then(|index| self.parts.ties.get(index)) == Some(page)
    }

    #[inline(always)]
    fn numbered(&self, first: u64, last: u64) -> PageRange {
        let numbers = &self.parts.numbers;
        if numbers.is_empty() {
            return PageRange { first, last };
        }
        let number = |page| numbers.get(page).unwrap_or(0);
        PageRange { first: number(first), last: number(last) }
    }

    /// Bytes of memory, this value included.
    pub fn memory_bytes(&self) -> u64 {
        let parts = &self.parts;
        (size_of::<Self>() - size_of::<Trie>()) as u64
            + parts.prefixes.memory_bytes()
            + parts.groups.memory_bytes()
            + parts.suffixes.memory_bytes()
            + parts.ties.memory_bytes()
            + parts.numbers.memory_bytes()
    }

    /// The index as bytes, in the layout of the module.
    pub fn to_bytes(&self) -> Vec<u8> {
        let parts = &self.parts;
        let mut writer = WireWriter::new(KIND, (self.memory_bytes() / 8) as usize + 64);
        writer.nested(&parts.prefixes.to_bytes());
        parts.groups.write(&mut writer);
        writer.nested(&parts.ties.to_bytes());
        writer.nested(&parts.numbers.to_bytes());
        parts.suffixes.write(&mut writer);
        writer.finish()
    }

    /// The index that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// When checksum, fields, lists or lengths are wrong. Codes are not decoded: if they are wrong under a valid
    /// checksum, lookups return some pages of the table and still end.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Corruption> {
        let mut reader = WireReader::new(NAME, KIND, bytes)?;
        let (nested, offset) = reader.nested()?;
        let prefixes = Trie::from_bytes(nested).map_err(|error| error.within(NAME, offset))?;
        let groups = Groups::read(NAME, prefixes.positions(), &mut reader)?;
        let ties = list_below(groups.pages().saturating_sub(1), "boundaries", &mut reader)?;
        let numbers = list_below(u64::MAX, "page numbers", &mut reader)?;
        if !numbers.is_empty() && numbers.len() != groups.pages() {
            return Err(reader
                .corruption(format!("{} page numbers or none", groups.pages()), numbers.len().to_string()));
        }
        let suffixes = Suffixes::read(&groups, &mut reader)?;
        reader.finish()?;
        Ok(Self::new(Parts { prefixes, groups, suffixes, ties, numbers }))
    }
}

/// The levels below the first as specialized work.
struct FindPage<'index> {
    index: &'index ThreeLevelIndex,
    cell: u64,
    suffix: u64,
}

impl Work for FindPage<'_> {
    type Output = PageRange;

    #[inline(always)]
    fn run(self, _processor: impl Processor) -> PageRange {
        self.index.page_in(self.cell, self.suffix)
    }
}

/// A list of numbers below `end`.
fn list_below(end: u64, what: &str, reader: &mut WireReader<'_>) -> Result<EliasFano, Corruption> {
    let (nested, offset) = reader.nested()?;
    let list = EliasFano::from_bytes(nested).map_err(|error| error.within(NAME, offset))?;
    let last = list.len().checked_sub(1).and_then(|last| list.get(last));
    match last {
        Some(last) if last >= end => Err(reader.corruption(format!("{what} below {end}"), last.to_string())),
        _ => Ok(list),
    }
}
