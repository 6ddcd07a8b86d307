//! [`Level`]: the tables of a level below the youngest, by container.

use std::sync::Arc;

use alluvium_base::{HashRange, KeyHash, TableId};

use super::container::{self, Container};
use super::placed_table::PlacedTable;
use crate::table::SectionRange;

/// A level below the youngest: ascending, disjoint containers. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Level {
    containers: Arc<[Container<PlacedTable>]>,
}

impl Level {
    pub fn from_containers(containers: Vec<Container<PlacedTable>>) -> Self {
        Self { containers: containers.into() }
    }

    /// Ascending and disjoint.
    pub fn containers(&self) -> &[Container<PlacedTable>] {
        &self.containers
    }

    /// The container that covers `hash`.
    #[inline]
    pub fn container(&self, hash: KeyHash) -> Option<&Container<PlacedTable>> {
        let index = self.containers.partition_point(|container| container.range.high < hash.0);
        self.containers.get(index).filter(|container| container.range.low <= hash.0)
    }

    /// The containers that overlap `range`.
    pub fn within(&self, range: HashRange) -> &[Container<PlacedTable>] {
        container::within(&self.containers, range)
    }

    /// The level with `table` as its only table over `range`.
    pub fn with_replaced(&self, range: HashRange, table: Option<PlacedTable>) -> Self {
        Self::from_containers(container::replaced(&self.containers, range, table))
    }

    /// The level with `table` on top of everything else in `range`.
    pub fn with_pushed(&self, range: HashRange, table: &PlacedTable) -> Self {
        Self::from_containers(container::pushed(&self.containers, range, table))
    }

    /// The level without the table of this number.
    pub fn without(&self, number: TableId) -> Self {
        let mut containers = self.containers.to_vec();
        for container in &mut containers {
            container.tables.retain(|table| table.file.id != number);
        }
        containers.retain(|container| !container.tables.is_empty());
        Self::from_containers(containers)
    }

    /// The table that is older than all others of the level: below every other one in each of its containers.
    pub fn oldest(&self) -> Option<&PlacedTable> {
        let is_lowest = |table: &&PlacedTable| {
            self.within(table.section.range()).iter().all(|container| {
                let place = container.tables.iter().position(|other| other.file.id == table.file.id);
                place.is_none_or(|place| place + 1 == container.tables.len())
            })
        };
        let lowest = self.containers.iter().filter_map(|container| container.tables.last());
        lowest.filter(is_lowest).min_by_key(|table| (table.section.segments().newest, table.file.id))
    }

    /// All tables. A table that covers several containers is listed once for each.
    pub fn tables(&self) -> impl Iterator<Item = &PlacedTable> {
        self.containers.iter().flat_map(|container| &container.tables)
    }

    /// Items, an estimate: a table used only in part counts by its share of the range.
    pub fn items(&self) -> u64 {
        self.containers.iter().map(Container::items).sum::<f64>() as u64
    }

    /// Estimated bytes of the pages in use.
    pub fn bytes(&self) -> u64 {
        self.containers.iter().map(Container::bytes).sum::<f64>() as u64
    }

    /// Estimated items in `range`.
    pub fn items_within(&self, range: HashRange) -> f64 {
        self.within(range).iter().map(|container| container.items_within(range)).sum()
    }

    /// Estimated bytes of the pages that contain items with hashes in `range`.
    pub fn bytes_within(&self, range: HashRange) -> f64 {
        self.within(range).iter().map(|container| container.bytes_within(range)).sum()
    }

    /// Maximum number of tables over one container.
    pub fn runs(&self) -> usize {
        self.containers.iter().map(|container| container.tables.len()).max().unwrap_or(0)
    }

    /// The content of `range` as ascending sequences of parts of tables, the youngest first: items in one are younger
    /// than items at the same hashes in later ones.
    pub fn streams_within(&self, range: HashRange) -> Vec<Vec<SectionRange>> {
        let containers = self.within(range);
        let runs = containers.iter().map(|container| container.tables.len()).max().unwrap_or(0);
        let stream = |run: usize| {
            let mut ranges: Vec<SectionRange> = Vec::new();
            for container in containers {
                let Some(table) = container.tables.get(run) else { continue };
                let Some(range) = container.range.clip(range) else { continue };
                match ranges.last_mut() {
                    // A table over several containers is read in one piece.
                    Some(last) if Arc::ptr_eq(&last.section, &table.section) && last.range.meets(range) => {
                        last.range.high = range.high;
                    }
                    _ => ranges.push(SectionRange { section: table.section.clone(), range }),
                }
            }
            ranges
        };
        (0..runs).map(stream).collect()
    }

    /// Releases the filters in memory of those tables below `table` for which the filter of `table` answers.
    pub fn set_covered_by(&self, table: &PlacedTable) {
        let below = self.within(table.section.range()).iter().flat_map(|container| &container.tables);
        let covered = below.filter(|below| self.is_covered(below));
        covered.for_each(|below| below.section.set_covered());
    }

    /// Whether the filter of another table answers for this one everywhere in its range.
    fn is_covered(&self, table: &PlacedTable) -> bool {
        self.within(table.section.range()).iter().all(|container| {
            let number = |other: &PlacedTable| other.file.id;
            let Some(depth) = container.tables.iter().position(|other| number(other) == number(table)) else {
                return true;
            };
            container.tables[..depth].iter().enumerate().any(|(above, head)| {
                let files = head.section.clustered().ok().flatten().map(|(files, _)| files);
                files.is_some_and(|files| files.get(depth - above) == Some(&number(table)))
            })
        })
    }

    /// Declares that the manifest no longer names those files over `range` of `before` that are not part of this level,
    /// which was made from `before` by a change of that range.
    pub fn set_obsolete_since(&self, before: &Self, range: HashRange) {
        for table in before.within(range).iter().flat_map(|container| &container.tables) {
            let kept = self.within(table.section.range()).iter().flat_map(|container| &container.tables);
            if !kept.into_iter().any(|kept| kept.file.id == table.file.id) {
                table.file.set_obsolete();
            }
        }
    }
}
