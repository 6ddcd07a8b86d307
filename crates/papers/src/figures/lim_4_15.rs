//! Figure 4.15: rewrites by the number of levels, with a constant growth factor or with optimal sizes.

use alluvium_bench::BenchError;
use alluvium_model::KeyDistribution;

use super::leveldb::POPULARITIES;
use super::{Axis, Figure, Panel, Scale, Series};
use crate::models::LevelDb;
use crate::optimizer::{even_sizes, optimize_level_sizes};

const KEYS: f64 = 1e8;
const LEVELS_MAX: u32 = 8;

pub fn draw(_: &Scale) -> Result<Figure, BenchError> {
    let mut series = Vec::new();
    for (name, skew) in POPULARITIES {
        let keys = KeyDistribution::zipf(KEYS, skew)?;
        let (mut fixed, mut best) = (Vec::new(), Vec::new());
        for levels in 2..=LEVELS_MAX {
            let sizes = even_sizes(&LevelDb::default(), &keys, levels)?;
            let found = optimize_level_sizes(&LevelDb { sizes, ..LevelDb::default() }, &keys)?;
            fixed.push((f64::from(levels), found.before.write_amplification()));
            best.push((f64::from(levels), found.cost.write_amplification()));
        }
        series.push(Series::model(format!("{name}, one growth factor"), fixed));
        series.push(Series::model(format!("{name}, optimized"), best));
    }
    Ok(Figure {
        id: "lim-4.15",
        title: "Write amplification by the number of levels",
        source: "Lim's thesis, Figure 4.15: 100 million keys, items of 1 kB; level 0 is not counted",
        panels: vec![Panel { x: Axis::linear("levels"), y: Axis::linear("write amplification"), series }],
        published: Vec::new(),
    })
}
