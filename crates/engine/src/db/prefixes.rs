//! [`Prefixes`]: the prefixes of a semi-sorted keyspace, in the order of their bytes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use super::keyspace::{Keyspace, KeyspaceShared};
use super::merged_items::streams;
use super::scan::Iter;
use super::shared::Shared;
use super::snapshot::KeyspaceSnapshot;
use crate::error::{Error, Result};
use crate::level::Version;
use crate::log::LogStore;
use crate::table::{ListedName, NameScanner, Section, SectionRange, is_lasting};

/// The prefixes that have items, each once, ascending by their bytes.
///
/// Those that have items during the whole listing are returned; of those that get their first or lose their last
/// meanwhile, some may be. A listing of a snapshot is exact.
#[derive(Debug)]
pub struct Prefixes {
    shared: Arc<Shared>,
    keyspace: Arc<KeyspaceShared>,
    version: Arc<Version>,
    /// When it began: items that expire later are there.
    now_ms: u64,
    /// Of the log, prefixes and whether all that is there of them are lasting items.
    logged: std::iter::Peekable<std::collections::btree_map::IntoIter<Vec<u8>, bool>>,
    tables: Vec<NameScanner>,
    /// The next name of each table that has one, with the number of the table.
    next: BinaryHeap<Reverse<(Vec<u8>, usize, bool)>>,
    is_over: bool,
}

impl Keyspace {
    /// The prefixes that have items, in the order of their bytes.
    ///
    /// Costs the pages of their names in every table, and for each prefix of which something was removed or expires
    /// lately or some time a look whether items are left: as much as the beginning of a scan of it. Holds the names of
    /// the prefixes in the log, and a page of names for each table at least.
    ///
    /// # Errors
    /// [`Error::NotSemiSorted`] and [`Error::PrefixesNotListed`].
    pub fn prefixes(&self) -> Result<Prefixes> {
        self.prefixes_from([])
    }

    /// The same from a prefix on, which need not be there. Costs about log2 of its pages of names in reads for each
    /// table before the first prefix.
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
    /// The prefixes that had items, in the order of their bytes, as [`Keyspace::prefixes`] has them.
    ///
    /// # Errors
    /// [`Error::NotSemiSorted`] and [`Error::PrefixesNotListed`].
    pub fn prefixes(&self) -> Result<Prefixes> {
        self.prefixes_from([])
    }

    /// The same from a prefix on.
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
            next.extend(
                table.next()?.map(|ListedName { prefix, is_live }| Reverse((prefix, number, is_live))),
            );
            tables.push(table);
        }
        let (shared, logged) = (shared.clone(), logged.into_iter().peekable());
        Ok(Self { shared, keyspace, version, now_ms, logged, tables, next, is_over: false })
    }

    /// The next prefix of which there is anything, and whether that are lasting items only.
    fn next_named(&mut self) -> Result<Option<(Vec<u8>, bool)>> {
        let in_tables = self.next.peek().map(|Reverse((prefix, ..))| prefix);
        let is_logged = match (self.logged.peek(), in_tables) {
            (None, None) => return Ok(None),
            (Some((logged, _)), Some(in_tables)) => logged <= in_tables,
            (logged, _) => logged.is_some(),
        };
        let mut named: Option<(Vec<u8>, bool)> = if is_logged { self.logged.next() } else { None };
        while let Some(Reverse((prefix, ..))) = self.next.peek()
            && named.as_ref().is_none_or(|(named, _)| named == prefix)
            && let Some(Reverse((prefix, number, is_live))) = self.next.pop()
        {
            let name = named.get_or_insert((prefix, true));
            name.1 &= is_live;
            let following = self.tables[number].next()?;
            self.next.extend(following.map(|name| Reverse((name.prefix, number, name.is_live))));
        }
        Ok(named)
    }

    /// Whether the prefix has an item.
    fn has_item(&self, prefix: &[u8]) -> Result<bool> {
        let (keyspace, version) = (self.keyspace.clone(), self.version.clone());
        let mut items = Iter::over_prefix(&self.shared, keyspace, version, prefix, self.now_ms)?;
        Ok(items.next_key()?.is_some())
    }

    fn next_prefix(&mut self) -> Result<Option<Vec<u8>>> {
        while let Some((prefix, is_live)) = self.next_named()? {
            if is_live || self.has_item(&prefix)? {
                return Ok(Some(prefix));
            }
        }
        Ok(None)
    }
}

impl Iterator for Prefixes {
    type Item = Result<Vec<u8>>;

    fn next(&mut self) -> Option<Result<Vec<u8>>> {
        if self.is_over {
            return None;
        }
        let next = self.next_prefix().transpose();
        self.is_over = !matches!(next, Some(Ok(_)));
        next
    }
}

impl std::iter::FusedIterator for Prefixes {}

/// A section and the ranges of hashes where it counts: its table may lie over several containers.
struct LiveSection {
    section: Arc<Section>,
    ranges: Vec<(u128, u128)>,
}

/// The sections of all tables.
fn live_sections(version: &Version) -> Vec<LiveSection> {
    let mut sections: BTreeMap<(u64, u64), LiveSection> = BTreeMap::new();
    for SectionRange { section, low, high } in streams(version, 0, u128::MAX).into_iter().flatten() {
        let place = (section.file_number(), section.page_offset(0));
        let live = sections.entry(place).or_insert_with(|| LiveSection { section, ranges: Vec::new() });
        live.ranges.push((low, high));
    }
    sections.into_values().collect()
}

/// Adds the prefixes of a log store's items from `start` on. With all its shards held at once, so that a batch is seen
/// as a whole.
fn gather(store: &LogStore, start: &[u8], logged: &mut BTreeMap<Vec<u8>, bool>) -> Result<()> {
    let _no_writers: Vec<_> = store.shards().iter().map(|shard| shard.lock()).collect();
    for shard in store.shards() {
        for (_, _, offset) in shard.index().entries() {
            let item = store.segment.item_at(offset)?;
            let Some(prefix) = store.hasher().prefix_of(item.key).filter(|&prefix| prefix >= start) else {
                continue;
            };
            match logged.get_mut(prefix) {
                Some(is_live) => *is_live &= is_lasting(&item),
                None => drop(logged.insert(prefix.to_vec(), is_lasting(&item))),
            }
        }
    }
    Ok(())
}
