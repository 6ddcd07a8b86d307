//! [`VersionLookup`]: the state of one get on its way through what is below the log of a version.

use alluvium_base::KeyHash;
use alluvium_io::{AlignedBuffer, File};

use crate::chained::{ChainRead, ChainWalk, Step};
use crate::error::{IoContext, Result};
use crate::item::Item;
use crate::level::{Lookup, Version};
use crate::table::{PAGE_BYTES, PageRead, Section};

/// A lookup below the log: first in the chains of the key, then in the levels.
#[derive(Debug)]
pub(crate) struct VersionLookup<'v> {
    chains: Option<ChainWalk<'v>>,
    levels: Lookup<'v>,
}

/// What comes next in a lookup.
#[derive(Debug)]
pub(crate) enum Next<'v> {
    /// Something that may have the key.
    Read(Read<'v>),
    /// The item, without a read.
    Item(Item<'v>),
    /// The key is absent.
    End,
}

/// A read that a lookup needs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Read<'v> {
    Table(&'v Section, PageRead),
    Chain(ChainRead<'v>),
}

impl<'v> Read<'v> {
    pub fn file(&self) -> &'v dyn File {
        match self {
            Self::Table(section, _) => &**section.file(),
            Self::Chain(read) => &*read.file.file,
        }
    }

    /// The offset in the file.
    pub fn offset(&self) -> u64 {
        match self {
            Self::Table(section, read) => section.page_offset(read.page),
            Self::Chain(read) => read.offset,
        }
    }

    /// Number of bytes, whole pages.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Table(_, read) => read.count as usize * PAGE_BYTES,
            Self::Chain(read) => read.bytes,
        }
    }

    /// Copies the bytes to the buffer if they are kept in memory; returns whether they were.
    pub fn copy_kept(&self, buffer: &mut AlignedBuffer) -> bool {
        match self {
            Self::Table(section, read) => section.copy_kept(read.page, buffer),
            Self::Chain(_) => false,
        }
    }

    /// The outcome of the read, with the file's name in an error.
    pub fn check(&self, outcome: std::io::Result<usize>) -> Result<usize> {
        outcome.context(|| match self {
            Self::Table(section, _) => format!("reading table {}", section.file().name()),
            Self::Chain(read) => format!("reading {}", read.file.name()),
        })
    }
}

impl<'v> VersionLookup<'v> {
    /// Looks for a key of this hash below the log.
    pub fn new(version: &'v Version, hash: KeyHash) -> Self {
        let chains = version.chain.as_ref().and_then(|chain| ChainWalk::new(version, chain, hash));
        Self { chains, levels: version.body.lookup(hash) }
    }

    /// Looks only in these levels.
    pub fn in_levels(levels: Lookup<'v>) -> Self {
        Self { chains: None, levels }
    }

    /// What comes next.
    ///
    /// # Errors
    /// [`crate::Error::MissingFile`] if the key may be in a log segment that is younger than the version.
    pub fn next(&mut self, key: &[u8]) -> Result<Next<'v>> {
        if let Some(chains) = &mut self.chains {
            match chains.step(key)? {
                Step::Read(read) => return Ok(Next::Read(Read::Chain(read))),
                Step::Item(item) => return Ok(Next::Item(item)),
                Step::End => self.chains = None,
            }
        }
        Ok(match self.levels.next_read()? {
            Some((section, read)) => Next::Read(Read::Table(section, read)),
            None => Next::End,
        })
    }

    /// Looks for `key` in `bytes`, which were read for the last answer of [`VersionLookup::next`]. `None` if it is not
    /// there; then the next answer decides.
    pub fn search<'a>(
        &mut self,
        read: &Read<'v>,
        bytes: &'a mut [u8],
        key: &[u8],
    ) -> Result<Option<Item<'a>>> {
        match (read, &mut self.chains) {
            (Read::Chain(read), Some(chains)) => chains.search(read, bytes, key),
            (Read::Chain(_), None) => Ok(None),
            (Read::Table(section, read), _) => self.levels.search(section, *read, bytes, key),
        }
    }
}
