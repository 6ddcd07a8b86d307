//! [`Totals`]: what all workers have done together.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::latency::{BUCKETS, Latencies, bound_ns};
use super::worker_metrics::WorkerMetrics;
use crate::commands::COMMANDS;

/// Counters since a moment: the start, or the last `CONFIG RESETSTAT`. Workers only add to theirs, so a reset notes
/// what they were.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    /// In the order of the commands' table, without unknown commands.
    commands: Vec<CommandTotals>,
    pub(crate) absent_gets: u64,
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
}

#[derive(Clone, Debug, Default)]
struct CommandTotals {
    durations: Latencies,
    failed: u64,
}

/// What was done with one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandStatistics {
    pub(crate) name: &'static str,
    pub(crate) calls: u64,
    pub(crate) total_us: u64,
    pub(crate) failed: u64,
    /// Bounds in microseconds, and the number of calls that took at most that long; only where the number grows.
    pub(crate) at_most_us: Vec<(u64, u64)>,
}

impl Totals {
    pub(crate) fn of(workers: &[Arc<WorkerMetrics>]) -> Self {
        let mut totals = Self { commands: vec![CommandTotals::default(); COMMANDS.len()], ..Self::default() };
        for worker in workers {
            for (total, command) in totals.commands.iter_mut().zip(&worker.commands) {
                total.durations.add(&command.durations);
                total.failed += command.failed.load(Ordering::Relaxed);
            }
            totals.absent_gets += worker.absent_gets.load(Ordering::Relaxed);
            totals.received_bytes += worker.received_bytes.load(Ordering::Relaxed);
            totals.sent_bytes += worker.sent_bytes.load(Ordering::Relaxed);
        }
        totals
    }

    /// What has come since an earlier moment.
    pub(crate) fn since(mut self, earlier: &Self) -> Self {
        for (total, earlier) in self.commands.iter_mut().zip(&earlier.commands) {
            total.failed -= earlier.failed;
            total.durations.total_ns = total.durations.total_ns.wrapping_sub(earlier.durations.total_ns);
            for (count, earlier) in total.durations.counts.iter_mut().zip(&earlier.durations.counts) {
                *count -= earlier;
            }
        }
        self.absent_gets -= earlier.absent_gets;
        self.received_bytes -= earlier.received_bytes;
        self.sent_bytes -= earlier.sent_bytes;
        self
    }

    /// The commands that were called, by their names.
    pub(crate) fn commands(&self) -> impl Iterator<Item = CommandStatistics> + '_ {
        COMMANDS.iter().zip(&self.commands).filter(|(_, total)| total.durations.count() > 0).map(
            |(command, total)| CommandStatistics {
                name: command.name,
                calls: total.durations.count(),
                total_us: total.durations.total_ns / 1_000,
                failed: total.failed,
                at_most_us: at_most_us(&total.durations),
            },
        )
    }
}

/// At the powers of two of microseconds, which are bounds of buckets, and at last for all.
fn at_most_us(durations: &Latencies) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    let (mut calls, mut before) = (0, 0);
    for (bucket, count) in durations.counts.iter().enumerate() {
        calls += count;
        let us = bound_ns(bucket) / 1_000;
        let is_last = bucket + 1 == BUCKETS;
        if calls > before && (is_last || us.is_power_of_two() && bound_ns(bucket) == us * 1_000) {
            found.push((us, calls));
            before = calls;
        }
    }
    found
}
