//! [`Container`]: a part of the key space with the tables that a level has there, and where merges cut their tables.
//!
//! The rules are those of the engine's `level/container.rs` and `compact/cut.rs`, for keys that are distributed evenly.

use std::ops::Range;
use std::rc::Rc;

use alluvium_model::policy::{Shape, staggered};
use alluvium_model::{Growth, LevelSpec};

/// Number of key positions: keys are 32-bit numbers.
pub(super) const POSITIONS: u64 = 1 << 32;

/// A record: its key's position, and whether it deletes.
pub(super) type Record = (u32, bool);

/// How large merges make tables, and the bytes of a record in them.
#[derive(Clone, Copy, Debug)]
pub struct TableBytes {
    /// Bytes of a record.
    pub record: f64,
    /// Approximate minimum bytes of a table below the youngest level.
    pub min: f64,
    /// Approximate maximum.
    pub max: f64,
}

impl Default for TableBytes {
    /// Those of the engine, for records of 116 bytes.
    fn default() -> Self {
        Self { record: 116.0, min: f64::from(1 << 20), max: f64::from(32 << 20) }
    }
}

/// A table below the youngest level, sorted by key.
#[derive(Debug)]
pub(super) struct Table {
    pub range: Range<u64>,
    pub records: Vec<Record>,
    /// Share of the records that hide older ones.
    pub repeats: f64,
}

/// A part of the key space; its tables are listed from young to old.
#[derive(Clone, Debug)]
pub(super) struct Container {
    pub range: Range<u64>,
    pub tables: Vec<Rc<Table>>,
}

impl Table {
    /// The records in a part of the key space.
    pub fn within(&self, range: &Range<u64>) -> &[Record] {
        let before = |end: u64| self.records.partition_point(|&(key, _)| u64::from(key) < end);
        &self.records[before(range.start)..before(range.end)]
    }

    /// The estimate of the engine, which knows only how many records a table has.
    fn records_within(&self, range: &Range<u64>) -> f64 {
        let overlap = range.end.min(self.range.end).saturating_sub(range.start.max(self.range.start));
        self.records.len() as f64 * overlap as f64 / len(&self.range)
    }
}

impl Container {
    pub fn records(&self) -> f64 {
        self.records_within(&self.range)
    }

    fn records_within(&self, range: &Range<u64>) -> f64 {
        let range = clip(&self.range, range);
        self.tables.iter().map(|table| table.records_within(&range)).sum()
    }

    pub fn obsolete(&self) -> f64 {
        self.tables.iter().map(|table| table.records_within(&self.range) * table.repeats).sum()
    }

    fn clipped(&self, range: Range<u64>) -> Option<Self> {
        let range = clip(&self.range, &range);
        (!range.is_empty()).then(|| Self { range, tables: self.tables.clone() })
    }
}

pub(super) fn len(range: &Range<u64>) -> f64 {
    (range.end - range.start) as f64
}

fn clip(one: &Range<u64>, other: &Range<u64>) -> Range<u64> {
    one.start.max(other.start)..one.end.min(other.end)
}

/// The containers that overlap `range`.
pub(super) fn within<'a>(level: &'a [Container], range: &Range<u64>) -> &'a [Container] {
    let start = level.partition_point(|container| container.range.end <= range.start);
    let end = level.partition_point(|container| container.range.start < range.end);
    &level[start..end.max(start)]
}

/// The estimated records of a level in `range`.
pub(super) fn records_within(level: &[Container], range: &Range<u64>) -> f64 {
    within(level, range).iter().map(|container| container.records_within(range)).sum()
}

/// The level with `table` over `range`: on top of its content there, or in its place.
pub(super) fn placed(
    level: &[Container],
    range: &Range<u64>,
    table: Option<&Rc<Table>>,
    stacks: bool,
) -> Vec<Container> {
    let clipped =
        |range: Range<u64>| level.iter().filter_map(move |container| container.clipped(range.clone()));
    let mut result: Vec<Container> = clipped(0..range.start).collect();
    let mut next = range.start;
    let gap = |range: Range<u64>| {
        let table = table.filter(|_| !range.is_empty())?;
        Some(Container { range, tables: vec![table.clone()] })
    };
    if stacks {
        for mut container in clipped(range.clone()) {
            result.extend(gap(next..container.range.start));
            container.tables.splice(0..0, table.cloned());
            next = container.range.end;
            result.push(container);
        }
    }
    result.extend(gap(next..range.end));
    result.extend(clipped(range.end..POSITIONS));
    result
}

