//! What the engine's chained log costs: its records, what its collection moves, and what a walk of a chain reads.
//!
//! The log is the store, so a record is written once, and again whenever its segment is the oldest and is collected
//! while the record is live. Collection takes the oldest segment and moves live records only ([decision
//! 0082](../../../../docs/decisions/0082-a-chained-log-is-collected-by-reading-it.md)), so each key is a clock: its
//! record is written anew by an update, or when it is as old as the log is long.
//!
//! [`SkimpyStash`](crate::models::SkimpyStash) is the paper's design, which moves whole chains.

use super::evaluate::PlanModel;
use super::rules::Rules;
use super::stack::Stack;
use super::stream::WriteStream;
use super::workload::GetPopularity;
use crate::models::{ChainLengths, Component};
use crate::plan::{ChainedDirectory, ChainedSpec, LevelsPlan};
use crate::root;

/// Parts of a directory, each with a whole number of slots, and the minimum of these.
const REGIONS: f64 = 256.0;
const REGION_SLOTS_MIN: f64 = 4.0;
/// Records with links begin at multiples of this number of bytes.
const LINK_UNIT: f64 = 4.0;
/// Segments that a link or a pointer of 4 bytes reaches.
const SEGMENTS_REACHED: f64 = 253.0;
/// Bits that a key sets in the filter of its slot, and maximum bytes of a filter.
const PROBES: f64 = 6.0;
const FILTER_BYTES_MAX: f64 = 255.0;
/// A segment is frozen when its records would make chains this much longer than their mean.
const CHAINS_MAX: f64 = 3.0;
const RECORDS_MIN: f64 = 1024.0;
/// Bytes behind the beginning of a record that are read with it in any case.
const TAIL_BYTES: f64 = 256.0;
/// Segments of the log for each that shares a pass of the collection.
const SEGMENTS_PER_VICTIM: f64 = 8.0;
/// Maximum share of garbage at which collection begins.
const GARBAGE_SHARE_MAX: f64 = 0.95;
/// Parts of the log by age, for reads.
const PARTS: u32 = 48;

/// Records that were appended one after the other.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LogPart {
    /// All of them, obsolete ones included.
    pub records: f64,
    /// Share of the gets of present keys whose newest record is among them.
    pub hits: f64,
}

/// Reads of the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChainReads {
    /// For a get of a present and of an absent key.
    pub hit: f64,
    pub miss: f64,
    /// For a put.
    pub put: f64,
}

/// A log in balance: as much is collected as is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Balance {
    /// Records that collection moves for each write of the user.
    pub moved: f64,
    /// Writes of the user between the time when a record is appended and that when its segment is collected. Infinite
    /// for a log without garbage.
    pub interval_writes: f64,
    /// Records in the whole log.
    pub records: f64,
    /// Bytes of these.
    pub bytes: f64,
}

/// A chained log at one size of the store.
#[derive(Debug)]
pub(super) struct ChainedLog<'a> {
    model: &'a PlanModel,
    spec: &'a ChainedSpec,
    stream: WriteStream,
    /// Items that are present.
    pub live: f64,
    /// Slots of the directory.
    slots: f64,
    lengths: ChainLengths,
    /// How the log in front freezes.
    stack: Stack,
    segment_bytes_max: f64,
}

impl<'a> ChainedLog<'a> {
    pub fn new(model: &'a PlanModel, spec: &'a ChainedSpec, stream: WriteStream) -> Self {
        let live = stream.keys.keys() * model.workload.live_share();
        let slots = slots(spec, live.max(model.workload.expected_keys));
        let lengths = match spec.directory {
            ChainedDirectory::Base => ChainLengths::single(live / slots),
            ChainedDirectory::Enhanced { .. } => ChainLengths::two_choice(live / slots),
        };
        let LevelsPlan { sharding, log, .. } = LevelsPlan::from(*spec);
        let workload = &model.workload;
        let written = workload.written_bytes();
        let rules = Rules { log_record_bytes: padded(model, written, 4.0) - written, ..model.rules };
        let cut_for = (CHAINS_MAX * spec.chain_length_mean * slots).max(RECORDS_MIN);
        let stack = Stack::with_log(&sharding, &log, &stream, workload, &rules, cut_for);
        let segment_bytes_max = log.segment_bytes_max as f64;
        Self { model, spec, stream, live, slots, lengths, stack, segment_bytes_max }
    }

    /// Records in a segment of the log.
    pub fn segment_records(&self) -> f64 {
        self.stack.log_interval.max(1.0)
    }

