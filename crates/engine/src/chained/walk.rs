//! [`ChainWalk`]: the state of one lookup in the chains of a key.

use alluvium_base::{Corruption, KeyHash};

use super::address::Address;
use super::chain::{Chain, ChainFile};
use super::directory::Heads;
use crate::error::{Error, Result};
use crate::item::{EncodedItem, Item, Link};
use crate::level::Version;
use crate::log::Segment;
use crate::log::linked_record::len_at_least;
use crate::log::record::{self, Parsed, Record};
use crate::table::PAGE_BYTES;

/// Bytes that are read for a record, unless it takes more: a read of two pages takes no longer than one, but two reads
/// do.
const TAIL_BYTES: u64 = 256;

/// A lookup in the chains of one key, young to old: yields what to read until the caller finds the key.
///
/// The version was loaded before the heads of the chains were. So a record that is younger than its segments was
/// written or moved meanwhile, and if the chains start behind the version's oldest segment now, records of that one may
/// be in levels of a younger version. In both cases the lookup begins again with the current version.
#[derive(Debug)]
pub(crate) struct ChainWalk<'v> {
    version: &'v Version,
    chain: &'v Chain,
    /// Where the chains are to be walked on, the next one last.
    next: Heads,
    oldest: Address,
    /// Whether the chains may have been cleared before `oldest`'s version was gone.
    is_late: bool,
    /// Bytes that the next record takes if they are known to exceed what is usually read.
    record_bytes: usize,
}

/// The next step of a walk.
#[derive(Debug)]
pub(crate) enum Step<'v> {
    /// A part of a file has the next record.
    Read(ChainRead<'v>),
    /// The item, from a record in memory.
    Item(Item<'v>),
    /// The key is in no chain.
    End,
}

/// A part of a file to be read: whole pages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChainRead<'v> {
    pub file: &'v ChainFile,
    pub offset: u64,
    pub bytes: usize,
}

/// A record of a chain, as far as it is present.
enum Found<'a> {
    Record {
        item: EncodedItem<'a>,
        link: Link,
    },
    /// It takes at least this number of bytes.
    Longer(usize),
}

impl<'v> ChainWalk<'v> {
    /// A walk of the chains that may have a key of this hash. Returns `None` if none may.
    pub fn new(version: &'v Version, chain: &'v Chain, hash: KeyHash) -> Option<Self> {
        let mut next = chain.directory.heads(hash);
        next.reverse();
        let walk = Self::over(version, chain, next);
        (walk.is_late || !walk.next.is_empty()).then_some(walk)
    }

    /// A walk of the chains with these heads, which were just loaded.
    pub fn over(version: &'v Version, chain: &'v Chain, next: Heads) -> Self {
        let log = version.log_stores.last().map(|store| store.segment.id);
        let oldest = chain.oldest(log);
        Self { version, chain, next, oldest, is_late: chain.directory.start() > oldest, record_bytes: 0 }
    }

