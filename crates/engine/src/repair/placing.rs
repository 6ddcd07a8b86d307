//! Determines the position of tables without a manifest: their directories tell level, range and log segments.
//!
//! The content of a level is older than that of the levels above it. A table is therefore superseded if a deeper level
//! has items from the table's newest segment or a later one: the table was merged down. In its own level it is
//! superseded by a table of a later file that has items from that segment, among others: that one was made from it. If
//! the plan changed, levels have this meaning only among tables made for one plan; a table of a later plan was made
//! from those of an earlier plan that contain its segments.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use alluvium_base::{HashRange, KeyspaceId, SegmentId, TableId};
use alluvium_model::LevelsPlan;

use crate::level::{Container, replaced};
use crate::manifest::{DatabaseState, Edit, PlacedTableState, RunState};
use crate::table::{Section, SegmentSpan};

/// A table of a level below the youngest.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Found {
    keyspace: KeyspaceId,
    level: usize,
    /// Number of plans that the keyspace had before the one with this level.
    plan_number: u16,
    file: TableId,
    range: HashRange,
    segments: SegmentSpan,
}

impl Found {
    fn of(state: &DatabaseState, file: TableId, section: &Section) -> Option<Self> {
        if !is_of_level(section) {
            return None;
        }
        let keyspace = section.keyspace();
        let last = state.keyspaces.get(&keyspace)?.body.levels.len();
        // Older files do not name the level: there was one of sorted layout, the last.
        let level = section.level().unwrap_or(last).clamp(1, last);
        let (plan_number, range, segments) = (section.plan_number(), section.range(), section.segments());
        Some(Self { keyspace, level, plan_number, file, range, segments })
    }

    /// Whether this table contains the items of the other one, as far as their ranges meet.
    fn supersedes(&self, other: &Self) -> bool {
        let newest = other.segments.newest;
        let is_made_of_it = self.file > other.file && self.segments.contains(newest);
        // Levels of different plans do not tell which is older.
        let is_merged_down = match self.plan_number.cmp(&other.plan_number) {
            Ordering::Less => false,
            Ordering::Equal if self.level == other.level => is_made_of_it,
            Ordering::Equal => self.level > other.level && self.segments.newest >= newest,
            Ordering::Greater => is_made_of_it,
        };
        self.keyspace == other.keyspace && is_merged_down
    }
}

/// Whether the section is a table of a level below the youngest.
fn is_of_level(section: &Section) -> bool {
    section.layout().is_ordered() && section.level() != Some(0)
}

/// `plan`, with as many levels as the sections name.
pub(super) fn plan_with_levels<'s>(
    plan: &LevelsPlan,
    sections: impl Iterator<Item = &'s Section>,
) -> LevelsPlan {
    let mut plan = plan.clone();
    let needed = sections.filter_map(|section| section.level()).max().map_or(0, |level| level + 1);
    while plan.levels.len() < needed {
        plan.levels.push(plan.levels[plan.levels.len() - 1]);
    }
    plan
}

/// Places the tables of the levels below the youngest.
pub(super) fn place_sorted(state: &mut DatabaseState, sections: &[(TableId, &Section)]) {
    let mut found: Vec<Found> =
        sections.iter().filter_map(|(file, section)| Found::of(state, *file, section)).collect();
    found.sort_by_key(|table| (table.segments.newest, table.file));
    let mut plan_numbers: BTreeMap<KeyspaceId, BTreeSet<u16>> = BTreeMap::new();
    for table in &found {
        plan_numbers.entry(table.keyspace).or_default().insert(table.plan_number);
    }
    for table in &found {
        let superseding = found.iter().filter(|other| other.supersedes(table));
        for range in without(table.range, superseding.map(|other| other.range)) {
            let Found { keyspace, level, file, .. } = *table;
            // In level 0, which means the last, tables of several plans are above each other in the order of their age.
            let level = if plan_numbers[&keyspace].len() > 1 { 0 } else { level };
            let edit = Edit::AddSorted { keyspace, file, range, level, over: true, repeats: 0.0, items: 0 };
            // The keyspace exists: it was created for this section if it was not known before.
            let _ = state.apply(&edit);
        }
    }
}

