//! The phase `sustain`: latencies of puts at 90 % of the highest rate that can be kept up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::StoreBench;
use super::drive::Drive;
use crate::error::BenchError;
use crate::measurement::Measurement;

/// The share of the highest rate at which puts are made.
const SHARE: f64 = 0.9;

/// If a put is earlier than this, its thread sleeps instead of spinning.
const EARLY: Duration = Duration::from_micros(200);

impl StoreBench {
    /// Overwrites as fast as the store accepts for the whole time, which yields the highest rate (the time until
    /// background work has settled is included, since deferred work is not done); then at 90 % of that rate for the
    /// same time. A third of the time yielded rates that plans with long cycles cannot keep up, since their garbage had
    /// not yet accumulated.
    pub(super) fn sustain(&self) -> Result<Measurement, BenchError> {
        let duration = Duration::from_secs_f64(self.options.sustain_seconds);
        let fastest = Drive {
            name: "fastest",
            threads: self.options.writers,
            operations: u64::MAX,
            deadline: Some(duration),
            settles: true,
            inserts: false,
            is_first_come: false,
        };
        let outcome = self.drive(&fastest, |worker| self.overwrite(worker))?;
        let highest =
            outcome.operations as f64 / (outcome.elapsed + outcome.settling).as_secs_f64().max(1e-9);

        let interval = Duration::from_secs_f64(self.options.writers as f64 / (highest * SHARE).max(1e-3));
        let behind_max_ns = AtomicU64::new(0);
        let paced = Drive { name: "sustain", deadline: Some(duration), ..fastest };
        let outcome = self.drive(&paced, |worker| {
            let due = worker.start + interval.mul_f64(worker.done as f64);
            let behind = wait_until(due);
            behind_max_ns.fetch_max(behind.as_nanos() as u64, Ordering::Relaxed);
            worker.since = Instant::now();
            self.overwrite(worker)
        })?;
        Ok(self
            .write_measurement("sustain", &outcome)
            .metric("highest_ops_per_s", highest)
            .metric("behind_schedule_max_ms", behind_max_ns.into_inner() as f64 / 1e6))
    }
}

/// Waits until `due`; returns by how much it was already late.
fn wait_until(due: Instant) -> Duration {
    loop {
        let now = Instant::now();
        if now >= due {
            return now - due;
        }
        let early = due - now;
        if early > EARLY {
            std::thread::sleep(early - EARLY / 2);
        } else {
            std::hint::spin_loop();
        }
    }
}
