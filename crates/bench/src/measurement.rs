//! One line of a benchmark's result, for people or as JSON.

use serde::Serialize;
use serde_json::{Map, Value};

/// The measurements of one case of one benchmark.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    /// The benchmark, for example `index`.
    pub bench: String,
    /// The case within it, for example `cuckoo`.
    pub case: String,
    /// The parameters it ran with.
    pub config: Map<String, Value>,
    /// Results by name; names are snake_case and include their unit (`lookup_ns`, `bits_per_key`).
    pub metrics: Map<String, Value>,
    /// What a model predicted for some of the metrics, under the same names.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub predicted: Map<String, Value>,
}

impl Measurement {
    /// A measurement that has no parameters and results yet.
    pub fn new(bench: &str, case: &str) -> Self {
        Self {
            bench: bench.to_owned(),
            case: case.to_owned(),
            config: Map::new(),
            metrics: Map::new(),
            predicted: Map::new(),
        }
    }

    /// Adds a parameter.
    pub fn config(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.config.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a result.
    pub fn metric(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.metrics.insert(name.to_owned(), value.into());
        self
    }
}
