//! [`Stack`]: how the log and the levels of a plan fill and empty, at one size of the store.
//!
//! Each stage passes its items on at an interval, counted in writes; the next stage takes what was written in that
//! interval. All rewrites follow from the intervals; reads and memory follow from the average fill of the stages.

use crate::error::ModelError;
use crate::plan::{Growth, LevelSpec, LevelsPlan, LogSpec, Sharding};

use super::level_state::LevelState;
use super::rules::Rules;
use super::stream::WriteStream;
use super::workload::Workload;

/// Entries for which a log index is made, per entry that the previous log took in its fullest shard.
const LOG_ROOM: f64 = 17.0 / 16.0;

/// The log and the levels as they fill and empty.
#[derive(Clone, Debug)]
pub(super) struct Stack {
    /// Writes between freezes of the log.
    pub log_interval: f64,
    /// Different keys in a frozen log.
    pub log_records: f64,
    /// Entries for which the log index, and the filter that it becomes, have room.
    pub log_entries: f64,
    /// Share of these entries that are taken at a freeze.
    log_crowding: f64,
    /// Parts of the key space that freeze and merge independently.
    shards: f64,
    /// Young to old, without levels below the one that can hold everything: these stay empty.
    pub levels: Vec<LevelState>,
}

impl Stack {
    /// The plan at the size of the store that `stream` has.
    pub fn new(
        plan: &LevelsPlan,
        stream: &WriteStream,
        workload: &Workload,
        rules: &Rules,
    ) -> Result<Self, ModelError> {
        let LevelsPlan { sharding, log, levels } = plan;
        let present = present_records(levels, stream, workload, rules);
        let collects = levels[0].growth.items_max(1.0).is_infinite();
        let cut_for = if collects { present.max(workload.expected_keys) } else { present };
        let mut stack = Self::with_log(sharding, log, stream, workload, rules, cut_for);
        let mut arrivals = Arrivals {
            interval: stack.log_interval,
            records: stack.log_records,
            room: stack.log_records,
            false_overlaps: 0.0,
            filter_crowding: stack.log_crowding,
        };
        let expected = workload.expected_keys.max(present);
        let live = stream.keys.keys() * workload.live_share();
        for (number, level) in levels.iter().enumerate() {
            let is_last = number + 1 == levels.len();
            let (state, next) = match level.growth {
                Growth::Tiering { runs_max, .. } if !is_last => {
                    // Deeper levels have many containers.
                    let places = if number == 0 { stack.shards } else { f64::INFINITY };
                    // Merging into one run drops garbage there. A level that passes runs to a level of runs is merged
                    // with that when it holds too much garbage.
                    let is_collected = matches!(levels[number + 1].growth, Growth::Leveling { .. });
                    let repeating = (1.0 - stream.fresh_share).max(f64::MIN_POSITIVE);
                    let by_garbage = match is_collected {
                        true => rules.young_garbage_max * live / repeating,
                        false => f64::INFINITY,
                    };
                    let bound = level.growth.items_max(expected).min(by_garbage) * rules.overrun;
                    let runs_max = f64::from(runs_max);
                    if !is_collected {
                        // The next level gets runs of what this one holds, and these contain obsolete versions, too.
                        let above: f64 = stack.levels.iter().map(|state| state.records).sum();
                        let left = (rules.tiers_garbage_max * live / repeating - above).max(0.0);
                        let (state, next) = tiering(&arrivals, stream, runs_max, bound, places);
                        if state.records + next.records > left {
                            let bound = bound.min(left * rules.overrun);
                            let (state, next) = tiering(&arrivals, stream, f64::INFINITY, bound, places);
                            stack.levels.push(state);
                            stack.levels.push(last_leveling(&next, stream, workload));
                            return Ok(stack);
                        }
                    }
                    let runs = stream.keys.keys() / arrivals.records;
                    let is_filling =
                        stream.fresh_share >= 1.0 && runs <= runs_max && stream.keys.keys() <= bound;
                    match is_filling && number + 2 == levels.len() && is_collected {
                        true => filling(&arrivals, runs.max(1.0), places),
                        false => tiering(&arrivals, stream, runs_max, bound, places),
                    }
                }
                Growth::Leveling { ratio } if !is_last => {
                    let size = ratio * arrivals.room;
                    if size >= stream.keys.keys() - 1.0 {
                        stack.levels.push(last_leveling(&arrivals, stream, workload));
                        return Ok(stack);
                    }
                    leveling(&arrivals, stream, size, rules)
                }
                Growth::Leveling { .. } => (last_leveling(&arrivals, stream, workload), arrivals),
                Growth::Tiering { runs_max, .. } => {
                    (last_tiering(&arrivals, stream, workload, f64::from(runs_max), rules), arrivals)
                }
            };
            // The data of a store that was never fuller fit in this level and those above: none has moved further.
            let above: f64 = stack.levels.iter().map(|state| state.records).sum();
            let left = (stream.keys.keys() - above).max(0.0);
            let hands_on_runs = match (level.growth, levels.get(number + 1).map(|next| next.growth)) {
                (Growth::Tiering { .. }, Some(Growth::Tiering { .. })) => true,
                // Just above the last level, the shares and the garbage count.
                (Growth::Tiering { .. }, Some(Growth::Leveling { .. })) => number + 2 < levels.len(),
                _ => false,
            };
            if stream.fresh_share >= 1.0 && hands_on_runs && state.records >= left {
                let places = if number == 0 { stack.shards } else { f64::INFINITY };
                let (state, _) = filling(&arrivals, left / arrivals.records, places);
                stack.levels.push(LevelState { records: above + left, ..state });
                return Ok(stack);
            }
            stack.levels.push(state);
            arrivals = next;
        }
        Ok(stack)
    }

