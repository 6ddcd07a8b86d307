//! Lim's Figure 5.12: throughput of the data structures alone, uniform and skewed.
//!
//! The thesis has two bars for each mix and states good throughput under skew, because popular items stay in the
//! processor's caches. Here the skew ranges from 0 to 1.2.

use alluvium_bench::BenchError;

use super::mica::{Mix, Mode, rates};
use super::{Axis, Figure, Panel, Published, Scale, Series};

/// Skews in hundredths; the thesis has the first and the second to last.
const SKEWS: [u32; 6] = [0, 50, 80, 90, 99, 120];
const SKEWED: f64 = 0.99;
const GET_PERCENTS: [u8; 2] = [50, 95];

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let mut series = Vec::new();
    let mut published = Vec::new();
    for mode in [Mode::Erew, Mode::Crew, Mode::StoreCrew] {
        for get_percent in GET_PERCENTS {
            let skews = SKEWS.map(|hundredths| f64::from(hundredths) / 100.0);
            let mixes = skews.map(|skew| Mix { skew, get_percent });
            let points = skews.into_iter().zip(rates(scale, mode, 1, &mixes)?).collect();
            let curve = Series::measurement(format!("{}, {get_percent} % gets", mode.name()), points);
            if mode == Mode::Erew
                && let Some((skewed, uniform)) = curve.at(SKEWED).zip(curve.at(0.0))
            {
                // The thesis says "good throughput"; its bars for skewed keys are no lower than those for uniform ones.
                let name = format!("skewed_to_uniform_min_{get_percent}_percent_gets");
                published.push(Published::new(name, 1.0, skewed / uniform));
            }
            series.push(curve);
        }
    }
    Ok(Figure {
        id: "mica-5.12",
        title: "Local throughput of the memory engine",
        source: "Lim's thesis, Figure 5.12: items of 8+8 bytes, no network; here one thread, batches of 32",
        panels: vec![Panel {
            x: Axis::linear("Zipf skew"),
            y: Axis::linear("million operations a second of CPU time"),
            series,
        }],
        published,
    })
}
