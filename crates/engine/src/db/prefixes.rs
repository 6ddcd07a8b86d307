//! [`Prefixes`]: the prefixes of a semi-sorted keyspace, in the order of their bytes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, btree_map};
use std::iter::{FusedIterator, Peekable};
use std::sync::Arc;

use alluvium_base::{HashRange, TableId};

use super::keyspace::Keyspace;
use super::scan::Iter;
use super::snapshot::KeyspaceSnapshot;
use crate::core::{KeyspaceShared, Pin, Shared};
use crate::error::{Error, Result};
use crate::level::Version;
use crate::log::LogStore;
use crate::table::{ListedName, NameScanner, PrefixCounts, Section, SectionRange};

/// The prefixes that have items, each once, ascending by their bytes.
///
/// Prefixes that have items during the whole listing are returned. A prefix that gets its first item or loses its last
/// one meanwhile may be returned or not. A listing of a snapshot is exact.
#[derive(Debug)]
pub struct Prefixes {
    shared: Arc<Shared>,
    keyspace: Arc<KeyspaceShared>,
    /// The version that it reads; pinned so that statistics include it.
    pin: Arc<Pin>,
    /// When it began, in milliseconds since 1970: items that expire later are live.
    now_ms: u64,
    /// The prefixes of items in the log.
    logged: Peekable<btree_map::IntoIter<Vec<u8>, PrefixCounts>>,
    tables: Vec<NameScanner>,
    /// The next name of each table that has more.
    next: BinaryHeap<Reverse<Next>>,
    is_over: bool,
}

/// The next name of the table of this number. Ordered by name.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Next {
    prefix: Vec<u8>,
    number: usize,
    lasting: u64,
    hiding: u64,
}

impl Keyspace {
    /// The prefixes that have items, in the order of their bytes.
    ///
    /// Costs reads of the pages with their names in every table. If no table has more lasting items of a prefix than
    /// all tables together have tombstones and expiring items of it, the listing also checks that there is an item,
    /// which costs as much as the beginning of a scan. Keeps in memory the names of the prefixes in the log, and at
    /// least a page of names for each table.
    ///
    /// # Errors
    /// [`Error::NotSemiSorted`] and [`Error::PrefixesNotListed`].
    pub fn prefixes(&self) -> Result<Prefixes> {
        self.prefixes_from([])
    }

    /// The same, starting at a prefix, which need not exist. For each table, costs about log2 of its pages of names in
    /// reads before the first prefix.
    ///
    /// # Errors
    /// As [`Keyspace::prefixes`].
    pub fn prefixes_from(&self, start: impl AsRef<[u8]>) -> Result<Prefixes> {
        self.shared.check_present()?;
        let (keyspace, version) = (self.shared.clone(), self.shared.version.load_full());
        Prefixes::over(&self.handle.shared, keyspace, version, start.as_ref(), self.database().now_ms())
    }
}

impl KeyspaceSnapshot {
    /// The prefixes that had items, in the order of their bytes, as [`Keyspace::prefixes`] returns them.
    ///
    /// # Errors
    /// [`Error::NotSemiSorted`] and [`Error::PrefixesNotListed`].
    pub fn prefixes(&self) -> Result<Prefixes> {
        self.prefixes_from([])
    }

    /// The same, starting at a prefix.
    ///
    /// # Errors
    /// As [`KeyspaceSnapshot::prefixes`].
    pub fn prefixes_from(&self, start: impl AsRef<[u8]>) -> Result<Prefixes> {
        let (shared, keyspace, version, taken_at_ms) = self.parts();
        Prefixes::over(shared, keyspace, version, start.as_ref(), taken_at_ms)
    }
}

impl Prefixes {
    fn over(
        shared: &Arc<Shared>,
        keyspace: Arc<KeyspaceShared>,
        version: Arc<Version>,
        start: &[u8],
        now_ms: u64,
    ) -> Result<Self> {
        shared.check_open()?;
        if !keyspace.hasher.is_semi_sorted() {
            return Err(Error::NotSemiSorted { keyspace: keyspace.name.clone() });
        }
        let sections = live_sections(&version);
        let name_prefixes = |live: &LiveSection| live.section.hasher().lists_prefixes();
        if !keyspace.hasher.lists_prefixes() || !sections.iter().all(name_prefixes) {
            return Err(Error::PrefixesNotListed { keyspace: keyspace.name.clone() });
        }
        let mut logged = BTreeMap::new();
        for store in &version.log_stores {
            gather(store, start, &mut logged)?;
        }
        let read_bytes = shared.memory.budget().read_bytes_each(sections.len());
        let mut tables = Vec::with_capacity(sections.len());
        let mut next = BinaryHeap::with_capacity(sections.len());
        for (number, LiveSection { section, ranges }) in sections.into_iter().enumerate() {
            let mut table = NameScanner::from(section, ranges, start, read_bytes)?;
            next.extend(table.next()?.map(|name| Reverse(Next::of(name, number))));
            tables.push(table);
        }
        let (shared, logged) = (shared.clone(), logged.into_iter().peekable());
        let pin = keyspace.pin(version, shared.now_ms());
        Ok(Self { shared, keyspace, pin, now_ms, logged, tables, next, is_over: false })
    }

