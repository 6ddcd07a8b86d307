//! One get on its way through a version, reading pages as its caller sees fit.

use alluvium_base::KeyHash;
use smallvec::SmallVec;

use super::levels::Level;
use super::version::Version;
use crate::error::Result;
use crate::table::{PageList, PageRead, Section};

/// A lookup below the log: yields the pages to read, young to old, until the caller finds the key in one.
///
/// Keeps the reading to the caller, who can put the pages of many lookups in flight together.
#[derive(Debug)]
pub(crate) struct Lookup<'v> {
    pub hash: KeyHash,
    /// Sections that may hold the key, young to old.
    sections: Sections<'v>,
    /// The section to ask next.
    next_section: usize,
    pages: PageList,
    next_read: usize,
}

/// Sections over one place that take no allocation: more than a unit has when it is due.
const SECTIONS_INLINE: usize = 12;

type Sections<'v> = SmallVec<[&'v Section; SECTIONS_INLINE]>;

/// Adds the tables of the container that holds `hash`, and starts loading what tells whether they have it.
#[inline]
fn add_tables<'v>(sections: &mut Sections<'v>, level: &'v Level, hash: KeyHash) {
    for table in level.container(hash).into_iter().flat_map(|container| &container.tables) {
        table.section.prefetch(hash);
        sections.push(&*table.section);
    }
}

impl<'v> Lookup<'v> {
    /// Starts loading what [`Lookup::next_read`] will look at, of all sections at once: each filter is a cache miss.
    pub fn new(version: &'v Version, hash: KeyHash) -> Self {
        let mut sections = SmallVec::new();
        for run in &version.runs {
            if let Some(section) = run.section(hash) {
                section.section.prefetch(hash);
                sections.push(&*section.section);
            }
        }
        for level in &version.levels {
            add_tables(&mut sections, level, hash);
        }
        Self { hash, sections, next_section: 0, pages: PageList::EMPTY, next_read: 0 }
    }

    /// A lookup in the level of this number, from 1 on, and in those below it.
    pub fn from_level(version: &'v Version, number: usize, hash: KeyHash) -> Self {
        let mut sections = SmallVec::new();
        for level in &version.levels[number - 1..] {
            add_tables(&mut sections, level, hash);
        }
        Self { hash, sections, next_section: 0, pages: PageList::EMPTY, next_read: 0 }
    }

    /// The next read of what may hold the key; `None` when it is absent.
    pub fn next_read(&mut self) -> Result<Option<(&'v Section, PageRead)>> {
        loop {
            if let Some(read) = self.pages.iter().nth(self.next_read) {
                self.next_read += 1;
                return Ok(Some((self.sections[self.next_section - 1], read)));
            }
            let Some(section) = self.sections.get(self.next_section) else { return Ok(None) };
            self.pages = section.locate(self.hash)?;
            self.next_section += 1;
            self.next_read = 0;
        }
    }
}
