//! [`Level`]: the tables of a level below the youngest, by the containers over which they lie.

use std::sync::Arc;

use alluvium_base::{HashRange, KeyHash};

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

    /// The container that holds `hash`.
    #[inline]
    pub fn container(&self, hash: KeyHash) -> Option<&Container<PlacedTable>> {
        let high = hash.0;
        let index = self.containers.partition_point(|container| container.high < high);
        self.containers.get(index).filter(|container| container.low <= high)
    }

    /// Containers that reach into `low..=high`.
    pub fn within(&self, low: u128, high: u128) -> &[Container<PlacedTable>] {
        container::within(&self.containers, low, high)
    }

    /// The level with nothing but `table` over `low..=high`.
    pub fn with_replaced(&self, low: u128, high: u128, table: Option<PlacedTable>) -> Self {
        Self::from_containers(container::replaced(&self.containers, low, high, table))
    }

    /// The level with `table` over all else in `low..=high`.
    pub fn with_pushed(&self, low: u128, high: u128, table: &PlacedTable) -> Self {
        Self::from_containers(container::pushed(&self.containers, low, high, table))
    }

    /// All tables; one that lies over several containers comes with each of them.
    pub fn tables(&self) -> impl Iterator<Item = &PlacedTable> {
        self.containers.iter().flat_map(|container| &container.tables)
    }

    /// Items; a table that counts in part counts by its share of the range.
    pub fn items(&self) -> u64 {
        self.containers.iter().map(Container::items).sum::<f64>() as u64
    }

    /// Bytes of pages that count, about.
    pub fn bytes(&self) -> u64 {
        self.containers.iter().map(Container::bytes).sum::<f64>() as u64
    }

    /// Items in `low..=high`, about.
    pub fn items_within(&self, low: u128, high: u128) -> f64 {
        self.within(low, high).iter().map(|container| container.items_within(low, high)).sum()
    }

    /// Bytes of pages that hold items with leading hash bits in `low..=high`, about.
    pub fn bytes_within(&self, low: u128, high: u128) -> f64 {
        self.within(low, high).iter().map(|container| container.bytes_within(low, high)).sum()
    }

    /// Tables over one place, at most.
    pub fn runs(&self) -> usize {
        self.containers.iter().map(|container| container.tables.len()).max().unwrap_or(0)
    }

    /// What lies in `low..=high` as ascending sequences of parts of tables, the youngest first: what is in one
    /// is younger than what is in later ones over the same place.
    pub fn streams_within(&self, low: u128, high: u128) -> Vec<Vec<SectionRange>> {
        let containers = self.within(low, high);
        let runs = containers.iter().map(|container| container.tables.len()).max().unwrap_or(0);
        let stream = |run: usize| {
            let mut ranges: Vec<SectionRange> = Vec::new();
            for container in containers {
                let Some(table) = container.tables.get(run) else { continue };
                let (low, high) = (container.low.max(low), container.high.min(high));
                match ranges.last_mut() {
                    // A table over several containers is read in one go.
                    Some(last)
                        if Arc::ptr_eq(&last.section, &table.section)
                            && last.range.high.checked_add(1) == Some(low) =>
                    {
                        last.range.high = high;
                    }
                    _ => ranges.push(SectionRange {
                        section: table.section.clone(),
                        range: HashRange::new(low, high),
                    }),
                }
            }
            ranges
        };
        (0..runs).map(stream).collect()
    }

    /// Lets the filters leave memory of those tables for which that of `table`, which lies over them, answers.
    pub fn set_covered_by(&self, table: &PlacedTable) {
        let HashRange { low, high } = table.section.range();
        let below = self.within(low, high).iter().flat_map(|container| &container.tables);
        let covered = below.filter(|below| self.is_covered(below));
        covered.for_each(|below| below.section.set_covered());
    }

    /// Whether wherever the table lies the filter of another one answers for it.
    fn is_covered(&self, table: &PlacedTable) -> bool {
        let HashRange { low, high } = table.section.range();
        self.within(low, high).iter().all(|container| {
            let number = |other: &PlacedTable| other.file.number;
            let Some(depth) = container.tables.iter().position(|other| number(other) == number(table)) else {
                return true;
            };
            container.tables[..depth].iter().enumerate().any(|(above, head)| {
                let files = head.section.clustered().ok().flatten().map(|(files, _)| files);
                files.is_some_and(|files| files.get(depth - above) == Some(&number(table)))
            })
        })
    }

    /// Declares that the manifest no longer names those files over `low..=high` of `before` that lie nowhere in this
    /// level, which came from it by a change of that range.
    pub fn set_obsolete_since(&self, before: &Self, low: u128, high: u128) {
        for table in before.within(low, high).iter().flat_map(|container| &container.tables) {
            let HashRange { low: from, high: to } = table.section.range();
            let kept = self.within(from, to).iter().flat_map(|container| &container.tables);
            if !kept.into_iter().any(|kept| kept.file.number == table.file.number) {
                table.file.set_obsolete();
            }
        }
    }
}
