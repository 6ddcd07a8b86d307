//! `bench index`: selects among the benchmarks of single index structures.

use crate::error::BenchError;
use crate::index::{self, IndexConfig};
use crate::measurement::Measurement;
use crate::report::Report;

/// Runs one structure's cases.
type Run = fn(&IndexConfig) -> Vec<Measurement>;

/// The structures by name.
const STRUCTURES: [(&str, Run); 10] = [
    ("cuckoo", index::cuckoo::run),
    ("hash-filter", index::hash_filter::run),
    ("ect", index::trie::run),
    ("fences", index::fences::run),
    ("multi-level-filter", index::multi_level_filter::run),
    ("three-level", index::three_level::run),
    ("bloom-cluster", index::bloom_cluster::run),
    ("bucketed", index::bucketed::run),
    ("static-filter", index::static_filter::run),
    ("slb", index::slb::run),
];

/// The default number of keys with which a structure is measured.
pub fn default_keys(name: &str) -> u64 {
    // The lookaside buffer's subjects store whole items besides the keys.
    if name == "slb" { 4_000_000 } else { 10_000_000 }
}

/// Runs the structure `name`, or all of them for `all`. `ect-sparse` selects the cases of `ect` with this name.
///
/// # Errors
/// [`BenchError::Usage`] for an unknown name.
pub fn run(name: &str, config: &IndexConfig, report: &mut Report) -> Result<(), BenchError> {
    let (wanted, case) = match name {
        "ect-sparse" => ("ect", Some("sparse")),
        _ => (name, None),
    };
    let mut chosen = 0;
    for (structure, run) in STRUCTURES {
        if wanted != "all" && wanted != structure {
            continue;
        }
        chosen += 1;
        for measurement in run(config) {
            if case.is_none_or(|part| measurement.case.contains(part)) {
                report.add(measurement)?;
            }
        }
    }
    if chosen == 0 {
        let names: Vec<&str> = STRUCTURES.iter().map(|(name, _)| *name).collect();
        return Err(BenchError::Usage(format!(
            "no structure is named {name:?}; known: {}, ect-sparse, all",
            names.join(", ")
        )));
    }
    Ok(())
}
