//! [`ChainedPhases`]: what a chained plan writes while a store is loaded and then overwritten, phase after phase.
//!
//! An update of all items does not see the balance of [`PlanModel::cost`]: it begins with a log without garbage, of
//! which nothing is collected for a while. So the engine's rules of what is collected when are executed here, in
//! expectation, segment by segment.

use std::collections::VecDeque;

use super::chained_log::{ChainedLog, LogPart};
use super::evaluate::PlanModel;
use super::stream::WriteStream;
use crate::error::{ModelError, within};
use crate::models::Component;
use crate::plan::{ChainedSpec, Plan, PlanError};

/// Steps in which a segment is filled.
const STEPS: f64 = 16.0;
/// Bytes of log up to which nothing is collected: the engine's default.
const COLLECTED_BYTES_MIN: f64 = 262_144.0;

/// A segment of the log.
#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    /// Obsolete ones included.
    records: f64,
    /// Those that are the newest of their keys.
    live: f64,
}

/// A store with a chained plan that is loaded and overwritten, all keys alike.
#[derive(Debug)]
pub struct ChainedPhases<'a> {
    model: &'a PlanModel,
    spec: &'a ChainedSpec,
    /// Frozen ones, old to young.
    files: VecDeque<Segment>,
    active: Segment,
    /// Records of a segment when it is frozen, in this phase.
    segment_records: f64,
    /// Records that users wrote.
    written: f64,
    /// Records that were moved in this phase.
    moved: f64,
    /// Segments that the pass of the collection has left, and what users had written when it began.
    pass: (usize, f64),
}

impl<'a> ChainedPhases<'a> {
    /// An empty store under the model's plan and rules, for the keys and items of its workload.
    ///
    /// # Errors
    /// A plan without chains; figures out of range.
    pub fn new(model: &'a PlanModel) -> Result<Self, ModelError> {
        model.plan.validate()?;
        model.workload.validate()?;
        model.rules.validate()?;
        let Plan::Chained(spec) = &model.plan else {
            return Err(ModelError::IllegalPlan(PlanError("a plan of levels has no chains".to_owned())));
        };
        Ok(Self {
            model,
            spec,
            files: VecDeque::new(),
            active: Segment::default(),
            segment_records: 1.0,
            written: 0.0,
            moved: 0.0,
            pass: (0, 0.0),
        })
    }

    /// Puts every key once. Returns the bytes written for each byte of the user's. Must be called before anything else.
    pub fn load(&mut self) -> Vec<Component> {
        let log = self.log(1.0);
        self.segment_records = log.segment_records();
        let keys = self.keys();
        let files = (keys / self.segment_records) as usize;
        let whole = Segment { records: self.segment_records, live: self.segment_records };
        self.files = std::iter::repeat_n(whole, files).collect();
        let left = keys - files as f64 * self.segment_records;
        self.active = Segment { records: left, live: left };
        self.written = keys;
        log.writes(0.0)
    }

    /// Writes `writes` times to present keys, all equally likely. Returns the same as [`load`](Self::load).
    ///
    /// # Errors
    /// A number of writes that is not positive.
    pub fn update(&mut self, writes: f64) -> Result<Vec<Component>, ModelError> {
        within("writes", writes, f64::MIN_POSITIVE, 1e15)?;
        let log = self.log(0.0);
        self.segment_records = log.segment_records();
        self.moved = 0.0;
        let end = self.written + writes;
        while self.written < end {
            let step = (self.segment_records / STEPS).min(end - self.written);
            // The addition may be lost in rounding.
            self.written = (self.written + step).max(self.written.next_up());
            let kept = (-step / self.keys()).exp();
            self.files.iter_mut().for_each(|file| file.live *= kept);
            let fresh = self.keys() * (1.0 - kept);
            self.active.live *= kept;
            self.append(step, fresh);
            while self.is_due(log.garbage_share()) {
                let victims = log.victims(self.files.len() as f64) as usize;
                self.collect(victims);
            }
        }
        Ok(log.writes(self.moved / writes))
    }