    /// The next step.
    ///
    /// # Errors
    /// [`Error::MissingFile`] if a record is in a segment that is younger than the version, or may have been in one
    /// that is gone.
    pub fn step(&mut self, key: &[u8]) -> Result<Step<'v>> {
        self.step_by(|_, item| item.item.key == key)
    }

    /// The same, up to a record in memory that is wanted.
    pub fn step_by(
        &mut self,
        mut is_wanted: impl FnMut(Address, &EncodedItem<'_>) -> bool,
    ) -> Result<Step<'v>> {
        if self.is_late {
            return Err(Error::MissingFile { file: format!("log segment {}", self.oldest.segment()) });
        }
        loop {
            let Some(&address) = self.next.last() else { return Ok(Step::End) };
            if address < self.oldest {
                self.next.pop();
                continue;
            }
            let id = address.segment();
            if let Some(file) = self.chain.file(id) {
                let offset = address.offset() / PAGE_BYTES as u64 * PAGE_BYTES as u64;
                let len = TAIL_BYTES.max(self.record_bytes as u64);
                let end = (address.offset() + len).next_multiple_of(PAGE_BYTES as u64);
                let bytes = (end - offset)
                    .min((file.bytes - offset.min(file.bytes)).next_multiple_of(PAGE_BYTES as u64));
                if address.offset() >= file.bytes {
                    return Err(unsound(file.name(), address, "its end"));
                }
                return Ok(Step::Read(ChainRead { file, offset, bytes: bytes as usize }));
            }
            let store = self.version.log_stores.iter().find(|store| store.segment.id == id);
            let Some(store) = store else {
                return Err(Error::MissingFile { file: format!("log segment {id}") });
            };
            let segment: &'v Segment = &store.segment;
            let bytes = segment.slice(address.offset()..segment.published());
            let found = bytes.and_then(|bytes| find(segment.seed, bytes, false, self.chain).ok());
            let Some(Found::Record { item, link }) = found else {
                return Err(unsound(segment.name(), address, "none"));
            };
            self.follow(address, &link, segment.name())?;
            if is_wanted(address, &item) {
                // A batch may be visible in part only.
                segment.indexing.wait(address.offset() as u32);
                return Ok(Step::Item(item.item));
            }
        }
    }

    /// Looks for `key` in `bytes`, which were read for the last step. `None` if it is not there; then the next step
    /// decides.
    ///
    /// # Errors
    /// [`Corruption`] if the bytes are not what was expected there.
    pub fn search<'a>(
        &mut self,
        read: &ChainRead<'v>,
        bytes: &'a [u8],
        key: &[u8],
    ) -> Result<Option<Item<'a>>> {
        self.search_by(read, bytes, |_, item| item.item.key == key)
    }

    /// The same up to a record that is wanted. Follows the chain as far as it is in `bytes`.
    pub fn search_by<'a>(
        &mut self,
        read: &ChainRead<'v>,
        bytes: &'a [u8],
        mut is_wanted: impl FnMut(Address, &EncodedItem<'_>) -> bool,
    ) -> Result<Option<Item<'a>>> {
        let name = read.file.name();
        let end = ((read.file.bytes - read.offset) as usize).min(bytes.len());
        let is_present = |address: Address| {
            let place = read.offset..read.offset + end as u64;
            address.segment() == read.file.segment && place.contains(&address.offset())
        };
        while let Some(&address) = self.next.last()
            && address >= self.oldest
            && is_present(address)
        {
            let record = &bytes[(address.offset() - read.offset) as usize..end];
            match find(read.file.seed, record, true, self.chain) {
                Ok(Found::Record { item, link }) => {
                    self.follow(address, &link, name)?;
                    if is_wanted(address, &item) {
                        return Ok(Some(item.item));
                    }
                }
                Ok(Found::Longer(len)) if read.offset + (bytes.len() as u64) < read.file.bytes => {
                    self.record_bytes = len.max(record.len() + PAGE_BYTES);
                    return Ok(None);
                }
                _ => return Err(unsound(name, address, "none")),
            }
        }
        Ok(None)
    }

    fn follow(&mut self, address: Address, link: &Link, name: &str) -> Result<()> {
        self.record_bytes = 0;
        self.next.pop();
        if link.pointer == 0 {
            return Ok(());
        }
        match address.before(link.pointer, link.encoded_len()).filter(|next| *next < address) {
            Some(next) => self.next.push(next),
            None => return Err(unsound(name, address, "a link to itself")),
        }
        Ok(())
    }
}

/// The record at the start of `bytes`. An error if it is not one of the chain's keyspace.
fn find<'a>(seed: u64, bytes: &'a [u8], check: bool, chain: &Chain) -> std::result::Result<Found<'a>, ()> {
    match record::decode(seed, bytes, check) {
        Parsed::Record(Record::Item { keyspace, item_start, .. }, _) if keyspace == chain.keyspace() => {
            let item = EncodedItem::decode(&bytes[item_start..]).ok_or(())?;
            let link = Link::of(item.bytes).ok_or(())?;
            Ok(Found::Record { item, link })
        }
        Parsed::Incomplete => Ok(Found::Longer(len_at_least(bytes))),
        Parsed::Record(..) | Parsed::Invalid => Err(()),
    }
}

fn unsound(name: &str, address: Address, found: &str) -> Error {
    Corruption::new(name, address.offset(), "a record of a chain", found).into()
}
