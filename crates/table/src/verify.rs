//! Reads a whole table file and checks everything that can be checked.

use std::sync::Arc;

use alluvium_base::{Corruption, KeyHash};
use alluvium_io::AlignedBuffer;

use crate::bucket_check::BucketCheck;
use crate::error::{Error, Result};
use crate::frame::{FILE_HEADER_BYTES, decode_header};
use crate::index::SectionIndex;
use crate::item::Item;
use crate::name_builder::NameBuilder;
use crate::name_scanner::NameScanner;
use crate::open::Table;
use crate::page::{Found, Layout, PAGE_BYTES, Page, page_tag};
use crate::page_list::PageRead;
use crate::section::{Section, read_exact};
use crate::totals::Totals;

/// Pages per read.
const READ_PAGES: u32 = 256;

/// The result of [`Table::verify`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Pages read, sound or not.
    pub page_count: u64,
    /// Items in sound pages.
    pub item_count: u64,
    /// All deviations, in the order of the file's sections. Empty for a sound table.
    pub corruptions: Vec<Corruption>,
}

impl Table {
    /// Reads the file and checks the header, every page and block, the order of items, that tags, filters and indexes
    /// lead to every item, and the directory's counts. Continues after damage, page by page. Sections that are not live
    /// are skipped: their space may have been given back.
    ///
    /// # Errors
    /// Only [`Error::Io`]; damage is reported in the result.
    pub fn verify(&self, is_live: impl Fn(&Arc<Section>) -> bool) -> Result<VerifyReport> {
        self.verify_sections(self.sections().iter().filter(|section| is_live(section)))
    }

    /// Like [`Table::verify`], for these sections of the file.
    pub fn verify_sections<'a>(
        &self,
        sections: impl IntoIterator<Item = &'a Arc<Section>>,
    ) -> Result<VerifyReport> {
        let mut report = VerifyReport::default();
        report.note(self.verify_frame())?;
        for section in sections {
            SectionCheck::new(section).run(&mut report)?;
        }
        Ok(report)
    }

    /// Checks the header page, which opening does not read, and the zeros before the trailer.
    fn verify_frame(&self) -> Result<()> {
        let name = self.file().name();
        let mut page = AlignedBuffer::with_len(PAGE_BYTES);
        read_exact(&**self.file(), &mut page, 0)?;
        // The trailer has a version that we read, so a header with another one is damaged.
        let identity = decode_header(&page, name).map_err(|error| match error {
            Error::NewerFormat { found_major, .. } | Error::OlderFormat { found_major, .. } => {
                Corruption::new(name, 8, "the trailer's format version", found_major.to_string()).into()
            }
            other => other,
        })?;
        if identity != self.identity() {
            let expected = format!("{:?} as in the trailer", self.identity());
            return Err(Corruption::new(name, 16, expected, format!("{identity:?}")).into());
        }
        expect_zeros(&page[FILE_HEADER_BYTES..], name, FILE_HEADER_BYTES as u64)?;
        let (offset, len) = self.padding();
        // Longer gaps contain index blocks and their checksums; the writer pads less than a page.
        let mut padding = vec![0; len.min(PAGE_BYTES as u64) as usize];
        read_exact(&**self.file(), &mut padding, offset)?;
        expect_zeros(&padding, name, offset)
    }
}

impl VerifyReport {
    /// Records damage, and passes on failures of the storage.
    fn note(&mut self, result: Result<()>) -> Result<()> {
        match result {
            Err(Error::Corruption(corruption)) => self.corruptions.push(corruption),
            other => other?,
        }
        Ok(())
    }
}

fn expect_zeros(bytes: &[u8], name: &str, offset: u64) -> Result<()> {
    match bytes.iter().position(|&byte| byte != 0) {
        None => Ok(()),
        Some(at) => {
            let found = format!("{:02x}", bytes[at]);
            Err(Corruption::new(name, offset + at as u64, "a zero byte of padding", found).into())
        }
    }
}

/// The state of the check of one section.
struct SectionCheck<'a> {
    section: &'a Arc<Section>,
    /// Filter and index if they are sound; otherwise items are checked without them.
    index: Option<Arc<SectionIndex>>,
    /// In hash layout, the occupied slots of the filter that are still to come.
    slots: std::vec::IntoIter<u32>,
    previous: Option<(KeyHash, Vec<u8>)>,
    /// In bucketed layout, the content of the group of buckets.
    buckets: Option<BucketCheck>,
    /// The prefixes of the items so far, if the section names them.
    names: Option<NameBuilder>,
    /// Tag and beginning of the item that continues in the next page.
    begun: Option<(u8, Vec<u8>)>,
    totals: Totals,
    /// Whether a page is damaged. Then counts cannot be compared, and slots are no longer known.
    is_damaged: bool,
}