    fn log(&self, fresh_share: f64) -> ChainedLog<'a> {
        let stream = WriteStream { keys: self.model.workload.keys.clone(), fresh_share };
        ChainedLog::new(self.model, self.spec, stream)
    }

    fn keys(&self) -> f64 {
        self.model.workload.keys.keys()
    }

    fn append(&mut self, records: f64, live: f64) {
        self.active.records += records;
        self.active.live += live;
        while self.active.records >= self.segment_records {
            let frozen = self.segment_records / self.active.records;
            let Segment { records, live } = self.active;
            self.files.push_back(Segment { records: records * frozen, live: live * frozen });
            self.active = Segment { records: records * (1.0 - frozen), live: live * (1.0 - frozen) };
        }
    }

    fn file_records(&self) -> f64 {
        self.files.iter().map(|file| file.records).sum()
    }

    fn is_due(&self, share_max: f64) -> bool {
        let records = self.file_records();
        let item_bytes = self.model.workload.item.bytes();
        let (left, began_at) = self.pass;
        let may_begin = left > 0 || self.written - began_at >= share_max * records;
        if self.files.len() < 2 || records * item_bytes <= COLLECTED_BYTES_MIN || !may_begin {
            return false;
        }
        let live: f64 = self.files.iter().map(|file| file.live).sum();
        1.0 - live / records > share_max
    }

    fn collect(&mut self, victims: usize) {
        if self.pass.0 == 0 {
            self.pass = (self.files.len(), self.written);
        }
        self.pass.0 = self.pass.0.saturating_sub(victims);
        let live: f64 = self.files.drain(..victims.min(self.files.len())).map(|file| file.live).sum();
        self.moved += live;
        self.append(live, live);
    }

    /// Records in the log, obsolete ones included, for each item.
    pub fn records_per_item(&self) -> f64 {
        (self.file_records() + self.active.records) / self.keys()
    }

    /// Bytes of memory for each item, with this number of frozen logs beside the active one.
    pub fn bytes_per_item(&self, frozen_logs: f64) -> f64 {
        let records = self.file_records() + self.active.records;
        self.log(0.0).memory(records, frozen_logs).iter().map(|part| part.amount).sum()
    }

    /// Reads for a get of a present and of an absent key, all equally likely.
    pub fn reads(&self) -> (f64, f64) {
        let part = |segment: &Segment| LogPart { records: segment.records, hits: segment.live / self.keys() };
        let parts = std::iter::once(&self.active).chain(self.files.iter().rev()).map(part);
        let reads = self.log(0.0).reads(parts, self.active.records);
        (reads.hit, reads.miss)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ItemSize, Workload};
    use super::*;

    const SMALL: ItemSize = ItemSize { key_bytes: 16.0, value_bytes: 48.0, deviation_bytes: 0.0 };

    fn sum(written: &[Component]) -> f64 {
        written.iter().map(|component| component.amount).sum()
    }

    #[test]
    fn updates_come_to_balance() {
        for garbage_share_max in [0.1, 0.25, 0.4] {
            let spec = ChainedSpec { garbage_share_max, ..ChainedSpec::of_length(10.0) };
            let model = PlanModel::new(Plan::Chained(spec), Workload::load(2e7, SMALL).unwrap());
            let mut phases = ChainedPhases::new(&model).unwrap();
            assert!((sum(&phases.load()) - 76.0 / 64.0).abs() < 1e-9);
            let first = sum(&phases.update(2e7).unwrap());
            phases.update(1e8).unwrap();
            let later = sum(&phases.update(1e8).unwrap());
            let workload = Workload::updates(model.workload.keys.clone(), SMALL);
            let balance = PlanModel { workload, ..model.clone() }.cost().unwrap().cost;
            let ratio = later / balance.write_amplification();
            assert!((ratio - 1.0).abs() < 0.05, "{garbage_share_max}: {later}, {balance:?}");
            assert!(first < later, "nothing is collected at first: {first}, {later}");
            let (hit, miss) = phases.reads();
            assert!((hit / balance.reads_per_get - 1.0).abs() < 0.05, "{hit}, {balance:?}");
            assert!((miss / balance.reads_per_miss - 1.0).abs() < 0.05, "{miss}, {balance:?}");
        }
    }
}
