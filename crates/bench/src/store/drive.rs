//! Runs the threads of a phase and measures them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use alluvium::Stats;
use alluvium_io::DeviceCounters;

use super::StoreBench;
use super::sampler::{Progress, READING_INTERVAL, Samples, WRITING_INTERVAL};
use crate::error::BenchError;
use crate::latencies::Latencies;
use crate::process;
use crate::random::Random;

/// The total work of a phase's threads.
#[derive(Clone, Copy, Debug)]
pub struct Drive {
    /// Name of the phase.
    pub name: &'static str,
    /// Threads.
    pub threads: usize,
    /// Maximum operations of all threads together.
    pub operations: u64,
    /// When to stop, if not after a number of operations.
    pub deadline: Option<Duration>,
    /// Whether to wait for background work at the end and include it.
    pub settles: bool,
    /// Whether each operation adds an item.
    pub inserts: bool,
    /// Whether threads continue as long as any operation is left, so that all end together; otherwise each has an equal
    /// share. With fewer threads at the end, fewer reads would be in flight.
    pub is_first_come: bool,
}

/// The work of one step of a thread.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// This many gets, in one call.
    Gets(u64),
    /// This many gets, whose latencies the step has recorded itself.
    Recorded(u64),
    /// One put.
    Put,
}

/// One thread of a phase.
#[derive(Debug)]
pub struct Worker {
    /// Its number.
    pub thread: u64,
    /// Number of all threads.
    pub threads: u64,
    /// Operations it has done.
    pub done: u64,
    /// Maximum operations that it has to do.
    pub quota: u64,
    /// Its own random numbers.
    pub random: Random,
    /// A buffer for a key.
    pub key: Vec<u8>,
    /// A buffer for a value.
    pub value: Vec<u8>,
    /// When the phase started.
    pub start: Instant,
    /// When the operation in progress started: at the end of the previous one, unless the step sets it.
    pub since: Instant,
    gets: Latencies,
    puts: Latencies,
}

impl Worker {
    /// A uniformly chosen item among those that only this thread overwrites. Requires at least as many items as
    /// threads.
    pub fn own_item(&mut self, items: u64) -> u64 {
        self.random.below(items / self.threads) * self.threads + self.thread
    }

    /// Its random numbers, and where to record latencies of gets for [`Step::Recorded`].
    pub fn random_and_gets(&mut self) -> (&mut Random, &mut Latencies) {
        (&mut self.random, &mut self.gets)
    }
}

/// The measurements of a phase.
#[derive(Debug)]
pub struct Outcome {
    /// Operations done.
    pub operations: u64,
    /// Time from the first operation to the last.
    pub elapsed: Duration,
    /// Time from the last operation until background work had settled.
    pub settling: Duration,
    /// CPU time of the whole process during both.
    pub cpu: Duration,
    /// Latencies of calls that get.
    pub gets: Latencies,
    /// Latencies of puts.
    pub puts: Latencies,
    /// Memory and space during the phase.
    pub samples: Samples,
    /// The device's traffic, including settling.
    pub device: Option<DeviceCounters>,
    /// Pages that the engine read.
    pub page_reads: u64,
    /// The engine's statistics before and after; they include whatever else ran between parts of a phase.
    pub stats: (Stats, Stats),
}

impl Outcome {
    /// Adds the measurements of a later part of the same phase.
    pub fn add(&mut self, later: Self) {
        self.operations += later.operations;
        self.elapsed += later.elapsed;
        self.settling += later.settling;
        self.cpu += later.cpu;
        self.gets.add(&later.gets);
        self.puts.add(&later.puts);
        self.samples.add(later.samples);
        self.device = self.device.zip(later.device).map(|(sum, more)| sum.plus(&more));
        self.page_reads += later.page_reads;
        self.stats.1 = later.stats.1;
    }
}

/// Operations between two updates of the shared counters.
const BURST: u64 = 64;

