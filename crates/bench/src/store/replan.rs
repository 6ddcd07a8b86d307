//! The phase `replan=PLAN`: the store's plan changes while the store is read and overwritten.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use alluvium::Plan;

use super::StoreBench;
use super::drive::Drive;
use super::phases::rate;
use crate::error::BenchError;
use crate::measurement::Measurement;

/// Longer than any change takes.
const TIME_MAX: Duration = Duration::from_secs(7 * 86_400);

impl StoreBench {
    /// Changes the plan, and gets and overwrites at the same time, as in `mixed`, until all data follow the plan. Every
    /// value read is verified. Rates and latencies are those of the operations during the change; bytes written include
    /// both.
    pub(super) fn replan(&self, name: &str) -> Result<Measurement, BenchError> {
        let plan = Plan::named(name).map_err(|error| BenchError::Usage(error.to_string()))?;
        let begin = Instant::now();
        self.db.change_plan(plan)?;
        let change_ms = begin.elapsed().as_secs_f64() * 1e3;
        let left = self.db.stats().plan_changes.pop().unwrap_or_default();
        let drive = Drive { deadline: Some(TIME_MAX), settles: true, ..self.reading("replan", u64::MAX) };
        let is_over = AtomicBool::new(false);
        let outcome = self.drive(&drive, |worker| {
            // The check costs more than an operation.
            if worker.done.is_multiple_of(64) && !self.db.is_changing_plan() {
                is_over.store(true, Ordering::Relaxed);
            }
            if is_over.load(Ordering::Relaxed) {
                worker.quota = worker.done + 1;
            }
            self.get_or_overwrite(worker)
        })?;
        let written =
            |stats: &alluvium::Stats| stats.traffic.hash_bytes_written + stats.traffic.sorted_bytes_written;
        let (before, after) = &outcome.stats;
        let measurement = self
            .measurement("replan")
            .metric("change_ms", change_ms)
            .metric("moving_s", outcome.elapsed.as_secs_f64())
            .metric("bytes_to_move", left.bytes_left)
            .metric("table_bytes_written", written(after) - written(before))
            .metric("device_write_bytes", outcome.device.map(|device| device.written_bytes))
            .metric("ops_per_s", rate(&outcome))
            .metric("put_p99_us", outcome.puts.quantile_us(0.99))
            .metric("put_p999_us", outcome.puts.quantile_us(0.999))
            .metric("put_max_ms", outcome.puts.max_ms())
            .metric("settle_s", outcome.settling.as_secs_f64());
        let measurement = outcome.gets.report(measurement);
        Ok(outcome.samples.report(measurement, self.workload.live_items(), self.workload.item_bytes()))
    }
}
