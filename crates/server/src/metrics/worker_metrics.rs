//! [`WorkerMetrics`]: what one worker has done.

use std::sync::atomic::AtomicU64;

use super::latency::LatencyHistogram;
use crate::commands::COMMANDS;
use crate::udp::Counters;

/// Counters of one worker. Only it writes them, so that no cache line moves between processors while requests are
/// served; the alignment keeps what others write off these lines. None orders other memory.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct WorkerMetrics {
    /// In the order of the commands' table; the last entry is for names that are not in it.
    pub(super) commands: Box<[CommandMetrics]>,
    /// Durations of commits.
    pub(super) commits: LatencyHistogram,
    /// Gets that found no item.
    pub(super) absent_gets: AtomicU64,
    /// Batches in which gets were looked up.
    pub(super) get_batches: AtomicU64,
    pub(super) received_bytes: AtomicU64,
    pub(super) sent_bytes: AtomicU64,
    /// Of datagrams, if any are served.
    pub(crate) datagrams: Counters,
}

/// Counters of one command.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct CommandMetrics {
    pub durations: LatencyHistogram,
    /// Executions that ended in an error.
    pub failed: AtomicU64,
}

impl WorkerMetrics {
    pub(crate) fn new() -> Self {
        Self {
            commands: (0..=COMMANDS.len()).map(|_| CommandMetrics::default()).collect(),
            commits: LatencyHistogram::default(),
            absent_gets: AtomicU64::default(),
            get_batches: AtomicU64::default(),
            received_bytes: AtomicU64::default(),
            sent_bytes: AtomicU64::default(),
            datagrams: Counters::default(),
        }
    }
}
