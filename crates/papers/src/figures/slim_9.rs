//! SlimDB's Figure 9: the mean cost of an operation under a memory budget, for four workloads of file system metadata.
//!
//! The paper states the mix of `creation` only. The others follow its description: `stat` reads inodes that are
//! present, `update` reads and writes them, `mix` does all three.

use alluvium_bench::BenchError;

use super::{Axis, Figure, Panel, Published, Scale, Series};
use crate::models::{SlimDb, SlimDbMix};

const WORKLOADS: [(&str, SlimDbMix); 4] = [
    ("creation", SlimDbMix { positive: 0.0, negative: 0.5, write: 0.5 }),
    ("update", SlimDbMix { positive: 0.5, negative: 0.0, write: 0.5 }),
    ("stat", SlimDbMix { positive: 1.0, negative: 0.0, write: 0.0 }),
    ("mix", SlimDbMix { positive: 0.5, negative: 0.25, write: 0.25 }),
];
const MEBIBYTE: f64 = (1u64 << 20) as f64;

pub fn draw(_: &Scale) -> Result<Figure, BenchError> {
    let design = SlimDb::default();
    let mut series = Vec::new();
    for (name, mix) in WORKLOADS {
        let frontier = design.frontier(&mix)?;
        let points = (0..=30).filter_map(|step| {
            let budget = f64::from(step) * 50.0;
            let choice = frontier.iter().rfind(|choice| choice.memory_bytes <= budget * MEBIBYTE)?;
            Some((budget, choice.operation))
        });
        series.push(Series::model(name, points.collect()));
    }
    let published = design.cost(&SlimDb::published_layouts(), &WORKLOADS[3].1)?;
    Ok(Figure {
        id: "slim-9",
        title: "SlimDB: cost of an operation in a memory budget",
        source: "SlimDB (VLDB 2017), Figure 9: five levels, r = 8, level 0 of 131,072 entries",
        panels: vec![Panel {
            x: Axis::linear("memory, MiB"),
            y: Axis::logarithmic("cost of an operation, random reads"),
            series,
        }],
        published: vec![Published::new(
            "memory_of_the_named_layout_mib",
            267.0,
            published.memory_bytes / MEBIBYTE,
        )],
    })
}
