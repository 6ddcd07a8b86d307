//! Figure 4.9: rewrites decrease with the skew of keys, which asymptotic analysis does not show.

use alluvium_bench::BenchError;
use alluvium_model::KeyDistribution;

use super::leveldb::{modelled, standard};
use super::{Axis, Figure, Panel, Published, Scale, Series};

const KEYS: f64 = 1e8;
/// Skews in hundredths.
const SKEWS: [u32; 10] = [0, 20, 40, 60, 80, 90, 99, 110, 120, 140];

pub fn draw(_: &Scale) -> Result<Figure, BenchError> {
    let design = standard(KEYS);
    let worst = design.worst_case_write_amplification(KEYS)?;
    let mut model = Vec::new();
    for skew in SKEWS.map(|hundredths| f64::from(hundredths) / 100.0) {
        model.push((skew, modelled(&design, &KeyDistribution::zipf(KEYS, skew)?)?));
    }
    let uniform = model[0].1;
    let flat = model.iter().map(|&(skew, _)| (skew, worst)).collect();
    Ok(Figure {
        id: "lim-4.9",
        title: "Effects of the workload skew on write amplification",
        source: "Lim's thesis, Figure 4.9: 100 million keys, items of 1 kB",
        panels: vec![Panel {
            x: Axis::linear("Zipf skew"),
            y: Axis::linear("write amplification"),
            series: vec![Series::model("worst-case analysis", flat), Series::model("LevelDB", model)],
        }],
        published: vec![Published::new("uniform_write_amplification", 25.82, uniform)],
    })
}
