//! Figure 4.12: the savings of better level sizes, by the model and by simulation.

use alluvium_bench::BenchError;
use alluvium_model::KeyDistribution;

use super::leveldb::{KEYS, POPULARITIES, optimized, over_keys, standard};
use super::{Axis, Figure, Panel, Published, Scale};

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let mut series = Vec::new();
    let mut saved_max = 0f64;
    for (name, skew) in POPULARITIES {
        let before = over_keys(name, skew, scale, |keys| Ok(standard(keys.keys())))?;
        let after =
            over_keys(&format!("{name}, optimized"), skew, scale, |keys| Ok(optimized(keys)?.design))?;
        for keys in KEYS {
            if let (Some(before), Some(after)) = (before[0].at(keys), after[0].at(keys)) {
                saved_max = saved_max.max(1.0 - after / before);
            }
        }
        series.extend(before.into_iter().chain(after));
    }
    let keys = KeyDistribution::uniform(1e8)?;
    let best = optimized(&keys)?.cost.write_amplification();
    Ok(Figure {
        id: "lim-4.12",
        title: "Write amplification with optimized level sizes",
        source: "Lim's thesis, Figure 4.12 and Table 4.1: items of 1 kB",
        panels: vec![Panel { x: Axis::logarithmic("keys"), y: Axis::linear("write amplification"), series }],
        published: vec![
            Published::new("saved_share_max", 0.094, saved_max),
            Published::new("optimized_write_amplification_1e8_uniform", 23.67, best),
        ],
    })
}