/// The runs of the youngest level, old to young, without the sections that were merged into the levels below.
pub(super) fn place_runs(state: &mut DatabaseState, sections: &[(TableId, &Section)]) {
    let mut segments: BTreeMap<(KeyspaceId, TableId), SegmentId> = BTreeMap::new();
    let mut runs: BTreeMap<(KeyspaceId, SegmentId, TableId), Vec<&Section>> = BTreeMap::new();
    for (file, section) in sections {
        let newest = section.segments().newest;
        if is_of_level(section) {
            segments.insert((section.keyspace(), *file), newest);
        } else {
            runs.entry((section.keyspace(), newest, *file)).or_default().push(section);
        }
    }
    for ((id, segment, number), sections) in runs {
        let Some(keyspace) = state.keyspaces.get_mut(&id) else { continue };
        let shard_bits = sections.iter().map(|section| shard_bits(section)).max().unwrap_or(0);
        let holds_it = |container: &&Container<PlacedTableState>| {
            let newest =
                |table: &PlacedTableState| segments.get(&(id, table.file)).copied().unwrap_or_default();
            container.tables.iter().any(|table| newest(table) >= segment)
        };
        let merged = |section: &Section| {
            let holding = keyspace.body.levels.iter().flatten().filter(holds_it);
            let left = without(section.range(), holding.map(|container| container.range));
            segment > SegmentId(0) && left.is_empty()
        };
        let live: BTreeSet<u32> = sections
            .into_iter()
            .filter(|section| !merged(section) && !section.is_given_back())
            .map(|section| shard_of(section, shard_bits))
            .collect();
        if !live.is_empty() {
            let dropped = (0..1 << shard_bits).filter(|shard| !live.contains(shard)).collect();
            keyspace.body.runs.push(RunState { file: number, shard_bits, repeats: 0.0, dropped });
        }
    }
}

/// Adds a table of which only the items can be read, in the ranges where the last level has no table. Where it has one,
/// that one is newer, since this table may never have been finished.
pub(super) fn place_in_gaps(last: &mut Vec<Container<PlacedTableState>>, file: TableId) {
    let gaps = without(HashRange::ALL, last.iter().map(|container| container.range));
    for range in gaps {
        *last = replaced(last, range, Some(PlacedTableState { file, repeats: 0.0 }));
    }
}

/// The number of bits such that the sections of a run divide the hash space into 2^`bits` equal parts.
fn shard_bits(section: &Section) -> u32 {
    let HashRange { low, high } = section.range();
    (high - low).leading_zeros()
}

fn shard_of(section: &Section, shard_bits: u32) -> u32 {
    if shard_bits == 0 { 0 } else { (section.range().low >> (128 - shard_bits)) as u32 }
}

/// The parts of a range outside all of the others.
fn without(range: HashRange, others: impl Iterator<Item = HashRange>) -> Vec<HashRange> {
    others.fold(vec![range], |places, other| {
        places.iter().flat_map(|place| place.without(other)).flatten().collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_a_range() {
        let range = HashRange::new;
        let left = |others: &[HashRange]| without(range(3, 9), others.iter().copied());
        assert_eq!(left(&[]), [range(3, 9)]);
        assert_eq!(left(&[range(0, 2), range(10, 12)]), [range(3, 9)]);
        assert_eq!(left(&[range(5, 6), range(9, 12)]), [range(3, 4), range(7, 8)]);
        assert_eq!(left(&[range(5, 6), range(0, 5)]), [range(7, 9)]);
        assert_eq!(left(&[range(5, 6), HashRange::ALL]), []);
    }

    #[test]
    fn deeper_and_later_tables_supersede() {
        let table = |level, file, oldest, newest| Found {
            keyspace: KeyspaceId(1),
            level,
            plan_number: 0,
            file,
            range: HashRange::new(0, 9),
            segments: SegmentSpan { oldest, newest },
        };
        let young = table(1, TableId(7), SegmentId(4), SegmentId(6));
        assert!(
            table(2, TableId(3), SegmentId(0), SegmentId(6)).supersedes(&young)
                && !table(2, TableId(9), SegmentId(0), SegmentId(3)).supersedes(&young)
        );
        assert!(
            table(1, TableId(8), SegmentId(2), SegmentId(9)).supersedes(&young),
            "made of it, among others"
        );
        assert!(!table(1, TableId(6), SegmentId(2), SegmentId(9)).supersedes(&young), "made before it");
        assert!(!table(1, TableId(8), SegmentId(7), SegmentId(9)).supersedes(&young), "lies over it");
        assert!(!table(1, TableId(8), SegmentId(7), SegmentId(6)).supersedes(&young), "was ingested over it");
        let later = |found: Found| Found { plan_number: 1, ..found };
        assert!(
            !later(table(2, TableId(8), SegmentId(7), SegmentId(9))).supersedes(&young),
            "lies over it, in a deeper level of another plan"
        );
        assert!(
            later(table(1, TableId(8), SegmentId(2), SegmentId(9))).supersedes(&young),
            "made of it for another plan"
        );
        assert!(
            !young.supersedes(&later(table(1, TableId(8), SegmentId(2), SegmentId(5)))),
            "was there before it"
        );
    }
}
