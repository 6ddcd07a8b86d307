//! The phase `degrade`: the cost of lookups while filters and indexes have less memory than they need, step by step,
//! and once they have enough again (SILT §4, graceful degradation).

use alluvium::MemoryLimitStats;

use super::StoreBench;
use super::drive::Outcome;
use crate::error::BenchError;
use crate::measurement::Measurement;
use crate::report::Report;

/// The steps: a name, and the share of what filters and indexes take without a bound; `None` means no bound.
const STEPS: [(&str, Option<f64>); 6] = [
    ("degrade-to-1/2", Some(0.5)),
    ("degrade-to-1/4", Some(0.25)),
    ("degrade-to-1/10", Some(0.1)),
    ("degrade-to-1/40", Some(0.025)),
    ("degrade-to-0", Some(0.0)),
    ("degrade-ended", None),
];

impl StoreBench {
    /// Gets and misses in each step. Returns the last measurement, which is made at the end without a bound.
    pub(super) fn degrade(&self, report: &mut Report) -> Result<Measurement, BenchError> {
        let whole = self.lookups("degrade", None)?;
        let memory = self.db.stats().memory;
        let whole_bytes = memory.filters + memory.indexes;
        let mut last = whole;
        for (name, share) in STEPS {
            report.add(last)?;
            // The bound includes the metadata of open tables, which cannot be dropped.
            let bound_bytes = share.map(|share| memory.tables + (whole_bytes as f64 * share) as u64);
            self.db.set_index_bytes_max(bound_bytes.unwrap_or(u64::MAX));
            last = self.lookups(name, bound_bytes)?;
        }
        Ok(last)
    }

    /// The results of gets, and those of misses that concern memory.
    fn lookups(&self, name: &'static str, bound_bytes: Option<u64>) -> Result<Measurement, BenchError> {
        let drive = self.reading(name, self.options.operations());
        let gets = self.drive(&drive, |worker| {
            self.get_batch(worker, |worker| worker.random.below(self.workload.live_items()))
        })?;
        let misses = self.drive(&drive, |worker| self.miss_batch(worker))?;
        let memory = self.db.stats().memory;
        let reads = |outcome: &Outcome| {
            let device = outcome.device.map(|device| device.reads as f64);
            device.map(|reads| reads / outcome.operations.max(1) as f64)
        };
        let per_get = |count: fn(&MemoryLimitStats) -> u64| {
            let (before, after) = (&gets.stats.0.memory_limit, &gets.stats.1.memory_limit);
            (count(after) - count(before)) as f64 / gets.operations.max(1) as f64
        };
        let left = &gets.stats.1.memory_limit;
        Ok(self
            .read_measurement(name, &gets)
            .metric("index_reads_per_get", per_get(|limit| limit.index_reads))
            .metric("unfiltered_pages_per_get", per_get(|limit| limit.unfiltered_pages))
            .metric("sections_without_filter", left.sections_without_filter)
            .metric("sections_without_index", left.sections_without_index)
            .metric("index_bytes_max", bound_bytes)
            .metric("index_and_filter_bytes", memory.tables + memory.filters + memory.indexes)
            .metric("misses_per_s", super::phases::rate(&misses))
            .metric("device_reads_per_miss", reads(&misses)))
    }
}
