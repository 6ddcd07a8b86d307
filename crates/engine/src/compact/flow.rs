//! [`Flow`]: the sources of a merge's items, other than young ones that it gathers, and their destination.

use std::sync::Arc;

use alluvium_base::{HashRange, SegmentId};
use alluvium_model::{Growth, LevelsPlan};

use crate::level::Levels;
use crate::table::{Section, SectionRange, SegmentSpan};

/// The sources and the destination of a merge, for any part of the hash space.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// Sections of sorted layout in runs of the youngest level: ascending within each run, the youngest run first. They
    /// stay until the merge is done.
    pub runs: Vec<Vec<Arc<Section>>>,
    /// Levels whose content is merged wherever new tables are made, young to old.
    pub from: Vec<usize>,
    /// The level of the new tables.
    pub to: usize,
    /// Whether new tables are put above the content of that level. Otherwise they replace it.
    pub pushes: bool,
    /// The items of this prefix are dropped.
    pub left_out: Option<Vec<u8>>,
    /// Whether new tables change what users find without a write to the log: then their versions begin an epoch.
    pub changes_items: bool,
}

/// The input of a merge in one part of the hash space.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    /// Ascending sequences of parts of tables, the youngest first.
    pub streams: Vec<Vec<SectionRange>>,
    /// The number of those that belong to runs.
    pub of_runs: usize,
    /// Whether the new table is above older items: then tombstones are kept.
    pub hides: bool,
    /// Tables below the new one that cover the whole range have everything that segments up to this one had.
    pub newest_below: SegmentId,
}

impl Flow {
    /// Moves items into a level: above its content if it tiers.
    pub fn into_level(plan: &LevelsPlan, to: usize) -> Self {
        let pushes = matches!(plan.levels[to].growth, Growth::Tiering { .. });
        Self { to, pushes, ..Self::default() }
    }

    /// Moves items of a bulk ingest into a level.
    pub fn of_ingest(plan: &LevelsPlan, to: usize) -> Self {
        Self { changes_items: true, ..Self::into_level(plan, to) }
    }

    /// Merges everything in a part of all levels into one table of the last one, without the items of a prefix.
    pub fn without_prefix(last_level: usize, prefix: &[u8]) -> Self {
        let from = (1..last_level).collect();
        let left_out = Some(prefix.to_vec());
        Self { from, to: last_level, left_out, changes_items: true, ..Self::default() }
    }

    /// Merges everything in a part of a level into one table.
    pub fn within_level(level: usize) -> Self {
        Self { to: level, ..Self::default() }
    }

    /// The same, but the content of the destination is merged into the new tables, so that obsolete versions there are
    /// dropped.
    pub fn collecting(self) -> Self {
        Self { pushes: false, ..self }
    }

    /// Whether the merge counts how many items of new tables are above older ones. It does in levels that tier, if
    /// older items may be below a table.
    pub fn counts_old_values(&self, plan: &LevelsPlan) -> bool {
        let tiers = matches!(plan.levels[self.to].growth, Growth::Tiering { .. });
        tiers && self.hidden_from() < plan.levels.len()
    }

    /// The youngest level in which a new table may hide items.
    pub fn hidden_from(&self) -> usize {
        if self.pushes { self.to } else { self.to + 1 }
    }

    /// The input of the merge in `range` of these levels.
    pub fn inputs(&self, levels: &Levels, range: HashRange) -> Inputs {
        let within = |section: &Arc<Section>| SectionRange::of(section, range);
        let runs = self.runs.iter().map(|sections| sections.iter().filter_map(within).collect::<Vec<_>>());
        let mut streams: Vec<_> = runs.filter(|ranges| !ranges.is_empty()).collect();
        let of_runs = streams.len();
        streams.extend(self.from.iter().flat_map(|&from| levels.level(from).streams_within(range)));
        if !self.pushes {
            streams.extend(levels.level(self.to).streams_within(range));
        }
        let lies_over = self.pushes && !levels.level(self.to).within(range).is_empty();
        let hides = lies_over || levels.has_tables_below(self.to, range);
        let below = (self.hidden_from().max(1)..=levels.last_level())
            .flat_map(|level| levels.level(level).streams_within(range));
        let newest_below = below
            .flatten()
            .filter(|below| {
                below.section.range().low <= range.low && range.high <= below.section.range().high
            })
            .map(|below| below.section.segments().newest)
            .max()
            .unwrap_or_default();
        Inputs { of_runs, streams, hides, newest_below }
    }
}

impl Inputs {
    /// Approximate number of items, and of bytes that they use in pages.
    pub fn size(&self) -> (f64, f64) {
        let mut size = (0.0, 0.0);
        for SectionRange { section, range } in self.streams.iter().flatten() {
            let share = section.share_within(*range);
            size.0 += section.item_count() as f64 * share;
            size.1 += section.used_bytes() as f64 * share;
        }
        size
    }

    /// The log segments from which the items come.
    pub fn segments(&self) -> SegmentSpan {
        let sections = self.streams.iter().flatten().map(|range| range.section.segments());
        sections.fold(SegmentSpan::EMPTY, SegmentSpan::join)
    }

    /// `segments` without those whose items are all in tables below.
    pub fn above_older(&self, segments: SegmentSpan) -> SegmentSpan {
        match self.newest_below {
            SegmentId(0) => segments,
            newest => SegmentSpan { oldest: segments.oldest.max(newest.next()), ..segments },
        }
    }
}
