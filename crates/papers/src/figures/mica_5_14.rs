//! Lim's Figure 5.14: throughput over the network by the number of cores, skewed keys, EREW.

use alluvium_bench::BenchError;

use super::mica_net::{Measured, SKEWED, TINY, options};
use super::{Axis, Figure, Panel, Published, Scale, Series};

const WORKERS: [usize; 2] = [1, 2];
const GET_PERCENTS: [u8; 2] = [50, 95];

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let mut series = Vec::new();
    let mut published = Vec::new();
    for get_percent in GET_PERCENTS {
        let mut points = Vec::new();
        for workers in WORKERS {
            let mut options = options(scale, TINY, workers);
            (options.skew, options.get_share) = (SKEWED, f64::from(get_percent) / 100.0);
            points.push((workers as f64, Measured::of(&options)?.millions_of_all_cores()));
        }
        let name = format!("two_to_one_{get_percent}_percent_gets");
        // EREW makes "MICA scale linearly with CPU cores" (§5.3.1).
        published.push(Published::new(name, 2.0, points[1].1 / points[0].1));
        series.push(Series::measurement(format!("{get_percent} % gets"), points));
    }
    Ok(Figure {
        id: "mica-5.14",
        title: "Throughput over the network by cores",
        source: "Lim's thesis, Figure 5.14: tiny items, skewed, EREW; here by processor time of the busiest worker, \
                 loopback",
        panels: vec![Panel {
            x: Axis::linear("workers"),
            y: Axis::linear("million operations a second, if each worker has a processor"),
            series,
        }],
        published,
    })
}
