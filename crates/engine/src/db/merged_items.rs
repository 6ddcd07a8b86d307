//! [`MergedItems`]: the items of a version in a range of hashes, in order.

use std::sync::Arc;

use alluvium_base::{HashRange, KeyHash};

use super::group::GroupItems;
use super::logged_items::LoggedItems;
use crate::core::{MemoryBudget, Shared};
use crate::error::Result;
use crate::item::{EncodedItem, Item};
use crate::level::{Source, Version};
use crate::merge::{Ascending, PullMerge, YoungCursor, YoungItems, scan_streams};
use crate::table::{Section, SectionRange, SectionScanner};

/// The newest items of all keys whose hashes are in a range, tombstones included. The offsets of the log's items are
/// collected at once; items of tables are read as they are needed.
#[derive(Debug)]
pub(super) struct MergedItems {
    logged: LoggedItems,
    tables: PullMerge<TableItems>,
}

/// Items of a table, or of several one after the other.
#[derive(Debug)]
enum TableItems {
    Read(Box<SectionScanner>),
    /// Items of a section in which they are scattered.
    Sorted(YoungCursor),
    /// Items of a row.
    Group(GroupItems),
    /// What is left of a merge.
    Rest {
        merge: Box<PullMerge<TableItems>>,
        has_begun: bool,
    },
}

impl Ascending for TableItems {
    fn advance(&mut self) -> Result<bool> {
        match self {
            Self::Read(scanner) => Ok(scanner.advance()?),
            Self::Sorted(cursor) => cursor.advance(),
            Self::Group(items) => items.advance(),
            Self::Rest { merge, has_begun } => {
                // It is at its first item already.
                if std::mem::replace(has_begun, true) {
                    merge.advance()?;
                }
                Ok(merge.current().is_some())
            }
        }
    }

    fn current_encoded(&self) -> Option<(KeyHash, EncodedItem<'_>)> {
        match self {
            Self::Read(scanner) => scanner.current_encoded(),
            Self::Sorted(cursor) => cursor.current_encoded(),
            Self::Group(items) => items.current_encoded(),
            Self::Rest { merge, .. } => merge.current(),
        }
    }
}

impl MergedItems {
    /// All items of the version of a semi-sorted keyspace in `range`: those of one prefix, or all. Reads ahead.
    pub fn of(shared: &Shared, version: &Version, budget: &MemoryBudget, range: HashRange) -> Result<Self> {
        let logged = LoggedItems::of(version, range)?;
        let streams = version.body.streams_within(range);
        let read_bytes = budget.read_bytes_each(streams.len());
        let mut scanners = scan_streams(&*shared.storage, &streams, read_bytes)?;
        SectionScanner::begin_together(&*shared.storage, &mut scanners)?;
        let tables = scanners.into_iter().map(|scanner| TableItems::Read(Box::new(scanner)));
        Ok(Self { logged, tables: PullMerge::new(tables.collect())? })
    }

    /// The items of the version in the narrow `range`, of which perhaps only the beginning is needed: reads
    /// `read_bytes` at a time, on demand. `chained` are the items of the chains, and `sorted` returns those of a run's
    /// section in which they are scattered, at least those in the range.
    pub fn near(
        shared: &Shared,
        version: &Version,
        range: HashRange,
        read_bytes: usize,
        chained: Option<Arc<YoungItems>>,
        sorted: impl Fn(&Arc<Section>) -> Result<Arc<YoungItems>>,
    ) -> Result<Self> {
        let logged = LoggedItems::of(version, range)?;
        // In the order of their age, each with a scanner or a cursor.
        let mut cursors = Vec::new();
        cursors.extend(chained.map(|items| Some(YoungCursor::new(items, range))));
        let mut scanners = Vec::new();
        for source in version.body.sources_within(range) {
            match source {
                Source::Scattered(section) => cursors.push(Some(YoungCursor::new(sorted(section)?, range))),
                Source::Ordered(ranges) if ranges.is_empty() => {}
                Source::Ordered(ranges) => {
                    scanners.push(SectionRange::scanner_of(&ranges, read_bytes)?);
                    cursors.push(None);
                }
            }
        }
        SectionScanner::begin_together(&*shared.storage, &mut scanners)?;
        let mut scanners = scanners.into_iter();
        let tables = cursors.into_iter().filter_map(|cursor| match cursor {
            Some(cursor) => Some(TableItems::Sorted(cursor)),
            None => scanners.next().map(|scanner| TableItems::Read(Box::new(scanner))),
        });
        Ok(Self { logged, tables: PullMerge::new(tables.collect())? })
    }

    /// The items of a prefix, whose hashes are in `range`: `group` has those of the tables.
    pub fn of_group(version: &Version, range: HashRange, group: GroupItems) -> Result<Self> {
        let tables = PullMerge::new(vec![TableItems::Group(group)])?;
        Ok(Self { logged: LoggedItems::of(version, range)?, tables })
    }

    /// Whether the next item or a later one comes from the log.
    pub fn has_logged(&self) -> bool {
        self.logged.hash().is_some()
    }

    /// Appends the encoded items of the tables to `encoded` and passes them, until the end or until there are more
    /// than `bytes_max` bytes. Returns whether it was the end. Tombstones are passed over: nothing older is below.
    pub fn take_tables(&mut self, encoded: &mut Vec<u8>, bytes_max: usize) -> Result<bool> {
        while let Some((_, item)) = self.tables.current() {
            if encoded.len() > bytes_max {
                return Ok(false);
            }
            if !item.item.is_tombstone() {
                encoded.extend_from_slice(item.bytes);
            }
            self.tables.advance()?;
        }
        Ok(encoded.len() <= bytes_max)
    }

    /// Puts items that were taken before those that are left.
    pub fn put_back(&mut self, group: GroupItems) -> Result<()> {
        let rest = std::mem::replace(&mut self.tables, PullMerge::new(Vec::new())?);
        let rest = TableItems::Rest { merge: Box::new(rest), has_begun: false };
        self.tables = PullMerge::new(vec![TableItems::Group(group), rest])?;
        Ok(())
    }

    /// The hash of the next item.
    pub fn next_hash(&self) -> Option<KeyHash> {
        let in_tables = self.tables.current().map(|(hash, _)| hash);
        self.logged.hash().into_iter().chain(in_tables).min()
    }

    /// Calls `visit` with the next item; returns `false` behind the last.
    pub fn step(&mut self, visit: impl FnOnce(KeyHash, &Item<'_>)) -> Result<bool> {
        let in_tables = self.tables.current();
        let Some((hash, item)) = self.logged.current()? else {
            let Some((hash, encoded)) = in_tables else { return Ok(false) };
            visit(hash, &encoded.item);
            self.tables.advance()?;
            return Ok(true);
        };
        let order = in_tables.map_or(std::cmp::Ordering::Less, |(table_hash, encoded)| {
            hash.cmp(&table_hash).then_with(|| item.key.cmp(encoded.item.key))
        });
        if order.is_gt() {
            if let Some((hash, encoded)) = in_tables {
                visit(hash, &encoded.item);
            }
            self.tables.advance()?;
            return Ok(true);
        }
        visit(hash, &item);
        self.logged.advance();
        if order.is_eq() {
            self.tables.advance()?;
        }
        Ok(true)
    }
}
