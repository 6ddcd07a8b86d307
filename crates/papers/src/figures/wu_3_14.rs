//! Wu's Figure 3.14: throughput and misses by the share of the requests that the hot zone should serve.
//!
//! The text states no numbers: with a larger share both are higher, and the thesis chooses 90 %.

use alluvium_bench::BenchError;

use super::replay::{AfterMiss, Mix, draw_requests, millions_per_s, miss_ratio, replay};
use super::zexpander::{Data, YCSB_SHARE, YCSB_SKEW};
use super::{Axis, Figure, Panel, Published, Scale, Series};

const HOT_PERCENTS: [u8; 5] = [60, 70, 80, 90, 95];

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let data = Data::new(scale)?;
    let memory = (YCSB_SHARE * data.bytes()) as u64;
    let mix = Mix::of_gets(95.0);
    let requests = draw_requests(data.keys, YCSB_SKEW, mix, data.keys as usize, scale.seed)?;
    let (mut rates, mut misses, mut hot_shares) = (Vec::new(), Vec::new(), Vec::new());
    for hot_percent in HOT_PERCENTS {
        let [_, (_, cache)] = data.caches(memory, hot_percent)?;
        data.warm_up(&cache, memory, YCSB_SKEW, mix)?;
        let x = f64::from(hot_percent);
        let tally = replay(&cache, &data.values, &requests, AfterMiss::Nothing)?;
        rates.push((x, millions_per_s(&tally)));
        misses.push((x, miss_ratio(&tally)));
        hot_shares.push((x, cache.stats().total().log_bytes_max as f64 / memory as f64));
    }
    let ratio = |points: &[(f64, f64)]| points[HOT_PERCENTS.len() - 1].1 / points[0].1.max(1e-9);
    let at_90 = |points: &[(f64, f64)]| points[3].1;
    let published = vec![
        Published::new("throughput_95_to_60_percent_min", 1.0, ratio(&rates)),
        Published::new("misses_95_to_60_percent_min", 1.0, ratio(&misses)),
        Published::ours("miss_ratio_90_percent", at_90(&misses)),
        Published::ours("hot_share_of_memory_90_percent", at_90(&hot_shares)),
    ];
    let panel = |y, name: &str, points| Panel {
        x: Axis::linear("percent of the hits that the hot zone should serve"),
        y: Axis::linear(y),
        series: vec![Series::measurement(name, points)],
    };
    Ok(Figure {
        id: "wu-3.14",
        title: "Threshold of the hot zone",
        source: "Wu's thesis, Figure 3.14: 60 GB, 95 % gets, 24 threads; here one thread, the same share of the data",
        panels: vec![
            panel("million requests a second of processor time", "compressed", rates),
            panel("miss ratio", "compressed", misses),
            panel("share of the memory", "hot zone", hot_shares),
        ],
        published,
    })
}