    /// The next prefix of which there is any item or tombstone, with its counts.
    fn next_named(&mut self) -> Result<Option<(Vec<u8>, PrefixCounts)>> {
        let in_tables = self.next.peek().map(|Reverse(next)| &next.prefix);
        let is_logged = match (self.logged.peek(), in_tables) {
            (None, None) => return Ok(None),
            (Some((logged, _)), Some(in_tables)) => logged <= in_tables,
            (logged, _) => logged.is_some(),
        };
        let mut named = if is_logged { self.logged.next() } else { None };
        while let Some(Reverse(next)) = self.next.peek()
            && named.as_ref().is_none_or(|(named, _)| *named == next.prefix)
            && let Some(Reverse(Next { prefix, number, lasting, hiding })) = self.next.pop()
        {
            let (_, counts) = named.get_or_insert_with(|| (prefix, PrefixCounts::default()));
            *counts = counts.beside(PrefixCounts { lasting, hiding });
            let following = self.tables[number].next()?;
            self.next.extend(following.map(|name| Reverse(Next::of(name, number))));
        }
        Ok(named)
    }

    /// Whether the prefix has an item.
    fn has_item(&self, prefix: &[u8]) -> Result<bool> {
        let (keyspace, version) = (self.keyspace.clone(), self.pin.version());
        let mut items = Iter::over_prefix(&self.shared, keyspace, version, prefix, self.now_ms, None)?;
        Ok(items.next_key()?.is_some())
    }

    fn next_prefix(&mut self) -> Result<Option<Vec<u8>>> {
        while let Some((prefix, counts)) = self.next_named()? {
            if counts.is_live() || self.has_item(&prefix)? {
                return Ok(Some(prefix));
            }
        }
        Ok(None)
    }
}

impl Next {
    fn of(
        ListedName { prefix, counts: PrefixCounts { lasting, hiding } }: ListedName,
        number: usize,
    ) -> Self {
        Self { prefix, number, lasting, hiding }
    }
}

impl Iterator for Prefixes {
    type Item = Result<Vec<u8>>;

    fn next(&mut self) -> Option<Result<Vec<u8>>> {
        if self.is_over {
            return None;
        }
        let next = self.shared.check_open().and_then(|()| self.next_prefix());
        let next = next.map_err(|error| self.shared.closed_or(error)).transpose();
        self.is_over = !matches!(next, Some(Ok(_)));
        next
    }
}

impl FusedIterator for Prefixes {}

/// A section and the ranges of hashes where it is used: its table may cover several containers.
struct LiveSection {
    section: Arc<Section>,
    ranges: Vec<HashRange>,
}

/// The sections of all tables.
fn live_sections(version: &Version) -> Vec<LiveSection> {
    let mut sections: BTreeMap<(TableId, u64), LiveSection> = BTreeMap::new();
    for SectionRange { section, range } in version.body.streams_within(HashRange::ALL).into_iter().flatten() {
        let place = (section.file_number(), section.page_offset(0));
        let live = sections.entry(place).or_insert_with(|| LiveSection { section, ranges: Vec::new() });
        live.ranges.push(range);
    }
    sections.into_values().collect()
}

/// Adds the prefixes of a log store's items from `start` on. All its shards are locked at once, so that a batch is seen
/// as a whole.
fn gather(store: &LogStore, start: &[u8], logged: &mut BTreeMap<Vec<u8>, PrefixCounts>) -> Result<()> {
    let mut counts: BTreeMap<&[u8], PrefixCounts> = BTreeMap::new();
    let _no_writers: Vec<_> = store.shards().iter().map(|shard| shard.lock()).collect();
    for shard in store.shards() {
        for (_, _, offset) in shard.index().entries() {
            let item = store.segment.item_at(offset)?;
            if let Some(prefix) = store.hasher().prefix_of(item.key).filter(|&prefix| prefix >= start) {
                counts.entry(prefix).or_default().add(&item);
            }
        }
    }
    for (prefix, counts) in counts {
        match logged.get_mut(prefix) {
            Some(known) => *known = known.beside(counts),
            None => drop(logged.insert(prefix.to_vec(), counts)),
        }
    }
    Ok(())
}
