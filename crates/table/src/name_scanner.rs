//! [`NameScanner`]: reads the names of a section's prefixes in order, from a given name on.

use std::collections::VecDeque;
use std::sync::Arc;

use alluvium_base::{Corruption, HashRange};
use alluvium_io::AlignedBuffer;

use crate::error::Result;
use crate::name_builder::Name;
use crate::page::{Layout, PAGE_BYTES, Page, page_seed};
use crate::prefix_counts::PrefixCounts;
use crate::section::{Section, read_exact};

/// The names of prefixes of which a section has items in ranges of hashes, in ascending order of their bytes.
#[derive(Debug)]
pub struct NameScanner {
    section: Arc<Section>,
    wanted: Ranges,
    /// Names below this are skipped.
    start: Vec<u8>,
    /// Page of names to read next.
    next_page: u32,
    /// Pages per read.
    read_pages: u32,
    buffer: AlignedBuffer,
    /// The names that were read and not yet returned.
    names: VecDeque<ListedName>,
    /// The last name read.
    previous: Option<Vec<u8>>,
}

/// A prefix of which a table has items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedName {
    /// The bytes of the prefix.
    pub prefix: Vec<u8>,
    /// Its counts in the table. If only a part of its range is wanted, no item counts as lasting.
    pub counts: PrefixCounts,
}

/// Ranges of hashes, ascending, with gaps between them.
#[derive(Debug)]
struct Ranges(Vec<HashRange>);

impl Section {
    /// Bytes of the pages that contain names of prefixes.
    fn name_bytes(&self) -> u64 {
        u64::from(self.entry().name_page_count) * PAGE_BYTES as u64
    }

    /// Bytes of all its pages, which are contiguous.
    pub fn extent_bytes(&self) -> u64 {
        self.pages_bytes() + self.name_bytes()
    }

    /// Position in the file of a page of names.
    fn name_page_offset(&self, page: u32) -> u64 {
        self.page_offset(0) + self.pages_bytes() + u64::from(page) * PAGE_BYTES as u64
    }

    /// Calls `visit` with the names in `bytes`, the page of names with the number `page`.
    fn for_each_name(&self, page: u32, bytes: &[u8], mut visit: impl FnMut(Name<'_>)) -> Result<()> {
        let offset = self.name_page_offset(page);
        let place = |corruption: Corruption| corruption.within(self.file().name(), offset);
        let seed = page_seed(self.identity().seed, offset / PAGE_BYTES as u64);
        let checked = Page::check(bytes, seed, Layout::Names).map_err(place)?;
        for (tag, item) in checked.items().map_err(place)? {
            let Some(name) = Name::of(&item) else {
                return Err(place(Corruption::new("page", 0, "counts of a prefix", "other bytes")).into());
            };
            let expected = name.tag(&self.hasher());
            if tag != expected {
                let expected = format!("tag {expected:02x} of a prefix");
                return Err(place(Corruption::new("page", 0, expected, format!("{tag:02x}"))).into());
            }
            visit(name);
        }
        Ok(())
    }
}

impl Ranges {
    /// The union of disjoint ranges given in any order.
    fn of(mut ranges: Vec<HashRange>) -> Self {
        ranges.sort_unstable();
        ranges.dedup_by(|next, before| {
            let is_joined = before.meets(*next);
            before.high = if is_joined { next.high } else { before.high };
            is_joined
        });
        Self(ranges)
    }

    /// Whether the part of `range` within `own` is completely in the ranges, or `None` if nothing of it is.
    fn cover(&self, range: HashRange, own: HashRange) -> Option<bool> {
        let at = self.0.partition_point(|wanted| wanted.high < range.low);
        let wanted = self.0.get(at).filter(|wanted| wanted.low <= range.high)?;
        Some(wanted.low <= range.low.max(own.low) && wanted.high >= range.high.min(own.high))
    }
}

impl NameScanner {
    /// A scanner of the names from `start` on whose prefixes have items in `ranges`, which are disjoint. Reads some
    /// `read_bytes` at a time. Finds the page of `start` with log2 as many reads as there are pages.
    pub fn from(
        section: Arc<Section>,
        ranges: Vec<HashRange>,
        start: &[u8],
        read_bytes: usize,
    ) -> Result<Self> {
        let mut scanner = Self {
            section,
            wanted: Ranges::of(ranges),
            start: start.to_vec(),
            next_page: 0,
            read_pages: 1,
            buffer: AlignedBuffer::new(),
            names: VecDeque::new(),
            previous: None,
        };
        if !start.is_empty() {
            scanner.next_page = scanner.page_of(start)?;
        }
        scanner.read_pages = (read_bytes / PAGE_BYTES).max(1) as u32;
        Ok(scanner)
    }

    /// The next name, or `None` after the last.
    ///
    /// # Errors
    /// After an error the scan is over.
    #[expect(clippy::should_implement_trait, reason = "an iterator could not use `?`")]
    pub fn next(&mut self) -> Result<Option<ListedName>> {
        while self.names.is_empty() {
            if !self.read_on()? {
                return Ok(None);
            }
        }
        Ok(self.names.pop_front())
    }

    /// The last page whose first name is not above `start`.
    fn page_of(&mut self, start: &[u8]) -> Result<u32> {
        let (mut low, mut high) = (0, self.section.entry().name_page_count.max(1));
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            self.read(middle, 1)?;
            let mut begins_above = None;
            self.section.for_each_name(middle, &self.buffer, |name| {
                begins_above.get_or_insert(name.prefix > start);
            })?;
            match begins_above {
                Some(true) => high = middle,
                _ => low = middle,
            }
        }
        Ok(low)
    }

    fn read(&mut self, page: u32, pages: u32) -> Result<()> {
        let section = &self.section;
        self.buffer.resize_unspecified(pages as usize * PAGE_BYTES);
        read_exact(&**section.file(), &mut self.buffer, section.name_page_offset(page))
    }

    /// Reads the next pages. Returns `false` at the end.
    fn read_on(&mut self) -> Result<bool> {
        let (first, end) = (self.next_page, self.section.entry().name_page_count);
        let pages = self.read_pages.min(end.saturating_sub(first));
        if pages == 0 {
            return Ok(false);
        }
        self.read(first, pages)?;
        // Errors end the scan.
        self.next_page = end;
        let Self { section, wanted, start, names, previous, .. } = self;
        let (hasher, own) = (section.hasher(), section.range());
        for (page, bytes) in (first..).zip(self.buffer.chunks_exact(PAGE_BYTES)) {
            let mut descends = false;
            section.for_each_name(page, bytes, |name| {
                descends |= previous.as_deref().is_some_and(|previous| previous >= name.prefix);
                previous.get_or_insert_default().clear();
                previous.get_or_insert_default().extend_from_slice(name.prefix);
                let hash = hasher.prefix_hash(name.prefix).unwrap_or_default();
                let covered = wanted.cover(HashRange::of_high_half(hash), own);
                let Some(is_whole) = covered.filter(|_| name.prefix >= start.as_slice()) else { return };
                // If a range cuts the prefix, its items may be outside the range.
                let lasting = if is_whole { name.counts.lasting } else { 0 };
                let counts = PrefixCounts { lasting, ..name.counts };
                names.push_back(ListedName { prefix: name.prefix.to_vec(), counts });
            })?;
            if descends {
                let (name, offset) = (section.file().name(), section.name_page_offset(page));
                return Err(Corruption::new(name, offset, "names in order", "others").into());
            }
        }
        self.next_page = first + pages;
        Ok(true)
    }
}