impl TableBytes {
    fn of_merge(&self, bytes: f64) -> f64 {
        (bytes / 8.0).clamp(self.min, self.max)
    }

    /// Ranges of the tables for `bytes` merged from above into `range` of a level.
    pub(super) fn cut(
        &self,
        spec: &LevelSpec,
        level: &[Container],
        range: &Range<u64>,
        bytes: f64,
        stacks: bool,
    ) -> Vec<Range<u64>> {
        let bytes = if stacks { bytes } else { bytes + records_within(level, range) * self.record };
        let density = bytes / len(range);
        if !stacks {
            let tables = (bytes / self.of_merge(bytes)).ceil();
            return self.joined(tables_of(range, tables), density);
        }
        let fan_out = match spec.growth {
            Growth::Tiering { runs_max, .. } => f64::from(runs_max),
            Growth::Leveling { .. } => 1.0,
        };
        let gap_bytes_max = (bytes / fan_out).clamp(self.min, self.max);
        let split = |range: Range<u64>, bytes_max: f64| {
            cells(&range, (bytes_max / density).log2().round().clamp(0.0, 32.0) as u32)
        };
        let (mut pieces, mut next) = (Vec::new(), range.start);
        for container in within(level, range) {
            let part = clip(&container.range, range);
            pieces.extend(split(next..part.start, gap_bytes_max));
            next = part.end;
            pieces.extend(split(part, self.max));
        }
        pieces.extend(split(next..range.end, gap_bytes_max));
        self.joined(pieces, density)
    }

    /// Ranges of the tables of a container that is merged into itself, with small ones beside it.
    pub(super) fn cut_within(&self, level: &[Container], range: &Range<u64>) -> Vec<Range<u64>> {
        let bytes = |range: &Range<u64>| records_within(level, range) * self.record;
        let table_bytes = self.of_merge(bytes(&(0..POSITIONS)));
        let mut range = range.clone();
        let bits = u64::BITS - (range.start ^ (range.end - 1)).leading_zeros();
        for bits in bits..=POSITIONS.ilog2() {
            let low = range.start >> bits << bits;
            let wider = low..low + (1 << bits);
            let reaches_out = |container: &Container| clip(&container.range, &wider) != container.range;
            if bytes(&wider) > table_bytes / 2.0 || within(level, &wider).iter().any(reaches_out) {
                break;
            }
            range = wider;
        }
        tables_of(&range, (bytes(&range) / table_bytes).ceil())
    }

    /// Joins adjacent ranges while their tables would be too small.
    fn joined(&self, ranges: Vec<Range<u64>>, density: f64) -> Vec<Range<u64>> {
        let mut joined: Vec<Range<u64>> = Vec::new();
        for range in ranges {
            match joined.last_mut() {
                Some(last) if (range.end - last.start) as f64 * density <= self.min => last.end = range.end,
                _ => joined.push(range),
            }
        }
        joined
    }
}

/// At least this many ranges, cut at multiples of a power of two.
fn tables_of(range: &Range<u64>, tables: f64) -> Vec<Range<u64>> {
    let width = (range.end - range.start) / (tables as u64).max(1);
    cells(range, width.max(1).ilog2())
}

/// `range`, cut at multiples of 2^`bits`.
fn cells(range: &Range<u64>, bits: u32) -> Vec<Range<u64>> {
    let (mut cells, mut next) = (Vec::new(), range.start);
    while next < range.end {
        let end = (((next >> bits) + 1) << bits).min(range.end);
        cells.push(next..end);
        next = end;
    }
    cells
}

/// A level below the youngest, as the policy sees it.
pub(super) struct ContainersShape<'a> {
    pub level: &'a [Container],
    pub record_bytes: f64,
}

impl Shape for ContainersShape<'_> {
    fn places(&self) -> usize {
        self.level.len()
    }

    fn runs(&self, place: usize) -> f64 {
        self.level[place].tables.len() as f64
    }

    fn items(&self, place: usize) -> f64 {
        self.level[place].records()
    }

    fn bytes(&self, place: usize) -> f64 {
        self.items(place) * self.record_bytes
    }

    fn obsolete(&self, place: usize) -> f64 {
        self.level[place].obsolete()
    }

    fn span(&self, place: usize) -> f64 {
        len(&self.level[place].range) / POSITIONS as f64
    }

    fn runs_full(&self, place: usize, runs_max: u32) -> f64 {
        f64::from(staggered(runs_max, self.level[place].range.start << 32))
    }
}
