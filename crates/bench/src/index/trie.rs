//! Figures of the entropy-coded trie (SPEC A3).

use super::IndexConfig;
use crate::measurement::Measurement;

/// Runs all cases.
pub fn run(_config: &IndexConfig) -> Vec<Measurement> {
    Vec::new()
}