    /// Bytes of the record of an item of this number of bytes of key and value.
    pub fn record_bytes(&self, item_bytes: f64) -> f64 {
        // The next record of a chain is as many records away as there are slots, on average.
        let reached = SEGMENTS_REACHED * self.segment_records();
        let is_long = self.live > reached * (1.0 - self.spec.garbage_share_max);
        let long = if is_long { (-reached / self.slots).exp() } else { 0.0 };
        let [short_bytes, long_bytes] = [4.0, 5.0].map(|link| padded(self.model, item_bytes, link));
        (1.0 - long) * short_bytes + long * long_bytes
    }

    /// The share of garbage at which collection begins. Behind writers at full speed it is more.
    pub fn garbage_share(&self) -> f64 {
        (self.spec.garbage_share_max * self.model.rules.overrun).min(GARBAGE_SHARE_MAX)
    }

    /// Segments that are collected together, of this number.
    pub fn victims(&self, segments: f64) -> f64 {
        let bytes = self.segment_records() * self.record_bytes(self.model.workload.item.bytes());
        let by_bytes = (self.segment_bytes_max / bytes).floor();
        (segments / SEGMENTS_PER_VICTIM).floor().min(by_bytes).max(1.0)
    }

    /// The log as it is on average over time, if collection begins at the plan's share of garbage.
    pub fn balance(&self) -> Balance {
        let workload = &self.model.workload;
        let (written, item) =
            (self.record_bytes(workload.written_bytes()), self.record_bytes(workload.item.bytes()));
        if workload.fresh_share >= 1.0 {
            let (records, bytes) = (self.live, self.live * item);
            return Balance { moved: 0.0, interval_writes: f64::INFINITY, records, bytes };
        }
        // What is in memory is not collected; the segment there is half full.
        let in_memory = (0.5 * self.segment_records()).min(0.9 * self.live);
        let target =
            (self.live - in_memory) * item / (1.0 - self.spec.garbage_share_max) + in_memory * written;
        let live_share = workload.live_share();
        let interval_writes = root::increasing(self.stream.keys.keys(), |writes| {
            let (mut bytes, mut slope) = (writes * written, writes * written);
            for group in self.stream.keys.groups() {
                let x = writes * group.probability * (1.0 - workload.fresh_share);
                let moved = group.keys * live_share * item * survivors(x);
                bytes += moved;
                slope += moved * (1.0 - growth(x));
            }
            ((bytes / target).ln(), slope / bytes)
        });
        let groups = self.stream.keys.groups();
        let moved: f64 = groups
            .map(|group| {
                let x = interval_writes * group.probability * (1.0 - workload.fresh_share);
                group.keys * live_share * survivors(x)
            })
            .sum::<f64>()
            / interval_writes;
        Balance { moved, interval_writes, records: interval_writes * (1.0 + moved), bytes: target }
    }

    /// Bytes written for each byte of the user's, if this number of records is moved for each write.
    pub fn writes(&self, moved: f64) -> Vec<Component> {
        let workload = &self.model.workload;
        let user = workload.written_bytes();
        vec![
            Component::new("log", self.record_bytes(user) / user),
            Component::new("garbage collection", moved * self.record_bytes(workload.item.bytes()) / user),
        ]
    }

    /// Memory for each item, with this number of frozen logs beside the active one.
    pub fn memory(&self, records: f64, frozen_logs: f64) -> Vec<Component> {
        let per_item = self.slots / self.live;
        let is_far = records / self.segment_records() > SEGMENTS_REACHED;
        let pointer = if is_far { 5.0 } else { f64::from(self.spec.pointer_bytes) };
        let rules = Rules { frozen_logs, ..self.model.rules };
        let mut memory = vec![
            Component::new("log index", self.stack.log_indexes_bytes(&rules) / self.live),
            Component::new("directory", pointer * per_item),
        ];
        if let Some(filter_bytes) = self.filter_bytes() {
            memory.push(Component::new("count", per_item));
            memory.push(Component::new("filter", filter_bytes * per_item));
        }
        memory
    }

    fn filter_bytes(&self) -> Option<f64> {
        match self.spec.directory {
            ChainedDirectory::Base => None,
            ChainedDirectory::Enhanced { filter_bits } => {
                let bits = f64::from(filter_bits) * self.spec.chain_length_mean;
                Some((bits / 8.0).ceil().clamp(1.0, FILTER_BYTES_MAX))
            }
        }
    }

