//! SkimpyStash's Figure 4: memory per key by keys per slot, in the base and the enhanced design.

use alluvium_bench::BenchError;
use alluvium_model::KeyDistribution;
use alluvium_model::models::{ChainDirectory, SkimpyStash};

use super::{Axis, Figure, Panel, Published, Scale, Series};

pub fn draw(_: &Scale) -> Result<Figure, BenchError> {
    // Without updates the number of keys makes no difference.
    let keys = KeyDistribution::uniform(1e6)?;
    let curve = |directory| -> Result<Vec<(f64, f64)>, BenchError> {
        let lengths = 1..=32;
        let costs = lengths.map(|length| {
            let chain_length = f64::from(length);
            let design = SkimpyStash { chain_length, ..SkimpyStash::new(directory) };
            Ok((chain_length, design.cost(&keys)?.bytes_per_item()))
        });
        costs.collect()
    };
    let base = Series::model("base", curve(ChainDirectory::Base)?);
    let enhanced = Series::model("enhanced", curve(ChainDirectory::Enhanced)?);
    let example = |series: &Series| series.at(10.0).unwrap_or(f64::NAN);
    Ok(Figure {
        id: "skimpy-4",
        title: "SkimpyStash: memory by keys per slot",
        source: "SkimpyStash (SIGMOD 2011), Figure 4",
        published: vec![
            Published::new("base_bytes_per_item_at_10", 0.4, example(&base)),
            Published::new("enhanced_bytes_per_item_at_10", 1.5, example(&enhanced)),
        ],
        panels: vec![Panel {
            x: Axis::linear("keys per slot"),
            y: Axis::linear("memory, bytes per item"),
            series: vec![base, enhanced],
        }],
    })
}