impl<'a> SectionCheck<'a> {
    fn new(section: &'a Arc<Section>) -> Self {
        Self {
            section,
            index: None,
            slots: Vec::new().into_iter(),
            previous: None,
            buckets: None,
            names: section.hasher().lists_prefixes().then(NameBuilder::default),
            begun: None,
            totals: Totals::default(),
            is_damaged: false,
        }
    }

    fn run(mut self, report: &mut VerifyReport) -> Result<()> {
        match self.section.stored_index(true).map(Arc::new) {
            Ok(index) => {
                if let (Layout::Hash, Some(filter)) = (self.section.layout(), index.tags()) {
                    self.slots = filter.occupied().collect::<Vec<_>>().into_iter();
                }
                self.buckets = index.buckets().map(|buckets| BucketCheck::new(buckets.clone()));
                self.index = Some(index);
            }
            Err(error) => report.note(Err(error))?,
        }
        let mut buffer = AlignedBuffer::new();
        let page_count = self.section.page_count();
        for first in (0..page_count).step_by(READ_PAGES as usize) {
            let count = READ_PAGES.min(page_count - first) as usize;
            self.section.read_pages(first, count, &mut buffer)?;
            for (page, bytes) in (first..).zip(buffer.chunks_exact(PAGE_BYTES)) {
                report.page_count += 1;
                let before = self.totals.item_count;
                let checked = self.check_page(page, bytes);
                self.is_damaged |= checked.is_err();
                report.item_count += self.totals.item_count - before;
                report.note(checked)?;
                if let Some(buckets) = &mut self.buckets {
                    report.note(buckets.end_page(page).map_err(|found| {
                        let name = self.section.file().name();
                        Corruption::new(name, self.section.page_offset(page), found.expected, found.found)
                            .into()
                    }))?;
                }
            }
        }
        if self.begun.is_some() {
            let offset = self.section.page_offset(page_count - 1);
            let expected = "a next page in which the last item continues";
            let found = "the end of the section";
            report.corruptions.push(Corruption::new(self.section.file().name(), offset, expected, found));
        }
        if !self.is_damaged && self.totals != self.section.entry().totals {
            let offset = self.section.page_offset(0);
            let expected = format!("{:?} as in the directory", self.section.entry().totals);
            let found = format!("{:?}", self.totals);
            report.corruptions.push(Corruption::new(self.section.file().name(), offset, expected, found));
        }
        report.page_count += u64::from(self.section.entry().name_page_count);
        let names_checked = self.check_names();
        report.note(names_checked)
    }

    /// Checks that the pages of names agree with the prefixes of the items.
    fn check_names(&mut self) -> Result<()> {
        let Some(mut expected) = self.names.take() else { return Ok(()) };
        expected.sort();
        let mut expected = expected.names();
        let (section, range) = (Arc::clone(self.section), self.section.range());
        let mut found = NameScanner::from(section, vec![range], &[], READ_PAGES as usize * PAGE_BYTES)?;
        loop {
            let (expected, found) = (expected.next(), found.next()?);
            let is_same = match (&expected, &found) {
                (Some(expected), Some(found)) => {
                    (expected.prefix, expected.counts) == (&found.prefix[..], found.counts)
                }
                (None, None) => return Ok(()),
                _ => false,
            };
            if !is_same && !self.is_damaged {
                let name = self.section.file().name();
                let offset = self.section.page_offset(0) + self.section.pages_bytes();
                let expected = expected.map(|name| (String::from_utf8_lossy(name.prefix), name.counts));
                let found = found.as_ref().map(|name| (String::from_utf8_lossy(&name.prefix), name.counts));
                let (expected, found) = (format!("prefix {expected:?}"), format!("{found:?}"));
                return Err(Corruption::new(name, offset, expected, found).into());
            }
            if self.is_damaged && found.is_none() {
                return Ok(());
            }
        }
    }

