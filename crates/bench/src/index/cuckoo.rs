//! Figures of the partial-key cuckoo table (SPEC A1).

use super::IndexConfig;
use crate::measurement::Measurement;

/// Runs all cases.
pub fn run(_config: &IndexConfig) -> Vec<Measurement> {
    Vec::new()
}
