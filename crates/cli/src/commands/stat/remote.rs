//! What a running server reports about itself and its database.

use alluvium::Stats;
use alluvium_base::units::format_bytes;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::http_get::Url;
use crate::output::{self, JsonOption};

/// The part of a server's `/stats.json` that is printed for people.
#[derive(Debug, Deserialize)]
struct Report {
    health: Health,
    /// Upper bounds of the buckets of latencies, in seconds.
    bucket_bounds_seconds: Vec<f64>,
    metrics: Map<String, Value>,
    documents: Documents,
}

#[derive(Debug, Deserialize)]
struct Health {
    status: String,
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Documents {
    /// Absent if the server's store is not a database.
    #[serde(default)]
    engine: Option<Stats>,
}

/// Prints what the server at `url` reports.
pub fn print(url: &Url, json: JsonOption) -> Result<(), Failure> {
    let text = url.get("/stats.json")?;
    let malformed = |error: serde_json::Error| Failure::Failed(format!("the server's answer: {error}"));
    let object: Value = serde_json::from_str(&text).map_err(malformed)?;
    let report = Report::deserialize(&object).map_err(malformed)?;
    json.print(&object, || {
        let parts = [report.server(), report.commands(), report.engine()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
    })
}

/// Prints the health of the server at `url`; fails if its store takes no more writes.
pub fn print_health(url: &Url) -> Result<(), Failure> {
    print!("{}", url.get("/health")?);
    Ok(())
}

impl Report {
    fn figures(&self, name: &str) -> &[Value] {
        self.metrics.get(&format!("alluvium_{name}")).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// The sum of a metric's figures.
    fn sum(&self, name: &str) -> f64 {
        self.figures(name).iter().filter_map(|figure| figure["value"].as_f64()).sum()
    }

    fn server(&self) -> String {
        let version = self.figures("build_info").first().and_then(|figure| figure["version"].as_str());
        let Health { status, reason } = &self.health;
        let reason = reason.as_deref().map_or_else(String::new, |reason| format!(": {reason}"));
        let bytes = |name: &str| format_bytes(self.sum(name) as u64);
        let rows = [
            ("version", version.unwrap_or("unknown").to_owned()),
            ("health", format!("{status}{reason}")),
            ("up for", format!("{:.0} s", self.sum("uptime_seconds"))),
            ("clients", format!("{} of {}", self.sum("clients"), self.sum("clients_limit"))),
            ("commands", self.sum("commands_total").to_string()),
            ("received", bytes("network_received_bytes_total")),
            ("sent", bytes("network_sent_bytes_total")),
            ("resident memory", bytes("resident_memory_bytes")),
        ];
        rows.iter().map(|(name, value)| format!("{name:<17} {value:>12}\n")).collect()
    }

    /// One line for each command in use, the most used first; empty if there is none.
    fn commands(&self) -> String {
        let failed = self.figures("commands_failed_total");
        let mut commands: Vec<(u64, String)> = Vec::new();
        for figure in self.figures("command_duration_seconds") {
            let (name, count) = (figure["command"].as_str().unwrap_or_default(), figure["count"].as_u64());
            let count = count.unwrap_or_default();
            let errors = failed.iter().find(|failed| failed["command"] == name);
            let errors = errors.and_then(|figure| figure["value"].as_u64()).unwrap_or_default();
            let buckets: Vec<u64> =
                figure["buckets"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
            let mean = figure["sum"].as_f64().unwrap_or_default() / count.max(1) as f64;
            let [half, most] = [0.5, 0.99].map(|share| self.quantile(&buckets, share));
            let times = [mean, half, most].map(|seconds| format!("{:>11.1}", seconds * 1e6)).concat();
            commands.push((count, format!("{name:<17} {count:>12}{times} {errors:>10}\n")));
        }
        commands.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        let lines: String = commands.into_iter().map(|(_, line)| line).collect();
        if lines.is_empty() {
            return lines;
        }
        format!("command                  count    mean us     p50 us     p99 us     errors\n{lines}")
    }

    /// The upper bound of the bucket in which that share of the operations ends.
    fn quantile(&self, buckets: &[u64], share: f64) -> f64 {
        let all: u64 = buckets.iter().sum();
        let mut left = share * all as f64;
        for (count, bound) in buckets.iter().zip(&self.bucket_bounds_seconds) {
            left -= *count as f64;
            if left <= 0.0 {
                return *bound;
            }
        }
        self.bucket_bounds_seconds.last().copied().unwrap_or_default()
    }

    fn engine(&self) -> String {
        self.documents.engine.as_ref().map_or_else(String::new, output::statistics)
    }
}
