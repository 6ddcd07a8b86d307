//! `bench udp`: requests in datagrams to a cache, and datagrams to an echo in the same run, which shows what the
//! network alone costs.
//!
//! Client and server share the processors, so the time of the server's threads is measured, too: the reciprocal of
//! `server_cpu_ns_per_op` is what one processor that does nothing else can serve.

mod client;
mod echo;
mod options;
mod server;
mod threads;

pub use options::UdpOptions;

use std::thread;
use std::time::Duration;

use crate::error::BenchError;
use crate::latencies::Latencies;
use crate::measurement::Measurement;
use crate::report::Report;
use echo::Echo;
use server::{Counted, Target};

/// What one thread of the client has done.
#[derive(Default)]
struct Outcome {
    requests: u64,
    absent: u64,
    datagrams: u64,
    resent: u64,
    latencies: Latencies,
}

impl Outcome {
    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.absent += other.absent;
        self.datagrams += other.datagrams;
        self.resent += other.resent;
        self.latencies.add(&other.latencies);
    }
}

/// Stores the items, sends datagrams to an echo and then requests to the server, each for a time.
///
/// # Errors
/// A value that is not the one of its key is a wrong answer.
pub fn run(options: &UdpOptions, report: &mut Report) -> Result<(), BenchError> {
    options.check()?;
    let target = Target::start(options)?;
    let outcome = measure(options, &target, report);
    target.stop()?;
    outcome
}

fn measure(options: &UdpOptions, target: &Target, report: &mut Report) -> Result<(), BenchError> {
    let base = |case: &str| {
        Measurement::new("udp", case)
            .config("batch", options.batch)
            .config("window", options.window)
            .config("threads", options.threads)
            .config("workers", options.workers)
            .config("items", options.items)
            .config("value_bytes", options.value_size)
            .config("get_share", options.get_share)
    };
    on_threads(options, |number| client::load(options, target.address, number))?;
    let echo = Echo::start()?;
    let echoed = echo::drive(options, echo.address);
    let used = echo.stop()?;
    let echoed = echoed?;
    let echo_per_s = echoed as f64 / options.seconds;
    let echo_ns = used.as_nanos() as f64 / echoed.max(1) as f64;
    report.add(
        base("echo").metric("raw_echo_per_s", echo_per_s).metric("raw_echo_cpu_ns_per_datagram", echo_ns),
    )?;
    let before = (target.processor_time()?, target.counted()?);
    let outcome = on_threads(options, |number| client::drive(options, target.address, number))?;
    let after = (target.processor_time()?, target.counted()?);
    report.add(rates(base("run"), options, &outcome, &before, &after))?;
    if outcome.absent > 0 && options.address.is_none() {
        return Err(BenchError::WrongAnswer(format!("{} items are absent", outcome.absent)));
    }
    Ok(())
}

fn rates(
    measurement: Measurement,
    options: &UdpOptions,
    outcome: &Outcome,
    before: &(Duration, Counted),
    after: &(Duration, Counted),
) -> Measurement {
    let requests = outcome.requests.max(1) as f64;
    let used = after.0.saturating_sub(before.0);
    let cpu_ns = used.as_nanos() as f64 / requests;
    let bursts = after.1.bursts.saturating_sub(before.1.bursts);
    let received = after.1.received.saturating_sub(before.1.received);
    let measurement = measurement
        .metric("ops_per_s", requests / options.seconds)
        .metric("server_cpu_ns_per_op", cpu_ns)
        .metric("ops_per_s_per_core", 1e9 / cpu_ns)
        .metric("burst_mean", received as f64 / bursts.max(1) as f64)
        .metric("loss", outcome.resent as f64 / outcome.datagrams.max(1) as f64)
        .metric("dropped", after.1.dropped.saturating_sub(before.1.dropped))
        .metric("absent", outcome.absent);
    outcome.latencies.report(measurement)
}

/// Runs `work` with the number of each thread; returns what all have done.
fn on_threads(
    options: &UdpOptions,
    work: impl Fn(u64) -> Result<Outcome, BenchError> + Sync,
) -> Result<Outcome, BenchError> {
    let outcomes: Vec<Result<Outcome, BenchError>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..options.threads)
            .map(|number| {
                let work = &work;
                scope.spawn(move || work(number))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let mut all = Outcome::default();
    for outcome in outcomes {
        all.add(&outcome?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_the_one_of_its_key() {
        for batch in [1, 25] {
            let options = UdpOptions { batch, items: 2_000, seconds: 0.05, ..UdpOptions::default() };
            let mut report = Report::new(true);
            run(&options, &mut report).unwrap();
            let metrics = &report.measurements()[1].metrics;
            assert!(metrics["ops_per_s"].as_f64().unwrap() > 0.0);
            assert!(metrics["burst_mean"].as_f64().unwrap() >= 1.0);
            assert_eq!(metrics["absent"], 0);
            assert!(report.measurements()[0].metrics["raw_echo_per_s"].as_f64().unwrap() > 0.0);
        }
    }
}
