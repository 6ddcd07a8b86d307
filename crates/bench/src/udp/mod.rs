//! `bench udp`: requests in datagrams to a cache, and datagrams to an echo in the same run, which shows what the
//! network alone costs.
//!
//! Client and server share the processors, so the time of the server's threads is measured, too: the reciprocal of
//! `server_cpu_ns_per_op` is what one processor that does nothing else can serve.

mod client;
mod echo;
mod flight;
mod memcached;
mod options;
mod server;
mod threads;

pub use memcached::LoadedMemcached;
pub use options::{Direction, Mode, UdpOptions};

use std::thread;

use crate::cache::requests::Zipf;
use crate::error::BenchError;
use crate::latencies::Latencies;
use crate::measurement::Measurement;
use crate::report::Report;
use echo::Echo;
use server::{Counted, Target};
use threads::WorkerTime;

/// What one thread of the client has done.
#[derive(Default)]
struct Outcome {
    /// Requests that were answered.
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
    outcome?;
    if let Some(program) = &options.with_memcached {
        report.add(LoadedMemcached::start(program, options)?.measure(options)?)?;
    }
    Ok(())
}

/// A measurement with the options that all cases have.
fn described(options: &UdpOptions, case: &str) -> Measurement {
    Measurement::new("udp", case)
        .config("batch", options.batch)
        .config("window", options.window())
        .config("calls", options.calls)
        .config("threads", options.threads)
        .config("workers", options.workers)
        .config("items", options.items)
        .config("key_bytes", options.key_size)
        .config("value_bytes", options.value_size)
        .config("get_share", options.get_share)
        .config("skew", options.skew)
        .config("rate", options.rate)
}

fn measure(options: &UdpOptions, target: &Target, report: &mut Report) -> Result<(), BenchError> {
    on_threads(options, |number| client::load(options, target.address, number))?;
    let echo = Echo::start()?;
    let echoed = on_threads(options, |_| {
        let echoed = echo::drive(options, echo.address)?;
        Ok(Outcome { requests: echoed, ..Outcome::default() })
    });
    let used = echo.stop()?;
    let echoed = echoed?.requests;
    let echo_per_s = echoed as f64 / options.seconds;
    let echo_ns = used.as_nanos() as f64 / echoed.max(1) as f64;
    report.add(
        described(options, "echo")
            .metric("raw_echo_per_s", echo_per_s)
            .metric("raw_echo_cpu_ns_per_datagram", echo_ns),
    )?;
    let zipf = zipf(options);
    let before = (target.worker_times()?, target.counted()?);
    let outcome =
        on_threads(options, |number| client::drive(options, zipf.as_ref(), target.address, number))?;
    let after = (target.worker_times()?, target.counted()?);
    let mut run = described(options, "run");
    if options.address.is_none() {
        run = run.config("mode", options.mode.name()).config("direction", options.direction.name());
    }
    report.add(rates(run, options, &outcome, &before, &after))?;
    // A cache with room for all forgets an item only when too many have one place in its index.
    if outcome.absent * 1000 > outcome.requests && options.address.is_none() {
        return Err(BenchError::WrongAnswer(format!("{} items are absent", outcome.absent)));
    }
    Ok(())
}

fn zipf(options: &UdpOptions) -> Option<Zipf> {
    (options.skew > 0.0).then(|| Zipf::new(options.items, options.skew))
}

fn rates(
    measurement: Measurement,
    options: &UdpOptions,
    outcome: &Outcome,
    before: &(Vec<WorkerTime>, Counted),
    after: &(Vec<WorkerTime>, Counted),
) -> Measurement {
    let requests = outcome.requests.max(1) as f64;
    let workers: Vec<WorkerTime> = after.0.iter().map(|worker| worker.since(&before.0)).collect();
    let nanoseconds = |worker: &WorkerTime| worker.used.as_nanos() as f64;
    let cpu_ns = workers.iter().map(nanoseconds).sum::<f64>() / requests;
    let busiest_ns = workers.iter().map(nanoseconds).fold(0.0, f64::max) / requests;
    let sleeps: u64 = workers.iter().map(|worker| worker.sleeps).sum();
    let counted = |of: fn(&Counted) -> u64| of(&after.1).saturating_sub(of(&before.1)) as f64;
    let bursts = counted(|counted| counted.bursts).max(1.0);
    let measurement = measurement
        .metric("ops_per_s", requests / options.seconds)
        .metric("server_cpu_ns_per_op", cpu_ns)
        .metric("ops_per_s_per_core", 1e9 / cpu_ns)
        // What all workers serve that have a processor each: the busiest one is the limit.
        .metric("ops_per_s_of_all_cores", 1e9 / busiest_ns)
        .metric("burst_mean", counted(|counted| counted.received) / bursts)
        .metric("sleeps_per_burst", sleeps as f64 / bursts)
        .metric("handed_over_per_op", counted(|counted| counted.handed_over) / requests)
        .metric("not_handed_over", counted(|counted| counted.not_handed_over))
        .metric("loss", outcome.resent as f64 / outcome.datagrams.max(1) as f64)
        .metric("dropped", counted(|counted| counted.dropped))
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
        let cases = [
            (1, Mode::Crcw, Direction::Client, None),
            (25, Mode::Crew, Direction::Client, Some(50_000.0)),
            (1, Mode::Erew, Direction::Client, None),
            (25, Mode::Erew, Direction::Software, None),
            (1, Mode::Crew, Direction::Software, Some(50_000.0)),
        ];
        for (batch, mode, direction, rate) in cases {
            let (skew, workers) = (if batch == 1 { 0.99 } else { 0.0 }, 2);
            let seconds = 0.05;
            let sizes = UdpOptions { items: 2_000, key_size: 20, value_size: 30, ..UdpOptions::default() };
            let options = UdpOptions { batch, mode, direction, rate, skew, workers, seconds, ..sizes };
            let is_handed_over = direction == Direction::Software;
            let mut report = Report::new(true);
            run(&options, &mut report).unwrap();
            let metrics = &report.measurements()[1].metrics;
            assert!(metrics["ops_per_s"].as_f64().unwrap() > 0.0);
            assert!(metrics["burst_mean"].as_f64().unwrap() >= 1.0);
            assert_eq!(metrics["absent"], 0);
            assert_eq!(metrics["handed_over_per_op"].as_f64().unwrap() > 0.0, is_handed_over);
            assert!(report.measurements()[0].metrics["raw_echo_per_s"].as_f64().unwrap() > 0.0);
        }
    }
}
