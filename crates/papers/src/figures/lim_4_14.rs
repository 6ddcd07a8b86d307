//! Figure 4.14: the level sizes that write least, by skew.

use alluvium_bench::BenchError;
use alluvium_model::KeyDistribution;

use super::leveldb::{optimized, standard};
use super::{Axis, Figure, Panel, Scale, Series};

const KEYS: f64 = 1e8;

pub fn draw(_: &Scale) -> Result<Figure, BenchError> {
    let by_level = |sizes: &[f64]| -> Vec<(f64, f64)> {
        let all = sizes.iter().copied().chain([KEYS]);
        all.enumerate().map(|(level, size)| (level as f64 + 1.0, size / KEYS)).collect()
    };
    let mut series = vec![Series::model("as delivered", by_level(&standard(KEYS).sizes))];
    for skew in [0.0, 0.5, 0.99, 1.2] {
        let found = optimized(&KeyDistribution::zipf(KEYS, skew)?)?;
        series.push(Series::model(format!("optimized, skew {skew}"), by_level(&found.design.sizes)));
    }
    Ok(Figure {
        id: "lim-4.14",
        title: "Level sizes that write least",
        source: "Lim's thesis, Figure 4.14: 100 million keys, items of 1 kB",
        panels: vec![Panel { x: Axis::linear("level"), y: Axis::logarithmic("share of all keys"), series }],
        published: Vec::new(),
    })
}