    fn check_page(&mut self, number: u32, bytes: &[u8]) -> Result<()> {
        let begun = self.begun.take();
        let page = self.section.check_page(number, bytes)?;
        let place = |corruption: Corruption| Error::from(self.section.within_page(number, corruption));
        let items = page.items().map_err(place)?;
        let begins = page.begun().map_err(place)?;
        if let Some(buckets) = &mut self.buckets {
            buckets.begin_page(number, &page);
        }
        if let Some(at) = bytes[page.used_bytes()..].iter().position(|&byte| byte != 0) {
            let offset = (page.used_bytes() + at) as u64;
            return Err(place(Corruption::new("page", offset, "zeros after the items", "other bytes")));
        }
        if begins.is_some() && !self.section.entry().items_go_on {
            let expected = "whole items, as the directory says";
            return Err(place(Corruption::new("page", 0, expected, "one that continues in the next page")));
        }
        self.totals.used_bytes += page.used_bytes() as u64;
        let misplaced = |(expected, found): (String, String)| {
            let name = self.section.file().name();
            Error::from(Corruption::new(name, self.section.page_offset(number), expected, found))
        };
        self.check_joined(number, begun, page.carried()).map_err(misplaced)?;
        for (tag, item) in items {
            self.check_item(number, Some(&page), tag, &item).map_err(misplaced)?;
        }
        self.begun = begins.map(|(tag, bytes)| (tag, bytes.to_vec()));
        Ok(())
    }

    /// Checks the item that began on the page before `number` and whose `rest` is there.
    fn check_joined(
        &mut self,
        number: u32,
        begun: Option<(u8, Vec<u8>)>,
        rest: &[u8],
    ) -> std::result::Result<(), (String, String)> {
        let (tag, mut bytes) = match begun {
            Some(begun) if !rest.is_empty() => begun,
            None if rest.is_empty() || self.is_damaged => return Ok(()),
            other => {
                let expected = format!("the rest of an item: {}", other.is_some());
                return Err((expected, format!("{} bytes of one", rest.len())));
            }
        };
        bytes.extend_from_slice(rest);
        match Item::decode(&bytes) {
            Some((item, len)) if len == bytes.len() => self.check_item(number - 1, None, tag, &item),
            _ => Err((format!("an item of {} bytes on two pages", bytes.len()), "none".to_owned())),
        }
    }

    /// Returns what was expected and what was found if `item` is not as it should be. It begins on page `number`, and
    /// ends there if `page` is given.
    fn check_item(
        &mut self,
        number: u32,
        page: Option<&Page<'_>>,
        tag: u8,
        item: &Item<'_>,
    ) -> std::result::Result<(), (String, String)> {
        let hash = self.section.hasher().hash(item.key);
        let range = self.section.range();
        self.totals.add(item);
        if let Some(names) = &mut self.names {
            names.push(&self.section.hasher(), item);
        }
        if !range.contains(hash.0) {
            return Err((format!("a hash in {range}"), format!("{hash:?}")));
        }
        if tag != page_tag(hash) {
            return Err((format!("tag {:02x} of hash {hash:?}", page_tag(hash)), format!("{tag:02x}")));
        }
        let is_found = |page: &Page<'_>| match page.find(tag, item.key) {
            Ok(Found::Item(_, found)) => found == *item,
            Ok(Found::Nothing | Found::Begun(_)) | Err(_) => false,
        };
        if !page.is_none_or(is_found) {
            return Err((format!("one item of hash {hash:?} under its key"), "another".to_owned()));
        }
        if let Some(buckets) = &mut self.buckets {
            buckets.add(number, hash, item.key);
            if self.index.as_ref().is_some_and(|index| index.locate(hash).is_empty()) {
                return Err((format!("a filter that has hash {hash:?}"), "one that has not".to_owned()));
            }
            return Ok(());
        }
        if let Some(index) = self.index.clone() {
            self.check_index(&index, PageRead::new(number, page.is_none()), hash)?;
        }
        if self.section.layout() == Layout::Sorted {
            let ascends = match &self.previous {
                Some((before, key)) => (*before, key.as_slice()) < (hash, item.key),
                None => true,
            };
            if !ascends {
                return Err((
                    format!("a hash or key above the one before, {:?}", self.previous),
                    format!("{hash:?}"),
                ));
            }
            self.previous = Some((hash, item.key.to_vec()));
        }
        Ok(())
    }

    fn check_index(
        &mut self,
        index: &SectionIndex,
        read: PageRead,
        hash: KeyHash,
    ) -> std::result::Result<(), (String, String)> {
        let located = index.locate(hash);
        if !located.iter().any(|found| found.page == read.page && found.count >= read.count) {
            return Err((format!("an index that leads hash {hash:?} to {read:?}"), format!("{located:?}")));
        }
        if index.has_prefix(hash.high()) == Some(false) {
            return Err((
                format!("a filter that has the prefix of hash {hash:?}"),
                "one that has not".to_owned(),
            ));
        }
        if self.section.layout() == Layout::Hash
            && !self.is_damaged
            && let Some(filter) = index.tags()
        {
            let slot = self.slots.next();
            if !filter.candidates(hash).any(|candidate| Some(candidate) == slot) {
                return Err((format!("an item of slot {slot:?}"), format!("an item of hash {hash:?}")));
            }
        }
        Ok(())
    }
}
