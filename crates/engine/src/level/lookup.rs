//! The state of one get on its way through a version. The caller does the reading.

use std::slice;
use std::sync::Arc;

use alluvium_base::{Corruption, KeyHash};
use alluvium_index::prefetch_element;
use smallvec::SmallVec;

use super::placed_level::Level;
use super::run::Run;
use crate::error::Result;
use crate::item::Item;
use crate::table::{Asked, ColumnRead, PageList, PageRead, Searched, Section, Verdict};

/// A lookup below the log: yields what to read, young to old, until the caller finds the key in it.
///
/// The caller does the reading, so that it can have the pages of many lookups in flight together. A read is usually a
/// page of items, otherwise a column of a filter; [`Lookup::search`] distinguishes them.
#[derive(Debug)]
pub(crate) struct Lookup<'v> {
    pub hash: KeyHash,
    /// Sections that may hold the key, young to old.
    sections: Sections<'v>,
    /// The section to ask next.
    next_section: usize,
    pages: PageList,
    next_read: usize,
    /// Whether these pages were named by the key's home bucket.
    is_moved: bool,
    /// What the filter of the section with this number says about that section and the older ones that it covers.
    verdict: Option<(usize, Verdict)>,
    /// The column that is being read.
    column: Option<ColumnRead>,
}

/// Number of sections over one hash that need no allocation: more than a unit has when its merge is due.
const SECTIONS_INLINE: usize = 12;

type Sections<'v> = SmallVec<[&'v Section; SECTIONS_INLINE]>;

/// Adds the sections of runs, and starts loading what says whether they contain the key. This means following five
/// pointers, so each step is made for all runs before the next step for any: with dozens of runs, these cache misses
/// are most of what a lookup costs.
#[inline]
fn add_sections<'v>(sections: &mut Sections<'v>, runs: &'v [Arc<Run>], hash: KeyHash) {
    for run in runs {
        run.prefetch(hash);
    }
    let found = || runs.iter().filter_map(|run| run.section(hash));
    for section in found() {
        prefetch_element(slice::from_ref(&section.section), 0);
    }
    for section in found() {
        section.section.prefetch_head();
        sections.push(&*section.section);
    }
    for section in &*sections {
        section.prefetch_index();
    }
    for section in &*sections {
        section.prefetch(hash);
    }
}

/// Adds the tables of the container that covers `hash`, and starts loading what says whether they contain the key.
#[inline]
fn add_tables<'v>(sections: &mut Sections<'v>, level: &'v Level, hash: KeyHash) {
    let mut covered = 0;
    for table in level.container(hash).into_iter().flat_map(|container| &container.tables) {
        match covered {
            0 => covered = table.section.prefetch(hash),
            _ => covered -= 1,
        }
        sections.push(&*table.section);
    }
}

impl<'v> Lookup<'v> {
    /// Starts loading what [`Lookup::next_read`] will need, for all sections at once: each filter is a cache miss.
    pub(super) fn new(runs: &'v [Arc<Run>], levels: &'v [Level], hash: KeyHash) -> Self {
        let mut sections = Sections::new();
        add_sections(&mut sections, runs, hash);
        for level in levels {
            add_tables(&mut sections, level, hash);
        }
        Self {
            hash,
            sections,
            next_section: 0,
            pages: PageList::EMPTY,
            next_read: 0,
            is_moved: false,
            verdict: None,
            column: None,
        }
    }

    /// The next read of something that may contain the key; `None` if the key is absent.
    pub fn next_read(&mut self) -> Result<Option<(&'v Section, PageRead)>> {
        loop {
            if let Some(read) = self.pages.iter().nth(self.next_read) {
                self.next_read += 1;
                return Ok(Some((self.sections[self.next_section - 1], read)));
            }
            let Some(&section) = self.sections.get(self.next_section) else { return Ok(None) };
            let number = self.next_section;
            self.next_section += 1;
            self.set_pages(PageList::EMPTY, false);
            if let Some((head, verdict)) = &self.verdict {
                match verdict.says(number - head, section.file_number()) {
                    Some(true) => {
                        self.set_pages(section.locate_covered(self.hash)?, false);
                        continue;
                    }
                    Some(false) => continue,
                    None => self.verdict = None,
                }
            }
            match section.ask(self.hash)? {
                Asked::Pages(pages) => self.set_pages(pages, false),
                Asked::Runs(verdict) => self.take_verdict(section, verdict)?,
                Asked::Column(column) => {
                    let read = column.read;
                    self.column = Some(column);
                    return Ok(Some((section, read)));
                }
            }
        }
    }

    /// Looks for `key` in `bytes`, which were read for the last answer of [`Lookup::next_read`]. `None` if it is not
    /// there; then the next read decides.
    ///
    /// # Errors
    /// If the bytes are not what was expected there. Nothing in them is returned then.
    pub fn search<'a>(
        &mut self,
        section: &'v Section,
        read: PageRead,
        bytes: &'a mut [u8],
        key: &[u8],
    ) -> Result<Option<Item<'a>>> {
        if let Some(column) = self.column.take() {
            let verdict = section.judge(column, bytes, self.hash)?;
            self.take_verdict(section, verdict)?;
            return Ok(None);
        }
        match section.search(read, bytes, self.hash, key)? {
            Searched::Item(item) => Ok(Some(item)),
            Searched::Nothing => Ok(None),
            Searched::On(page) if !self.is_moved => {
                self.set_pages(PageList::range(page, PageRead::new(page, false)), true);
                Ok(None)
            }
            Searched::On(page) => {
                let found = format!("an item moved on to page {page}");
                let expected = "items that were moved once";
                let offset = section.page_offset(read.page);
                Err(Corruption::new(section.file().name(), offset, expected, found).into())
            }
        }
    }

    /// Stores what the filter of the last section says.
    fn take_verdict(&mut self, section: &'v Section, verdict: Verdict) -> Result<()> {
        if verdict.says(0, section.file_number()) == Some(true) {
            self.set_pages(section.locate_covered(self.hash)?, false);
        }
        self.verdict = Some((self.next_section - 1, verdict));
        Ok(())
    }

    fn set_pages(&mut self, pages: PageList, is_moved: bool) {
        (self.pages, self.next_read, self.is_moved) = (pages, 0, is_moved);
    }
}