    /// The parts of a log in balance, young to old.
    pub fn parts(&self, balance: &Balance) -> Vec<LogPart> {
        if balance.interval_writes.is_infinite() {
            return vec![LogPart { records: balance.records, hits: 1.0 }];
        }
        let (count, workload) = (f64::from(PARTS), &self.model.workload);
        let records = balance.records / count;
        let mut parts = vec![LogPart { records, hits: 0.0 }; PARTS as usize];
        for group in self.stream.keys.groups() {
            let gets = match workload.gets {
                GetPopularity::Uniform => group.keys / self.stream.keys.keys(),
                GetPopularity::LikePuts => group.keys * group.probability,
            };
            // A key that is updated once in 1/rate of the log has its newest record at age y with density e^(-rate y).
            let rate = balance.interval_writes * group.probability * (1.0 - workload.fresh_share);
            let below = |age: f64| if rate < 1e-9 { age } else { (-rate * age).exp_m1() / (-rate).exp_m1() };
            for (number, part) in parts.iter_mut().enumerate() {
                let age = number as f64 / count;
                part.hits += gets * (below(age + 1.0 / count) - below(age));
            }
        }
        parts
    }

    /// What gets and puts read, from the log's parts, young to old, of which this number of records is in memory.
    pub fn reads(&self, parts: impl IntoIterator<Item = LogPart>, in_memory: f64) -> ChainReads {
        // Other records of a key's chain, for each record of the log.
        let others = self.lengths.mean_over_keys(|length| length - 1.0) / self.live;
        let (mut hit, mut hits, mut on_device, mut left) = (0.0, 0.0, 0.0, in_memory);
        for LogPart { records, hits: share } in parts {
            let here = records.min(left);
            left -= here;
            let away = records - here;
            let share = if records > 0.0 { share * away / records } else { 0.0 };
            hit += share * (1.0 + others * (on_device + away / 2.0));
            hits += share;
            on_device += away;
        }
        let records_a_key = on_device / self.live;
        let mean_bytes = self.record_bytes(self.model.workload.item.bytes());
        // A record that is longer than what is read with its beginning takes a second read.
        let reads = 1.0 + ((mean_bytes - TAIL_BYTES) / self.model.rules.page_bytes).clamp(0.0, 1.0);
        let (hit, miss, put) = match self.filter_bytes() {
            None => (hit, self.lengths.mean_over_slots(|length| length) * records_a_key, 0.0),
            Some(filter_bytes) => {
                // Keys that were removed stay in filters.
                let keys_a_live = 1.0 / self.model.workload.live_share();
                let wrong = |length: f64| false_positives(8.0 * filter_bytes, length * keys_a_live);
                let walked = self.lengths.mean_over_slots(|length| wrong(length) * length) * records_a_key;
                // Half of the time, the wrong one of the two chains is searched first.
                let wasted = hits * walked / 2.0;
                // A put of a present key that both filters may have looks for it.
                let put = hit * self.lengths.mean_over_slots(wrong) + wasted;
                (hit + wasted, 2.0 * walked, put * (1.0 - self.model.workload.fresh_share))
            }
        };
        ChainReads { hit: hit * reads, miss: miss * reads, put: put * reads }
    }
}

/// The share of absent keys of which a filter of this number of bits has all, if it has this number of keys.
fn false_positives(bits: f64, keys: f64) -> f64 {
    // Ways to have the probes on 1 to 6 different bits (Stirling), and the chance that all of these are set.
    const PARTITIONS: [f64; 6] = [1.0, 31.0, 90.0, 65.0, 15.0, 1.0];
    let (mut all, mut places) = (0.0, 1.0);
    for (number, ways) in PARTITIONS.into_iter().enumerate() {
        places *= (bits - number as f64).max(0.0) / bits;
        let different = number + 1;
        let (mut set, mut choices) = (0.0, 1.0);
        for unset in 0..=different {
            let sign = if unset % 2 == 0 { 1.0 } else { -1.0 };
            set += sign * choices * (1.0 - unset as f64 / bits).max(0.0).powf(PROBES * keys);
            choices *= (different - unset) as f64 / (unset + 1) as f64;
        }
        // Each coincidence of two probes takes a factor 1/bits.
        all += ways * places * set * bits.powi(different as i32 - PROBES as i32);
    }
    all.clamp(0.0, 1.0)
}

/// Slots of a directory that is made for this number of items.
fn slots(spec: &ChainedSpec, items: f64) -> f64 {
    let region = (items / spec.chain_length_mean / REGIONS).ceil();
    let even = (region / 2.0).ceil() * 2.0;
    REGIONS * even.max(REGION_SLOTS_MIN)
}

/// Bytes of the record of an item with a link of this number of bytes.
fn padded(model: &PlanModel, item_bytes: f64, link_bytes: f64) -> f64 {
    let bytes = item_bytes + model.rules.log_record_bytes + model.rules.length_bytes(item_bytes) + link_bytes;
    let is_one_size = model.workload.item.deviation_bytes == 0.0 && item_bytes.fract() == 0.0;
    if is_one_size { (bytes / LINK_UNIT).ceil() * LINK_UNIT } else { bytes + (LINK_UNIT - 1.0) / 2.0 }
}

