//! SkimpyStash's Table 2: operations per second beside a store that has an entry in memory for each key.
//!
//! The paper compares with FlashStore, which has signature and position of each key in a cuckoo hash table. Beside it
//! stands the plan `silt-log` here, whose runs have the same in memory, by shorter tags and fewer slots for a key.

use alluvium_bench::BenchError;
use alluvium_model::Plan;

use super::skimpy_trace::{NEVER, Trace, chains, replay};
use super::{Axis, Figure, Panel, Published, Scale, Series};

/// Operations per second of SkimpyStash with one key a slot, and of FlashStore.
const RATES: [(Trace, f64, f64); 2] =
    [(Trace::Xbox, 69_000.0, 58_600.0), (Trace::Dedup, 165_000.0, 75_100.0)];

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let (mut published, mut series) = (Vec::new(), Vec::new());
    for (trace, chained_rate, entries_rate) in RATES {
        let name = trace.name();
        let chained = replay(scale, "skimpy-table-2", trace, &Plan::Chained(chains(1, true, NEVER)))?;
        let entries = replay(scale, "skimpy-table-2", trace, &Plan::silt_log())?;
        let (ours, theirs) = (chained.ops_per_s(), entries.ops_per_s());
        published.push(Published::new(format!("{name}_skimpystash_ops_per_s"), chained_rate, ours));
        published.push(Published::new(format!("{name}_entry_per_key_ops_per_s"), entries_rate, theirs));
        let gain = chained_rate / entries_rate;
        published.push(Published::new(format!("{name}_skimpystash_by_entry_per_key"), gain, ours / theirs));
        for (run, plan) in [(&chained, "skimpystash"), (&entries, "entry_per_key")] {
            published.push(Published::ours(format!("{name}_{plan}_bytes_per_item"), run.bytes_per_item));
            published.push(Published::ours(format!("{name}_{plan}_reads_per_get"), run.reads_per_get));
            published
                .push(Published::ours(format!("{name}_{plan}_write_amplification"), run.written_per_byte));
        }
        let point = vec![(chained.bytes_per_item, ours / 1e3)];
        series.push(Series::measurement(format!("{name}, skimpystash, 1 key per slot"), point));
        let point = vec![(entries.bytes_per_item, theirs / 1e3)];
        series.push(Series::measurement(format!("{name}, silt-log"), point));
    }
    Ok(Figure {
        id: "skimpy-table-2",
        title: "SkimpyStash beside a store with an entry in memory for each key",
        source: "SkimpyStash (SIGMOD 2011), Table 2: beside FlashStore; here beside the plan silt-log, one thread",
        published,
        panels: vec![Panel {
            x: Axis::linear("bytes of memory per item that find it"),
            y: Axis::linear("thousand operations per second"),
            series,
        }],
    })
}
