//! `bench server`: requests to a server over its network protocol, as many in flight as wanted. It measures any server
//! that speaks the protocol, so that the same client is used for ours and for others.

mod client;
mod mix;
mod options;
mod wire;

pub use options::ServerBenchOptions;

use std::fs;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::BenchError;
use crate::latencies::Latencies;
use crate::measurement::Measurement;
use crate::random::Random;
use crate::report::Report;
use client::Client;
use mix::{Mix, Operation};
use wire::{Protocol, Request};

/// What one thread has done.
#[derive(Default)]
struct Outcome {
    requests: u64,
    absent: u64,
    latencies: Latencies,
}

impl Outcome {
    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.absent += other.absent;
        self.latencies.add(&other.latencies);
    }
}

/// Stores the items if that is wanted, then sends requests for a time.
///
/// # Errors
/// A reply that is not the one to its request is a wrong answer.
pub fn run(options: &ServerBenchOptions, report: &mut Report) -> Result<(), BenchError> {
    options.check()?;
    let base = |case: &str| {
        Measurement::new("server", case)
            .config("protocol", options.protocol.name())
            .config("connections", options.connections)
            .config("depth", options.depth)
            .config("items", options.items)
            .config("value_bytes", options.value_size)
            .config("mix", options.mix.to_string())
    };
    if options.load {
        let (outcome, elapsed) = on_threads(options, |client, thread| load(options, client, thread))?;
        report.add(rates(base("load"), &outcome, elapsed, None))?;
    }
    if options.seconds > 0.0 {
        let before = options.pid.map(processor_time).transpose()?;
        let (outcome, elapsed) = on_threads(options, |client, thread| drive(options, client, thread))?;
        let after = options.pid.map(processor_time).transpose()?;
        let used = before.zip(after).map(|(before, after)| after.saturating_sub(before));
        report.add(rates(base("run"), &outcome, elapsed, used))?;
    }
    Ok(())
}

fn rates(
    measurement: Measurement,
    outcome: &Outcome,
    elapsed: Duration,
    server: Option<Duration>,
) -> Measurement {
    let requests = outcome.requests as f64;
    let measurement = measurement
        .metric("requests_per_s", requests / elapsed.as_secs_f64())
        .metric("absent", outcome.absent);
    let measurement = match server {
        Some(used) => measurement.metric("server_cpu_ns", used.as_nanos() as f64 / requests),
        None => measurement,
    };
    outcome.latencies.report(measurement)
}

/// Runs `work` with the connections of each thread; returns what all have done, and how long that took.
fn on_threads(
    options: &ServerBenchOptions,
    work: impl Fn(&mut Client, u64) -> Result<Outcome, BenchError> + Sync,
) -> Result<(Outcome, Duration), BenchError> {
    let start = Instant::now();
    let outcomes: Vec<Result<Outcome, BenchError>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..options.threads)
            .map(|thread| {
                let work = &work;
                scope.spawn(move || {
                    let share = options.connections / options.threads
                        + u64::from(thread < options.connections % options.threads);
                    let streams: Result<Vec<TcpStream>, _> =
                        (0..share).map(|_| TcpStream::connect(&options.address)).collect();
                    let mut client = Client::new(streams?, options.protocol, options.value_size as usize)?;
                    work(&mut client, thread)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let mut all = Outcome::default();
    for outcome in outcomes {
        all.add(&outcome?);
    }
    Ok((all, start.elapsed()))
}

/// Stores the items, and the counters if the mix needs them.
fn load(options: &ServerBenchOptions, client: &mut Client, thread: u64) -> Result<Outcome, BenchError> {
    let mut outcome = Outcome::default();
    let kinds: &[Operation] = match options.mix.has(Operation::Increment) {
        true => &[Operation::Set, Operation::SetCounter],
        false => &[Operation::Set],
    };
    for &operation in kinds {
        let mut next = thread;
        client.run(options.depth, &mut outcome.latencies, || {
            let item = next;
            next += options.threads;
            (item < options.items).then_some(Request { operation, item })
        })?;
    }
    outcome.requests = client.take_requests();
    Ok(outcome)
}

fn drive(options: &ServerBenchOptions, client: &mut Client, thread: u64) -> Result<Outcome, BenchError> {
    let mut outcome = Outcome::default();
    let mut random = Random::new(options.seed, thread);
    let deadline = Instant::now() + Duration::from_secs_f64(options.seconds);
    let mix = &options.mix;
    let mut drawn = 0_u64;
    let mut is_over = false;
    client.run(options.depth, &mut outcome.latencies, || {
        drawn += 1;
        if drawn.is_multiple_of(1 << 7) {
            is_over = Instant::now() >= deadline;
        }
        let operation = mix.draw(&mut random);
        (!is_over).then(|| Request { operation, item: random.below(options.items) })
    })?;
    (outcome.requests, outcome.absent) = (client.take_requests(), client.take_absent());
    if options.all_present && outcome.absent > 0 {
        return Err(BenchError::WrongAnswer(format!("{} items are absent", outcome.absent)));
    }
    Ok(outcome)
}

/// Processor time that all threads of a process have used.
fn processor_time(process: u32) -> Result<Duration, BenchError> {
    let mut nanoseconds = 0;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        // A thread may have ended meanwhile.
        let text = fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        nanoseconds +=
            text.split_whitespace().next().and_then(|first| first.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(nanoseconds))
}

#[cfg(test)]
mod tests;
