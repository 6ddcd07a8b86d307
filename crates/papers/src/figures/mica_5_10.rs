//! Lim's Figure 5.10: throughput over the network, by the size of items, the share of gets and the skew.

use alluvium_bench::BenchError;

use super::mica_net::{CORES, Items, Measured, SKEWED, TINY, options};
use super::{Axis, Figure, Panel, Published, Scale, Series};

const SIZES: [Items; 3] = [
    TINY,
    Items { name: "small", key_bytes: 16, value_bytes: 64 },
    Items { name: "large", key_bytes: 128, value_bytes: 1024 },
];
const GET_PERCENTS: [u8; 2] = [50, 95];
const SKEWS: [(f64, &str); 2] = [(0.0, "uniform"), (SKEWED, "skewed")];
/// What the thesis states of tiny items: million operations a second of 16 cores, uniform and skewed, by the order of
/// the shares of gets. Table 5.1 has those with 50 % gets; 65.6 is stated of skewed reads, and 75.5 is the other end of
/// the range of uniform keys.
const TINY_PUBLISHED: [[f64; 2]; 2] = [[76.9, 75.5], [70.4, 65.6]];

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let mut panels = Vec::new();
    let mut published = Vec::new();
    for items in SIZES {
        let mut series = Vec::new();
        for ((skew, popularity), stated) in SKEWS.into_iter().zip(TINY_PUBLISHED) {
            let mut points = Vec::new();
            for (get_percent, stated) in GET_PERCENTS.into_iter().zip(stated) {
                let mut options = options(scale, items, 1);
                (options.skew, options.get_share) = (skew, f64::from(get_percent) / 100.0);
                let rate = Measured::of(&options)?.millions_per_core();
                if items.name == TINY.name {
                    let name = format!("tiny_{popularity}_{get_percent}_percent_gets_mops_per_core");
                    published.push(Published::new(name, stated / CORES, rate));
                }
                points.push((f64::from(get_percent), rate));
            }
            series.push(Series::measurement(format!("{}, {popularity}", items.name), points));
        }
        panels.push(Panel {
            x: Axis::linear("percent gets"),
            y: Axis::linear("million operations a second and core"),
            series,
        });
    }
    Ok(Figure {
        id: "mica-5.10",
        title: "Throughput over the network",
        source: "Lim's thesis, Figure 5.10: 16 cores, one request a packet; here one worker, 25 a datagram, loopback",
        panels,
        published,
    })
}