    /// Only the log, cut for a store of `cut_for` records.
    pub fn with_log(
        sharding: &Sharding,
        log: &LogSpec,
        stream: &WriteStream,
        workload: &Workload,
        rules: &Rules,
        cut_for: f64,
    ) -> Self {
        let items = cut_for as u64;
        let shards = sharding.shards(items) as f64;
        let entries = sharding.log_entries(items) as f64;
        // The fullest shard freezes all: the largest of that many normal numbers is this many deviations above the
        // mean.
        let largest = if shards > 1.0 {
            let root = (2.0 * shards.ln()).sqrt();
            root - (shards.ln().ln() + (4.0 * std::f64::consts::PI).ln()) / (2.0 * root)
        } else {
            0.0
        };
        let largest = largest.max(0.0);
        let filled = shards * (entries - largest * entries.sqrt());
        let by_entries = stream.unique_inverse(filled);
        let by_bytes = log.segment_bytes_max as f64 / (workload.written_bytes() + rules.log_record_bytes);
        let log_interval = by_entries.min(by_bytes);
        let log_records = stream.unique(log_interval);
        // A log that freezes by its bytes has room in each shard for as many entries as the fullest shard had before,
        // plus a sixteenth.
        let (entries, log_crowding) = if by_bytes < by_entries {
            let mean = log_records / shards;
            let room = ((mean + largest * mean.sqrt()) * LOG_ROOM).min(entries);
            (room, (mean / room).min(1.0))
        } else {
            (entries, 1.0)
        };
        Self {
            log_interval,
            log_records,
            log_entries: shards * entries,
            log_crowding,
            shards,
            levels: Vec::new(),
        }
    }

    /// Memory of the log's index.
    pub fn log_index_bytes(&self, rules: &Rules) -> f64 {
        self.log_entries * rules.log_slot_bytes / rules.filter_fill
    }

    /// Memory of the log's index and of the indexes of frozen logs.
    pub fn log_indexes_bytes(&self, rules: &Rules) -> f64 {
        (1.0 + rules.frozen_logs) * self.log_index_bytes(rules)
    }

    /// Share of the entries for which the log's index has room that are taken at a freeze.
    pub fn log_crowding(&self) -> f64 {
        self.log_crowding
    }

    /// Parts of the key space that freeze and merge independently.
    pub fn shards(&self) -> f64 {
        self.shards
    }
}

/// Records in all levels, as the engine counts them to size log and young levels: live items, plus the records in young
/// levels that repeat keys of the last one.
fn present_records(levels: &[LevelSpec], stream: &WriteStream, workload: &Workload, rules: &Rules) -> f64 {
    let young = levels.iter().rev().skip(1).map(|level| match level.growth {
        Growth::Tiering { share, .. } => share,
        Growth::Leveling { .. } => 0.0,
    });
    let repeated = (1.0 - stream.fresh_share) * young.sum::<f64>();
    // Converted to a share of all records, instead of the live items.
    let garbage_max = 1.0 - 1.0 / (1.0 + rules.young_garbage_max);
    stream.keys.keys() * workload.live_share() / (1.0 - repeated.min(0.5).min(garbage_max))
}

/// What arrives at a level from above.
#[derive(Clone, Copy, Debug)]
struct Arrivals {
    /// Writes of the user between arrivals at the same place.
    interval: f64,
    /// Records of an arrival, over all places.
    records: f64,
    /// What the stage above holds when full: the size of a leveling level is a multiple of it.
    room: f64,
    /// Records of the target level that are rewritten because its tables are partly outside the arriving range.
    false_overlaps: f64,
    /// As in [`LevelState`], for runs made of the arrivals.
    filter_crowding: f64,
}

/// Runs collect until the level holds `bound` records or one place has `runs_max` runs; then the fullest of `places`
/// places is merged.
///
/// Places are staggered evenly between 0 and R runs, so after a freeze and its merges they have (R − 1) / 2 on average.
/// That is below the bound by half of what the last merge removed, R / `places`: with m runs at the bound, (R − 1) / 2
/// = m − R / 2 `places`.
fn tiering(
    arrivals: &Arrivals,
    stream: &WriteStream,
    runs_max: f64,
    bound: f64,
    places: f64,
) -> (LevelState, Arrivals) {
    let runs_at_bound = (bound / arrivals.records).max(1.0);
    let runs_full = ((2.0 * runs_at_bound + 1.0) / (1.0 + 1.0 / places)).min(runs_max);
    let runs = (runs_full - 1.0) / 2.0;
    let interval = runs_full * arrivals.interval;
    let state = LevelState {
        records: runs * arrivals.records,
        sections: if places.is_finite() { runs * places } else { 0.0 },
        filter_crowding: arrivals.filter_crowding,
        runs,
        newest_share: 0.0,
        occupied: 1.0 - 1.0 / runs_full,
        younger: ((2.0 * runs - 1.0) / 3.0).max(0.0),
        records_written: arrivals.records / arrivals.interval,
        live_written: 0.0,
        interval,
    };
    let records = stream.unique(interval);
    (state, Arrivals { interval, records, room: records, false_overlaps: 0.0, filter_crowding: 1.0 })
}

