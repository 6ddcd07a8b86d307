//! One get on its way through a version, reading pages as its caller sees fit.

use alluvium_base::KeyHash;

use super::version::Version;
use crate::error::Result;
use crate::table::{PageList, Section};

/// A lookup below the log: yields the pages to read, young to old, until the caller finds the key in one.
///
/// Keeps the reading to the caller, who can put the pages of many lookups in flight together.
#[derive(Debug)]
pub(crate) struct Lookup<'v> {
    version: &'v Version,
    pub hash: KeyHash,
    /// The next run to ask; one past the last is the sorted run.
    stage: usize,
    section: Option<&'v Section>,
    pages: Option<PageList>,
    next_page: usize,
}

impl<'v> Lookup<'v> {
    pub fn new(version: &'v Version, hash: KeyHash) -> Self {
        Self { version, hash, stage: 0, section: None, pages: None, next_page: 0 }
    }

    /// The next page that may hold the key; `None` when it is absent.
    pub fn next_page(&mut self) -> Result<Option<(&'v Section, u32)>> {
        loop {
            if let (Some(section), Some(pages)) = (self.section, &self.pages)
                && let Some(page) = pages.iter().nth(self.next_page)
            {
                self.next_page += 1;
                return Ok(Some((section, page)));
            }
            let runs = &self.version.runs;
            let section = match self.stage.cmp(&runs.len()) {
                std::cmp::Ordering::Less => runs[self.stage].section(self.hash).map(|run| &run.section),
                std::cmp::Ordering::Equal => self.version.sorted_table(self.hash).map(|table| &table.section),
                std::cmp::Ordering::Greater => return Ok(None),
            };
            self.stage += 1;
            self.section = section.map(|section| &**section);
            self.next_page = 0;
            self.pages = match self.section {
                Some(section) => Some(section.locate(self.hash)?),
                None => None,
            };
        }
    }
}
