//! Lim's Table 5.1: requests that clients direct to the owner, against those that the server's software hands over.
//!
//! 50 % gets of tiny items, EREW. With two workers every other request is handed over, with the thesis's 16 cores 15 of
//! 16.

use alluvium_bench::BenchError;
use alluvium_bench::udp::Direction;

use super::mica_net::{BATCH, CORES, Measured, SKEWED, TINY, options};
use super::{Axis, Figure, Panel, Published, Scale, Series};

const WORKERS: usize = 2;
/// Million operations a second of the thesis: by the client and by software.
const METHODS: [(f64, &str, [f64; 2]); 2] =
    [(0.0, "uniform", [76.9, 33.9]), (SKEWED, "skewed", [70.4, 28.1])];
/// Requests in a datagram; the thesis has the first.
const BATCHES: [usize; 2] = [1, BATCH];

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let mut series = Vec::new();
    let mut published = Vec::new();
    for (skew, popularity, [client, software]) in METHODS {
        let mut curves = Vec::new();
        for direction in [Direction::Client, Direction::Software] {
            let mut points = Vec::new();
            for batch in BATCHES {
                let mut options = options(scale, TINY, WORKERS);
                (options.skew, options.get_share, options.direction) = (skew, 0.5, direction);
                options.batch = batch;
                points.push((batch as f64, Measured::of(&options)?.millions_per_core()));
            }
            curves.push(Series::measurement(format!("{}, {popularity}", direction.name()), points));
        }
        for (number, batch) in BATCHES.into_iter().enumerate() {
            let [by_client, by_software] = [0, 1].map(|curve: usize| curves[curve].points[number].1);
            let name = |what: &str| format!("{popularity}_{what}_{batch}_a_datagram");
            published.push(Published::new(name("client_mops_per_core"), client / CORES, by_client));
            published.push(Published::new(name("software_mops_per_core"), software / CORES, by_software));
            published.push(Published::new(
                name("software_to_client"),
                software / client,
                by_software / by_client,
            ));
        }
        series.extend(curves);
    }
    Ok(Figure {
        id: "mica-table-5.1",
        title: "Direction of requests by clients and by software",
        source: "Lim's thesis, Table 5.1: tiny items, 50 % gets, EREW with 16 cores; here two workers, loopback",
        panels: vec![Panel {
            x: Axis::logarithmic("requests a datagram"),
            y: Axis::linear("million operations a second and core"),
            series,
        }],
        published,
    })
}