/// x / (e^x − 1): the share of its time in which a record of a key that is updated x times in the log's length is
/// moved.
fn survivors(x: f64) -> f64 {
    match x {
        x if x < 1e-9 => 1.0 - x / 2.0,
        x if x > 700.0 => 0.0,
        x => x / x.exp_m1(),
    }
}

/// x / (1 − e^−x), the logarithmic slope of [`survivors`], subtracted from 1.
fn growth(x: f64) -> f64 {
    if x < 1e-9 { 1.0 + x / 2.0 } else { -x / (-x).exp_m1() }
}

#[cfg(test)]
mod tests {
    use super::super::{ItemSize, Workload};
    use super::*;
    use crate::{KeyDistribution, Plan};

    const SMALL: ItemSize = ItemSize { key_bytes: 16.0, value_bytes: 48.0, deviation_bytes: 0.0 };

    fn model(spec: ChainedSpec, workload: Workload) -> PlanModel {
        PlanModel::new(Plan::Chained(spec), workload)
    }

    #[test]
    fn filters_are_wrong_as_often_as_those_of_random_bits() {
        let mut state = 5u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((u128::from(state) * u128::from(below)) >> 64) as u64
        };
        for (bits, keys) in [(8u64, 1u32), (80, 10), (80, 14)] {
            let rounds = 200_000;
            let mut wrong = 0;
            for _ in 0..rounds {
                let filter = (0..6 * keys).fold(0u128, |filter, _| filter | 1 << random(bits));
                wrong += u32::from((0..6).all(|_| filter >> random(bits) & 1 == 1));
            }
            let (share, expected) =
                (f64::from(wrong) / f64::from(rounds), false_positives(bits as f64, f64::from(keys)));
            assert!(
                (share / expected - 1.0).abs() < 0.05,
                "{bits} bits, {keys} keys: {share}, not {expected}"
            );
        }
    }

    #[test]
    fn a_loaded_store_costs_what_the_paper_says() {
        for chain_length_mean in [1.0, 2.0, 10.0, 32.0] {
            for (directory, bytes) in [
                (ChainedDirectory::Base, 4.0 / chain_length_mean),
                (ChainedDirectory::default(), 1.0 + 5.0 / chain_length_mean),
            ] {
                let spec = ChainedSpec { directory, ..ChainedSpec::of_length(chain_length_mean) };
                let cost = model(spec, Workload::load(1e8, SMALL).unwrap()).cost().unwrap().cost;
                let directory: f64 = cost.memory[1..].iter().map(|part| part.amount).sum();
                assert!((directory / bytes - 1.0).abs() < 0.002, "{directory} bytes, {bytes} in the paper");
                // 16+48 bytes take 76.
                assert!((cost.write_amplification() - 76.0 / 64.0).abs() < 1e-9);
            }
        }
        let base = ChainedSpec { directory: ChainedDirectory::Base, ..ChainedSpec::of_length(10.0) };
        let cost = model(base, Workload::load(1e8, SMALL).unwrap()).cost().unwrap().cost;
        assert!((cost.reads_per_get - 6.0).abs() < 0.06, "{cost:?}");
        assert!((cost.reads_per_miss - 10.0).abs() < 0.1, "{cost:?}");
        let enhanced = model(ChainedSpec::of_length(10.0), Workload::load(1e8, SMALL).unwrap());
        let cost = enhanced.cost().unwrap().cost;
        assert!((cost.reads_per_get - 5.65).abs() < 0.1 && cost.reads_per_miss < 0.55, "{cost:?}");
    }

    /// With T records for each live one, the oldest records are live with a probability u = e^(-T (1 - u)).
    #[test]
    fn collection_moves_what_the_oldest_segment_has_live() {
        let keys = KeyDistribution::uniform(1e8).unwrap();
        for (garbage_share_max, live_share) in [(0.1, 0.8069), (0.25, 0.5456), (0.4, 0.3242)] {
            let spec = ChainedSpec { garbage_share_max, ..ChainedSpec::of_length(10.0) };
            let cost = model(spec, Workload::updates(keys.clone(), SMALL)).cost().unwrap().cost;
            let expected = 76.0 / 64.0 / (1.0 - live_share);
            assert!((cost.write_amplification() / expected - 1.0).abs() < 0.02, "{cost:?}, not {expected}");
        }
        // Most records are of hot keys, and near the heads of their chains; what is moved is of the others.
        let skewed = KeyDistribution::zipf(1e8, 0.99).unwrap();
        let cost = model(ChainedSpec::of_length(10.0), Workload::updates(skewed, SMALL)).cost().unwrap().cost;
        assert!(cost.write_amplification() < 5.0 && cost.reads_per_get < 4.0, "{cost:?}");
    }
}
