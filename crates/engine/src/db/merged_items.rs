//! [`MergedItems`]: the items of a version in a range of hashes, in order.

use std::sync::Arc;

use alluvium_base::{HashRange, KeyHash};

use super::logged_items::LoggedItems;
use crate::core::{MemoryBudget, Shared};
use crate::error::Result;
use crate::item::{EncodedItem, Item};
use crate::level::{Run, Version};
use crate::merge::{Ascending, PullMerge, YoungCursor, YoungItems, scan_streams};
use crate::table::{Layout, Section, SectionRange, SectionScanner};

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
}

impl Ascending for TableItems {
    fn advance(&mut self) -> Result<bool> {
        match self {
            Self::Read(scanner) => Ok(scanner.advance()?),
            Self::Sorted(cursor) => cursor.advance(),
        }
    }

    fn current_encoded(&self) -> Option<(KeyHash, EncodedItem<'_>)> {
        match self {
            Self::Read(scanner) => scanner.current_encoded(),
            Self::Sorted(cursor) => cursor.current_encoded(),
        }
    }
}

impl MergedItems {
    /// All items of the version of a semi-sorted keyspace in `range`: those of one prefix, or all. Reads ahead.
    pub fn of(shared: &Shared, version: &Version, budget: &MemoryBudget, range: HashRange) -> Result<Self> {
        let logged = LoggedItems::of(version, range)?;
        let streams = streams(version, range);
        let read_bytes = budget.read_bytes_each(streams.len());
        let mut scanners = scan_streams(&*shared.storage, &streams, read_bytes)?;
        SectionScanner::begin_together(&*shared.storage, &mut scanners)?;
        let tables = scanners.into_iter().map(|scanner| TableItems::Read(Box::new(scanner)));
        Ok(Self { logged, tables: PullMerge::new(tables.collect())? })
    }

    /// The items of the version in the narrow `range`, of which perhaps only the beginning is needed: reads
    /// `read_bytes` at a time, on demand. `sorted` returns the items of a run's section in which they are scattered, at
    /// least those in the range.
    pub fn near(
        shared: &Shared,
        version: &Version,
        range: HashRange,
        read_bytes: usize,
        sorted: impl Fn(&Arc<Section>) -> Result<Arc<YoungItems>>,
    ) -> Result<Self> {
        let logged = LoggedItems::of(version, range)?;
        // In the order of their age, each with a scanner or a cursor.
        let mut cursors = Vec::new();
        let mut scanners = Vec::new();
        let mut add_ranges =
            |ranges: &[SectionRange], cursors: &mut Vec<Option<YoungCursor>>| -> Result<()> {
                if !ranges.is_empty() {
                    scanners.push(SectionRange::scanner_of(ranges, read_bytes)?);
                    cursors.push(None);
                }
                Ok(())
            };
        for run in &version.runs {
            let (slots, ranges) = parts_of_run(run, range);
            for section in slots {
                cursors.push(Some(YoungCursor::new(sorted(section)?, range)));
            }
            add_ranges(&ranges, &mut cursors)?;
        }
        for ranges in version.streams_within(range) {
            add_ranges(&ranges, &mut cursors)?;
        }
        SectionScanner::begin_together(&*shared.storage, &mut scanners)?;
        let mut scanners = scanners.into_iter();
        let tables = cursors.into_iter().filter_map(|cursor| match cursor {
            Some(cursor) => Some(TableItems::Sorted(cursor)),
            None => scanners.next().map(|scanner| TableItems::Read(Box::new(scanner))),
        });
        Ok(Self { logged, tables: PullMerge::new(tables.collect())? })
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

/// Whether the items of a narrow range of hashes may be anywhere in a section of a run. They may if the items are in
/// the order of slots. If they are in buckets, they may be in any page of a group, and a run's section has few groups.
pub(super) fn is_scattered(section: &Section) -> bool {
    matches!(section.layout(), Layout::Hash | Layout::Bucketed)
}

/// The sections of a run that overlap `range`: those whose items are scattered, and parts of the others.
fn parts_of_run(run: &Run, range: HashRange) -> (Vec<&Arc<Section>>, Vec<SectionRange>) {
    let sections = run.sections[range.parts(run.shard_bits)].iter().flatten().map(|section| &section.section);
    let (slots, ordered): (Vec<_>, Vec<_>) = sections.partition(|section| is_scattered(section));
    (slots, ordered.into_iter().filter_map(|section| SectionRange::of(section, range)).collect())
}

/// The content of runs and levels in `range`, young to old.
pub(super) fn streams(version: &Version, range: HashRange) -> Vec<Vec<SectionRange>> {
    let of_run = |run: &Arc<Run>| {
        let sections = run.sections.iter().flatten();
        sections.filter_map(|section| SectionRange::of(&section.section, range)).collect::<Vec<_>>()
    };
    let runs = version.runs.iter().map(of_run).filter(|ranges| !ranges.is_empty());
    runs.chain(version.streams_within(range)).collect()
}
