//! What a server reports about itself, and the small HTTP server that answers with it.
//!
//! Workers count in memory of their own ([`WorkerMetrics`]); a scrape adds them up. All figures pass through a
//! [`MetricSink`], so `/metrics` and `/stats.json` show the same ones under the same names.

mod describe;
mod engine;
mod health;
mod http_connection;
mod http_request;
mod http_response;
mod latency;
mod listener;
mod meter;
mod metric;
mod open_metrics;
mod prediction;
mod process;
mod routes;
mod samples;
mod stats_json;
mod store_figures;
mod totals;
mod worker_metrics;

pub(crate) use engine::observe_engine;
pub(crate) use listener::{CONNECTIONS_MAX, MetricsListener};
pub(crate) use meter::Meter;
pub use metric::{Metric, MetricKind, MetricSink};
pub(crate) use prediction::Predictor;
pub(crate) use store_figures::store_figures;
pub(crate) use totals::Totals;
pub(crate) use worker_metrics::WorkerMetrics;