/// A level above the last one that holds all that was written so far, each key once: nothing has been merged yet.
fn filling(arrivals: &Arrivals, runs: f64, places: f64) -> (LevelState, Arrivals) {
    let state = LevelState {
        records: runs * arrivals.records,
        sections: if places.is_finite() { runs * places } else { 0.0 },
        filter_crowding: arrivals.filter_crowding,
        runs,
        newest_share: 0.0,
        occupied: runs.min(1.0),
        younger: ((runs - 1.0) / 2.0).max(0.0),
        records_written: arrivals.records / arrivals.interval,
        live_written: 0.0,
        interval: f64::INFINITY,
    };
    (state, Arrivals { interval: f64::INFINITY, room: state.records, ..*arrivals })
}

/// One run of `size` keys, passed on place by place (Lim's thesis, Algorithm 3).
fn leveling(arrivals: &Arrivals, stream: &WriteStream, size: f64, rules: &Rules) -> (LevelState, Arrivals) {
    let written = stream.merge(arrivals.interval, size) + arrivals.false_overlaps;
    let interval = arrivals.interval + stream.dinterval(size);
    let state = LevelState {
        records: size,
        sections: 0.0,
        filter_crowding: 1.0,
        runs: 1.0,
        newest_share: 0.0,
        occupied: 1.0,
        younger: 0.0,
        records_written: written / arrivals.interval,
        live_written: 0.0,
        interval,
    };
    let records = stream.unique(interval);
    let false_overlaps = if rules.false_overlaps { records } else { 0.0 };
    (state, Arrivals { interval, records, room: size, false_overlaps, filter_crowding: 1.0 })
}

/// One run of all live items; no run until something arrives from above.
fn last_leveling(arrivals: &Arrivals, stream: &WriteStream, workload: &Workload) -> LevelState {
    let live = stream.keys.keys() * workload.live_share();
    // A store that started empty fills its young levels before anything arrives here.
    let has_begun = stream.fresh_share * arrivals.interval / 2.0 < stream.keys.keys();
    LevelState {
        records: if has_begun { live } else { 0.0 },
        sections: 0.0,
        filter_crowding: 1.0,
        runs: if has_begun { 1.0 } else { 0.0 },
        newest_share: 0.0,
        occupied: if has_begun { 1.0 } else { 0.0 },
        younger: 0.0,
        records_written: 0.0,
        live_written: if has_begun { (live + arrivals.false_overlaps) / arrivals.interval } else { 0.0 },
        interval: f64::INFINITY,
    }
}

/// Runs that are rewritten when too much of them is garbage, or when there are too many.
fn last_tiering(
    arrivals: &Arrivals,
    stream: &WriteStream,
    workload: &Workload,
    runs_max: f64,
    rules: &Rules,
) -> LevelState {
    let live = stream.keys.keys() * workload.live_share();
    let arriving = arrivals.records / arrivals.interval;
    let garbage = (arriving - stream.fresh_share).max(0.0);
    let garbage_max = live * rules.garbage_share / (1.0 - rules.garbage_share);
    // A difference this small is rounding, not garbage.
    let by_garbage = if garbage > 1e-6 {
        // Garbage arrives with runs: wait for the one that exceeds the limit.
        ((garbage_max / garbage / arrivals.interval).floor() + 1.0) * arrivals.interval
    } else {
        f64::INFINITY
    };
    let runs_present = live / arrivals.records;
    let by_runs = if garbage > 1e-6 || runs_present > runs_max {
        (runs_max - 1.0).max(1.0) * arrivals.interval
    } else {
        f64::INFINITY
    };
    let interval = by_garbage.min(by_runs);
    let (runs, garbage_mean, rewritten) = if interval.is_finite() {
        // The arrival that exceeds the limit is rewritten at once.
        let waited = interval - arrivals.interval;
        (1.0 + waited / arrivals.interval / 2.0, garbage * waited / 2.0, live / interval)
    } else {
        (runs_present.max(1.0), 0.0, 0.0)
    };
    LevelState {
        records: live + garbage_mean,
        sections: 0.0,
        filter_crowding: arrivals.filter_crowding,
        runs,
        newest_share: 0.0,
        occupied: 1.0,
        // After a rewrite nearly all items are in the oldest run, else they are spread over all.
        younger: if interval.is_finite() { runs - 1.0 } else { (runs - 1.0) / 2.0 },
        records_written: arriving,
        live_written: rewritten,
        interval: f64::INFINITY,
    }
}
