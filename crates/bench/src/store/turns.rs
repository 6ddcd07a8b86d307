//! Reads of the store in turns with reads of the raw device, since the speed of a virtual disk drifts within seconds.

use std::time::Duration;

use alluvium::ReadWait;
use alluvium_io::calibrate::{Rate, RawMethod};

use super::StoreBench;
use super::drive::Outcome;
use super::phases::{cpu_us_per_op, rate};
use crate::device::RawReads;
use crate::error::BenchError;
use crate::measurement::Measurement;

/// Number of turns of a phase. The device's rate drifts within seconds, so turns are shorter than that, and there are
/// enough of them for a meaningful median.
const TURNS: u64 = 10;

/// The measurements of one way to wait.
struct Way {
    wait: ReadWait,
    outcome: Outcome,
    rates: Vec<f64>,
}

impl StoreBench {
    /// Runs parts of a phase, each with the number of operations passed to `part`, by each of the `waits` in turns with
    /// raw reads of the database's tables, if it has any, and reports all. If several ways to wait are measured,
    /// results of the later ones have names of their own.
    pub(super) fn beside_raw_reads(
        &self,
        case: &str,
        waits: &[ReadWait],
        part: impl Fn(u64) -> Result<Outcome, BenchError>,
    ) -> Result<Measurement, BenchError> {
        let operations = self.options.operations();
        let duration = Duration::from_secs_f64(self.options.raw_seconds);
        let turns = if duration.is_zero() { 1 } else { TURNS };
        let mut raw = match duration.is_zero() {
            true => None,
            false => RawReads::of_tables(self.directories(), self.in_flight())?,
        };
        self.display.expect(operations * waits.len() as u64);
        let measure_raw = |raw: &mut Option<RawReads>| match raw {
            Some(raw) => raw.measure(duration / turns as u32),
            None => Ok(()),
        };
        let mut ways: Vec<Way> = Vec::new();
        for number in 0..turns {
            measure_raw(&mut raw)?;
            let share = operations * (number + 1) / turns - operations * number / turns;
            for &wait in waits {
                self.db.set_read_wait(wait);
                let outcome = part(share)?;
                let rate = rate(&outcome);
                match ways.iter_mut().find(|way| way.wait == wait) {
                    Some(way) => {
                        way.outcome.add(outcome);
                        way.rates.push(rate);
                    }
                    None => ways.push(Way { wait, outcome, rates: vec![rate] }),
                }
            }
            self.db.set_read_wait(waits[0]);
        }
        measure_raw(&mut raw)?;
        let (first, others) = ways.split_first().expect("there is a way to wait");
        let mut measurement = self.read_measurement(case, &first.outcome);
        if let Some(raw) = &raw {
            measurement =
                report_raw(measurement, raw)?.metric("gets_per_raw_read", raw.quotient(&first.rates));
        }
        for Way { wait, outcome, rates } in others {
            let name = |metric: &str| match wait {
                ReadWait::Adapt => format!("adapted_{metric}"),
                ReadWait::Sleep => format!("slept_{metric}"),
                ReadWait::Poll => format!("polled_{metric}"),
            };
            measurement = measurement
                .metric(&name("ops_per_s"), rate(outcome))
                .metric(&name("cpu_us_per_op"), cpu_us_per_op(outcome))
                .metric(&name("p99_us"), outcome.gets.quantile_us(0.99))
                .metric(&name("p999_us"), outcome.gets.quantile_us(0.999));
            if let Some(raw) = &raw {
                measurement = measurement.metric(&name("gets_per_raw_read"), raw.quotient(rates));
            }
        }
        Ok(measurement)
    }

    /// Number of lookups in flight at once.
    pub(super) fn in_flight(&self) -> usize {
        self.options.threads * self.options.batch
    }
}

fn report_raw(measurement: Measurement, raw: &RawReads) -> Result<Measurement, BenchError> {
    let per_s = |method| raw.rate(method).map(Rate::ops_per_s);
    let best = raw.best().ok_or(std::io::Error::from(std::io::ErrorKind::Unsupported))?;
    Ok(measurement
        .metric("raw_reads_per_s_uring", per_s(RawMethod::Uring))
        .metric("raw_reads_per_s_threads", per_s(RawMethod::Threads))
        .metric("raw_reads_per_s", best.ops_per_s())
        .metric("raw_p99_us", best.latency_us(0.99))
        .metric("raw_p999_us", best.latency_us(0.999)))
}
