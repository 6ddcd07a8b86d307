//! Reads of the store in turns with reads of the raw device: a virtual disk drifts within seconds.

use std::time::Duration;

use alluvium_io::calibrate::{Rate, RawMethod};

use super::StoreBench;
use super::drive::Outcome;
use super::phases::rate;
use crate::device::{self, RawReads};
use crate::error::BenchError;
use crate::measurement::Measurement;

/// A file of as many bytes as the store has, which is read beside it.
const RAW_FILE: &str = "alluvium-bench-raw";
/// Turns of a phase: the device's rate drifts within seconds, so that they are shorter, and many, so that their median
/// says something.
const TURNS: u64 = 10;

impl StoreBench {
    /// Runs parts of a phase, each of as many operations as `part` is told, in turns with the raw device, and reports
    /// both.
    pub(super) fn beside_raw_reads(
        &self,
        case: &str,
        part: impl Fn(u64) -> Result<Outcome, BenchError>,
    ) -> Result<Measurement, BenchError> {
        let operations = self.options.operations();
        let duration = Duration::from_secs_f64(self.options.raw_seconds);
        if duration.is_zero() {
            return Ok(self.read_measurement(case, &part(operations)?));
        }
        let bytes = device::allocated_bytes(&self.directory);
        let mut raw = RawReads::new(self.options.dir.join(RAW_FILE), bytes, self.in_flight())?;
        let turn = duration / TURNS as u32;
        let mut outcome: Option<Outcome> = None;
        let mut rates = Vec::new();
        for number in 0..TURNS {
            raw.measure(turn)?;
            let share = operations * (number + 1) / TURNS - operations * number / TURNS;
            let measured = part(share)?;
            rates.push(rate(&measured));
            match &mut outcome {
                Some(outcome) => outcome.add(measured),
                None => outcome = Some(measured),
            }
        }
        raw.measure(turn)?;
        let outcome = outcome.expect("there is more than no turn");
        let per_s = |method| raw.rate(method).map(Rate::ops_per_s);
        let (by_ring, by_threads) = (per_s(RawMethod::Uring), per_s(RawMethod::Threads));
        let quotient = raw.quotient(&rates);
        let raw = raw.best().ok_or(std::io::Error::from(std::io::ErrorKind::Unsupported))?;
        Ok(self
            .read_measurement(case, &outcome)
            .metric("raw_reads_per_s_uring", by_ring)
            .metric("raw_reads_per_s_threads", by_threads)
            .metric("raw_reads_per_s", raw.ops_per_s())
            .metric("raw_p99_us", raw.latency_us(0.99))
            .metric("raw_p999_us", raw.latency_us(0.999))
            .metric("gets_per_raw_read", quotient))
    }

    /// Lookups that are at work at once.
    pub(super) fn in_flight(&self) -> usize {
        self.options.threads * self.options.batch
    }
}
