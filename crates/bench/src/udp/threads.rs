//! Processor time of the threads of a server.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::error::BenchError;

/// What a worker of a server has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WorkerTime {
    pub number: usize,
    pub used: Duration,
    /// How often it has slept.
    pub sleeps: u64,
}

impl WorkerTime {
    /// What it has used since then.
    pub(super) fn since(&self, before: &[Self]) -> Self {
        let before = before.iter().find(|before| before.number == self.number).copied().unwrap_or_default();
        Self {
            number: self.number,
            used: self.used.saturating_sub(before.used),
            sleeps: self.sleeps.saturating_sub(before.sleeps),
        }
    }
}

/// What each worker of a server has used.
pub(super) fn worker_times(process: u32) -> Result<Vec<WorkerTime>, BenchError> {
    let mut workers = Vec::new();
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let directory = thread?.path();
        if let Some(number) = worker_number(&directory) {
            let status = fs::read_to_string(directory.join("status")).unwrap_or_default();
            let sleeps = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            let sleeps = sleeps.and_then(|sleeps| sleeps.trim().parse().ok());
            workers.push(WorkerTime { number, used: used(&directory), sleeps: sleeps.unwrap_or(0) });
        }
    }
    Ok(workers)
}

/// What all threads of a process have used.
pub(super) fn process_time(process: u32) -> Result<Duration, BenchError> {
    let mut sum = Duration::ZERO;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        sum += used(&thread?.path());
    }
    Ok(sum)
}

/// The processor time of a thread; none if it has ended meanwhile.
fn used(directory: &Path) -> Duration {
    let text = fs::read_to_string(directory.join("schedstat")).unwrap_or_default();
    let used = text.split_whitespace().next().and_then(|first| first.parse().ok());
    Duration::from_nanos(used.unwrap_or(0))
}

/// The number in the name of a thread, if that is `serve-` and a number.
fn worker_number(directory: &Path) -> Option<usize> {
    let name = fs::read_to_string(directory.join("comm")).unwrap_or_default();
    let number = name.trim_end().strip_prefix("serve-")?;
    number.parse().ok()
}
