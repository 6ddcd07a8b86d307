//! Figure 4.10: the model compared with a simulation and asymptotic analysis, over numbers of keys.

use alluvium_bench::BenchError;

use super::leveldb::{KEYS, POPULARITIES, over_keys, standard};
use super::{Axis, Figure, Panel, Published, Scale, Series};

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let mut worst = Vec::new();
    for keys in KEYS {
        worst.push((keys, standard(keys).worst_case_write_amplification(keys)?));
    }
    let worst = Series::model("worst-case analysis", worst);
    let mut series = Vec::new();
    for (name, skew) in POPULARITIES {
        series.extend(over_keys(name, skew, scale, |keys| Ok(standard(keys.keys())))?);
    }
    let ratios = series.iter().flat_map(|series| {
        let worst = &worst;
        series.points.iter().filter_map(|&(keys, cost)| Some(worst.at(keys)? / cost))
    });
    let (least, most) =
        ratios.fold((f64::INFINITY, 0f64), |(least, most), ratio| (least.min(ratio), most.max(ratio)));
    series.insert(0, worst);
    Ok(Figure {
        id: "lim-4.10",
        title: "LevelDB's write amplification: model, simulation, worst case",
        source: "Lim's thesis, Figure 4.10: items of 1 kB",
        panels: vec![Panel { x: Axis::logarithmic("keys"), y: Axis::linear("write amplification"), series }],
        published: vec![
            Published::new("worst_case_to_actual_min", 1.8, least),
            Published::new("worst_case_to_actual_max", 3.6, most),
        ],
    })
}
