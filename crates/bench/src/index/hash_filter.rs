//! Figures of the hash filter (SPEC A2).

use super::IndexConfig;
use crate::measurement::Measurement;

/// Runs all cases.
pub fn run(_config: &IndexConfig) -> Vec<Measurement> {
    Vec::new()
}
