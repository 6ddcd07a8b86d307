//! The figures of the server itself, followed by those of its store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::latency::Latencies;
use super::metric::{Metric, MetricSink};
use super::samples::{HistogramFamily, Samples};
use super::worker_metrics::WorkerMetrics;
use super::{health, process};
use crate::commands::COMMANDS;
use crate::shared::Shared;
use crate::udp;

/// The label of requests whose command does not exist.
const UNKNOWN: &str = "unknown";

/// All figures of this moment.
pub(super) fn describe(shared: &Shared, with_documents: bool) -> Samples {
    let mut samples = Samples { with_documents, ..Samples::default() };
    server(shared, &mut samples);
    workers(&shared.worker_metrics, &mut samples);
    if shared.directing.is_some() {
        let counters = shared.worker_metrics.iter().map(|worker| &worker.datagrams);
        udp::figures(counters).iter().for_each(|(metric, sum)| samples.number(*metric, &[], *sum as f64));
    }
    shared.store.observe(&mut samples);
    samples
}

fn server(shared: &Shared, sink: &mut Samples) {
    let build = Metric::info("build", "The version of the server.");
    sink.number(build, &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    let uptime = shared.started.elapsed();
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(uptime);
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
    let seconds = |time: Duration| time.as_secs_f64();
    let figures = [
        (Metric::gauge("start_time_seconds", "When the server was started, since 1970."), seconds(started)),
        (Metric::gauge("uptime_seconds", "How long the server has run."), seconds(uptime)),
        (Metric::counter("cpu_seconds", "Processor time of the process."), process::cpu_seconds()),
        (
            Metric::gauge("resident_memory_bytes", "Memory of the whole process."),
            process::resident_bytes().unwrap_or(f64::NAN),
        ),
        (Metric::gauge("workers", "Threads that serve clients."), shared.worker_metrics.len() as f64),
        (
            Metric::gauge("clients", "Connections that are open."),
            shared.clients.load(Ordering::Relaxed) as f64,
        ),
        (
            Metric::gauge("clients_limit", "Maximum number of connections served at once."),
            shared.clients_max() as f64,
        ),
        (
            Metric::counter(
                "connections_accepted",
                "Connections accepted, those that were then refused included.",
            ),
            load(&shared.connections_accepted),
        ),
        (
            Metric::counter("connections_refused", "Connections closed because too many were open."),
            load(&shared.connections_refused),
        ),
        (
            Metric::gauge("client_memory_bytes", "What clients make the server hold, connections included."),
            shared.memory.used() as f64,
        ),
        (
            Metric::gauge("client_memory_limit_bytes", "How much of that all clients together may have."),
            shared.memory.bytes_max() as f64,
        ),
        (
            Metric::gauge("clients_waiting", "Clients that wait for memory that others hold."),
            shared.memory.waiting() as f64,
        ),
        (
            Metric::counter("clients_evicted", "Connections closed because of the memory that they held."),
            shared.memory.closed() as f64,
        ),
        (
            Metric::counter("store_resumptions", "How often a store that had failed was resumed."),
            load(&shared.resumptions),
        ),
    ];
    figures.into_iter().for_each(|(metric, value)| sink.number(metric, &[], value));
    let buffers =
        Metric::gauge("client_buffer_bytes", "Bytes received and not executed, and replies not sent.");
    let clients = shared.connected.all();
    let sums = clients
        .iter()
        .fold((0, 0), |sum, client| (sum.0 + client.input_bytes(), sum.1 + client.output_bytes()));
    sink.number(buffers, &[("direction", "input")], sums.0 as f64);
    sink.number(buffers, &[("direction", "output")], sums.1 as f64);
    let is_in = Metric::gauge("health", "1 for the state that the store is in, 0 for the others.");
    let present = health::state(&shared.store.health());
    for state in health::STATES {
        sink.number(is_in, &[("state", state)], f64::from(u8::from(state == present)));
    }
}

fn workers(workers: &[Arc<WorkerMetrics>], sink: &mut Samples) {
    let sum = |counter: fn(&WorkerMetrics) -> &AtomicU64| {
        workers.iter().map(|worker| counter(worker).load(Ordering::Relaxed)).sum::<u64>() as f64
    };
    let figures = [
        (
            Metric::counter("absent_gets", "Keys that GET found no item under."),
            sum(|worker| &worker.absent_gets),
        ),
        (
            Metric::counter("get_batches", "Batches in which GETs of all clients were looked up together."),
            sum(|worker| &worker.get_batches),
        ),
        (
            Metric::counter("network_received_bytes", "Bytes received from clients."),
            sum(|worker| &worker.received_bytes),
        ),
        (Metric::counter("network_sent_bytes", "Bytes sent to clients."), sum(|worker| &worker.sent_bytes)),
    ];
    figures.into_iter().for_each(|(metric, value)| sink.number(metric, &[], value));
    let mut durations = Vec::new();
    for position in 0..=COMMANDS.len() {
        let name = COMMANDS.get(position).map_or(UNKNOWN, |command| command.name);
        let (mut latencies, mut failed) = (Latencies::default(), 0);
        for command in workers.iter().map(|worker| &worker.commands[position]) {
            latencies.add(&command.durations);
            failed += command.failed.load(Ordering::Relaxed);
        }
        // Clients use few of the commands.
        if latencies.count() == 0 && failed == 0 {
            continue;
        }
        let commands = Metric::counter("commands", "Commands executed, by name; those in use are shown.");
        let failures = Metric::counter("commands_failed", "Commands that were answered by an error.");
        sink.number(commands, &[("command", name)], latencies.count() as f64);
        sink.number(failures, &[("command", name)], failed as f64);
        durations.push((vec![("command", name.to_owned())], latencies));
    }
    sink.histograms.push(HistogramFamily {
        name: "command_duration_seconds",
        help: "Time from a command's bytes to its reply. For writes this includes the commit; GETs take the time of \
               their batch.",
        samples: durations,
    });
    let mut commits = Latencies::default();
    workers.iter().for_each(|worker| commits.add(&worker.commits));
    sink.histograms.push(HistogramFamily {
        name: "commit_duration_seconds",
        help: "Time until the writes of a worker's round were as durable as the store promises.",
        samples: vec![(Vec::new(), commits)],
    });
}