impl StoreBench {
    /// Runs `step` in the threads of `drive` until each has done its share, and measures. The first error stops all
    /// threads.
    pub(super) fn drive<F>(&self, drive: &Drive, step: F) -> Result<Outcome, BenchError>
    where
        F: Fn(&mut Worker) -> Result<Step, BenchError> + Sync,
    {
        let progress = Progress::default();
        progress.items.store(if drive.inserts { 0 } else { self.workload.live_items() }, Ordering::Relaxed);
        let display = self.display.drive(drive);
        let is_done = AtomicBool::new(false);
        let stats_before = self.db.stats();
        let device_before = self.device.settled_counters();
        let cpu_before = process::cpu_time();
        let directories = self.directories();
        let interval = if drive.settles { WRITING_INTERVAL } else { READING_INTERVAL };
        std::thread::scope(|scope| {
            let sampler = scope
                .spawn(|| Samples::collect(&self.db, &directories, &progress, &is_done, display, interval));
            let start = Instant::now();
            let outcome = self.drive_threads(drive, &progress, start, &step);
            let elapsed = start.elapsed();
            let settled = if drive.settles && outcome.is_ok() { self.settle() } else { Ok(()) };
            let settling = start.elapsed() - elapsed;
            let cpu = process::cpu_time() - cpu_before;
            is_done.store(true, Ordering::Release);
            sampler.thread().unpark();
            let samples = sampler.join().unwrap_or_default();
            let (operations, gets, puts) = outcome?;
            settled?;
            self.verified.fetch_add(operations - puts.count(), Ordering::Relaxed);
            let device =
                device_before.zip(self.device.settled_counters()).map(|(before, after)| after.since(&before));
            let stats = (stats_before, self.db.stats());
            let page_reads = stats.1.traffic.page_reads - stats.0.traffic.page_reads;
            Ok(Outcome { operations, elapsed, settling, cpu, gets, puts, samples, device, page_reads, stats })
        })
    }

    /// Waits until the store has no background work.
    pub(super) fn settle(&self) -> Result<(), BenchError> {
        self.db.wait_idle()?;
        Ok(())
    }

    fn drive_threads<F>(
        &self,
        drive: &Drive,
        progress: &Progress,
        start: Instant,
        step: &F,
    ) -> Result<(u64, Latencies, Latencies), BenchError>
    where
        F: Fn(&mut Worker) -> Result<Step, BenchError> + Sync,
    {
        let is_stopped = AtomicBool::new(false);
        let threads = drive.threads as u64;
        std::thread::scope(|scope| {
            let handles: Vec<_> = (0..threads)
                .map(|thread| {
                    let share = drive.operations / threads + u64::from(thread < drive.operations % threads);
                    let quota = if drive.is_first_come { drive.operations } else { share };
                    let mut worker = Worker {
                        thread,
                        threads,
                        done: 0,
                        quota,
                        random: Random::new(self.options.seed, thread ^ self.next_stream()),
                        key: Vec::new(),
                        value: Vec::new(),
                        start,
                        since: start,
                        gets: Latencies::default(),
                        puts: Latencies::default(),
                    };
                    let is_stopped = &is_stopped;
                    scope.spawn(move || {
                        let outcome = work(&mut worker, drive, progress, is_stopped, step);
                        if outcome.is_err() {
                            is_stopped.store(true, Ordering::Relaxed);
                        }
                        outcome.map(|()| worker)
                    })
                })
                .collect();
            let (mut operations, mut gets, mut puts) = (0, Latencies::default(), Latencies::default());
            let mut first_error = None;
            for handle in handles {
                match handle.join() {
                    Ok(Ok(worker)) => {
                        operations += worker.done;
                        gets.add(&worker.gets);
                        puts.add(&worker.puts);
                    }
                    Ok(Err(error)) => first_error = first_error.or(Some(error)),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            first_error.map_or(Ok((operations, gets, puts)), Err)
        })
    }
}

fn work<F>(
    worker: &mut Worker,
    drive: &Drive,
    progress: &Progress,
    is_stopped: &AtomicBool,
    step: &F,
) -> Result<(), BenchError>
where
    F: Fn(&mut Worker) -> Result<Step, BenchError> + Sync,
{
    let mut reported = 0;
    let burst = if drive.is_first_come { 1 } else { BURST };
    // The clock is read once per operation: the end of one is the start of the next, so making the key and checking the
    // answer count as part of the operation.
    worker.since = Instant::now();
    while worker.done < worker.quota {
        let done = step(worker)?;
        let now = Instant::now();
        let latency = now - worker.since;
        worker.since = now;
        match done {
            Step::Gets(count) => {
                worker.gets.record(latency);
                worker.done += count;
            }
            Step::Recorded(count) => worker.done += count,
            Step::Put => {
                worker.puts.record(latency);
                worker.done += 1;
            }
        }
        if worker.done - reported >= burst || worker.done == worker.quota {
            let count = worker.done - reported;
            let all_done = progress.operations.fetch_add(count, Ordering::Relaxed) + count;
            if drive.inserts {
                progress.items.fetch_add(worker.done - reported, Ordering::Relaxed);
            }
            reported = worker.done;
            let is_late = drive.deadline.is_some_and(|deadline| now - worker.start >= deadline);
            if is_late || all_done >= drive.operations || is_stopped.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
    }
    Ok(())
}
