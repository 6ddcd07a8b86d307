//! [`Meter`]: times what a worker does.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use super::latency::add;
use super::worker_metrics::WorkerMetrics;
use crate::commands::{self, COMMANDS};
use crate::get_batch::LookedUp;

/// A worker's side of its counters.
///
/// The clock is read once for each command of a pipeline: one ends where the next begins, so parsing belongs to the
/// command that it finds. A batch of gets is timed as a whole, and each of its gets took that time. A write takes until
/// it is durable.
pub(crate) struct Meter {
    metrics: Arc<WorkerMetrics>,
    /// Position of `GET` in the table of commands.
    get: usize,
    /// Where the next command of the pipeline begins.
    begins: Option<Instant>,
    /// The writes that are not committed, with their beginnings.
    writes: VecDeque<(usize, Instant)>,
    /// Number of those that belong to earlier rounds.
    earlier: usize,
}

impl Meter {
    pub(crate) fn new(metrics: Arc<WorkerMetrics>) -> Self {
        let get = commands::position(b"get").expect("in the table");
        Self { metrics, get, begins: None, writes: VecDeque::new(), earlier: 0 }
    }

    /// A pipeline of commands begins: what was done before belongs to none of them.
    #[inline]
    pub(crate) fn begin_pipeline(&mut self) {
        self.begins = None;
    }

    /// The beginning of the next command of the pipeline.
    #[inline]
    pub(crate) fn begin(&mut self) -> Instant {
        self.begins.take().unwrap_or_else(Instant::now)
    }

    /// A command has ended, successfully or not. `position` is that in the table of commands, if it is there.
    pub(crate) fn executed(
        &mut self,
        position: Option<usize>,
        begun: Instant,
        is_write: bool,
        succeeded: bool,
    ) {
        let position = position.unwrap_or(COMMANDS.len());
        let ended = Instant::now();
        self.begins = Some(ended);
        let command = &self.metrics.commands[position];
        if !succeeded {
            add(&command.failed, 1);
        }
        if is_write {
            self.writes.push_back((position, begun));
        } else {
            command.durations.record(nanoseconds(begun, ended), 1);
        }
    }

    /// A batch of gets was looked up.
    pub(crate) fn looked_up(&mut self, begun: Instant, gets: LookedUp) {
        let ended = Instant::now();
        let command = &self.metrics.commands[self.get];
        command.durations.record(nanoseconds(begun, ended), gets.gets);
        add(&command.failed, gets.failed);
        add(&self.metrics.absent_gets, gets.absent);
        add(&self.metrics.get_batches, 1);
        self.begins = Some(ended);
    }

    /// A round has ended; returns the number of its writes.
    pub(crate) fn end_round(&mut self) -> usize {
        let writes = self.writes.len() - self.earlier;
        self.earlier = self.writes.len();
        writes
    }

    /// The oldest `writes` writes of rounds that have ended are durable, or their commit has failed.
    pub(crate) fn committed(&mut self, begun: Instant, writes: usize) {
        let ended = Instant::now();
        self.metrics.commits.record(nanoseconds(begun, ended), 1);
        self.earlier -= writes;
        for (position, begun) in self.writes.drain(..writes) {
            self.metrics.commands[position].durations.record(nanoseconds(begun, ended), 1);
        }
    }

    pub(crate) fn received(&self, bytes: usize) {
        add(&self.metrics.received_bytes, bytes as u64);
    }

    pub(crate) fn sent(&self, bytes: usize) {
        add(&self.metrics.sent_bytes, bytes as u64);
    }
}

fn nanoseconds(begun: Instant, ended: Instant) -> u64 {
    u64::try_from(ended.saturating_duration_since(begun).as_nanos()).unwrap_or(u64::MAX)
}
