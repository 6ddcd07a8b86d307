//! Figures of page fences (SPEC A8).

use super::IndexConfig;
use crate::measurement::Measurement;

/// Runs all cases.
pub fn run(_config: &IndexConfig) -> Vec<Measurement> {
    Vec::new()
}
