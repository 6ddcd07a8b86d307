//! [`Flow`]: where a merge's items come from, besides young ones that it gathers, and where they go.

use std::sync::Arc;

use alluvium_base::HashRange;
use alluvium_model::{Growth, Plan};

use super::level_table::level_spec;
use crate::level::Version;
use crate::table::{Section, SectionRange, SegmentSpan};

/// From where to where a merge carries items, whatever part of the hash space.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// Sections of sorted layout in runs of the youngest level: each run's ascending, the youngest run first. They stay
    /// until the merge is done.
    pub runs: Vec<Vec<Arc<Section>>>,
    /// Levels that give up what they have where new tables come to be, young to old.
    pub from: Vec<usize>,
    /// The level of the new tables.
    pub to: usize,
    /// Whether new tables lie over what that level has; else they take its place.
    pub pushes: bool,
    /// The items of this prefix end here.
    pub left_out: Option<Vec<u8>>,
    /// Whether new tables change what users find, without a write to the log: their versions begin an epoch.
    pub changes_items: bool,
}

/// What is merged into one part of the hash space.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    /// Ascending sequences of parts of tables, the youngest first.
    pub streams: Vec<Vec<SectionRange>>,
    /// So many of them are of runs.
    pub of_runs: usize,
    /// Whether something older lies below the new table: then tombstones stay.
    pub hides: bool,
}

impl Flow {
    /// Carries items into a level: on top of what it has where it tiers.
    pub fn into_level(plan: &Plan, to: usize) -> Self {
        let pushes = matches!(level_spec(plan, to).growth, Growth::Tiering { .. });
        Self { to, pushes, ..Self::default() }
    }

    /// Carries items of a bulk ingest into a level.
    pub fn of_ingest(plan: &Plan, to: usize) -> Self {
        Self { changes_items: true, ..Self::into_level(plan, to) }
    }

    /// Merges what lies over a part of all levels into one table of the last one, without the items of a prefix.
    pub fn without_prefix(last_level: usize, prefix: &[u8]) -> Self {
        let from = (1..last_level).collect();
        let left_out = Some(prefix.to_vec());
        Self { from, to: last_level, left_out, changes_items: true, ..Self::default() }
    }

    /// Merges what lies over a part of a level into one table.
    pub fn within_level(level: usize) -> Self {
        Self { to: level, ..Self::default() }
    }

    /// The same, but what the level has is merged into the new tables, and so the old values there end.
    pub fn collecting(self) -> Self {
        Self { pushes: false, ..self }
    }

    /// Whether it is counted how many items of new tables lie over older ones: in levels that tier, as far as anything
    /// older may lie under a table.
    pub fn counts_old_values(&self, plan: &Plan) -> bool {
        let Plan::Levels { levels, .. } = plan else { return false };
        let tiers = matches!(level_spec(plan, self.to).growth, Growth::Tiering { .. });
        tiers && self.hidden_from() < levels.len()
    }

    /// The youngest level in which a new table may hide anything.
    pub fn hidden_from(&self) -> usize {
        if self.pushes { self.to } else { self.to + 1 }
    }

    /// What is merged in `range` of the version.
    pub fn inputs(&self, version: &Version, range: HashRange) -> Inputs {
        let within = |section: &Arc<Section>| SectionRange::of(section, range);
        let runs = self.runs.iter().map(|sections| sections.iter().filter_map(within).collect::<Vec<_>>());
        let mut streams: Vec<_> = runs.filter(|ranges| !ranges.is_empty()).collect();
        let of_runs = streams.len();
        streams.extend(self.from.iter().flat_map(|&from| version.level(from).streams_within(range)));
        if !self.pushes {
            streams.extend(version.level(self.to).streams_within(range));
        }
        let lies_over = self.pushes && !version.level(self.to).within(range).is_empty();
        let hides = lies_over || version.lies_below(self.to, range);
        Inputs { of_runs, streams, hides }
    }
}

impl Inputs {
    /// Items and bytes of the pages that they use, about.
    pub fn size(&self) -> (f64, f64) {
        let mut size = (0.0, 0.0);
        for SectionRange { section, range } in self.streams.iter().flatten() {
            let share = section.share_within(*range);
            size.0 += section.item_count() as f64 * share;
            size.1 += section.used_bytes() as f64 * share;
        }
        size
    }

    /// The log segments that items are from.
    pub fn segments(&self) -> SegmentSpan {
        let sections = self.streams.iter().flatten().map(|range| range.section.segments());
        sections.fold(SegmentSpan::EMPTY, SegmentSpan::join)
    }
}
