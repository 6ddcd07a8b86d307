//! Lim's Figure 5.13: latency over the load that is offered, uniform keys, 50 % gets, EREW.
//!
//! The latency is that of requests of calls that are due at equal intervals, from the moment at which a call is due to
//! its replies, so a server that does not keep up shows it. The thesis has 24 to 52 µs over a real network.

use alluvium_bench::BenchError;

use super::mica_net::{Measured, TINY, options};
use super::{Axis, Figure, Panel, Published, Scale, Series};

/// Datagrams of a call.
const WINDOW: usize = 4;
/// The offered load in percent of what is served when as much is sent as is answered.
const LOADS: [u32; 6] = [5, 20, 40, 60, 80, 95];

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let mut options = options(scale, TINY, 1);
    options.get_share = 0.5;
    let most = Measured::of(&options)?.get("ops_per_s");
    (options.window, options.calls) = (Some(WINDOW), 64);
    let (mut median, mut high) = (Vec::new(), Vec::new());
    for percent in LOADS {
        let rate = most * f64::from(percent) / 100.0;
        options.rate = Some(rate.max(1.0));
        let measured = Measured::of(&options)?;
        median.push((rate / 1e6, measured.get("p50_us")));
        high.push((rate / 1e6, measured.get("p99_us")));
    }
    let low_load = median.first().map_or(0.0, |(_, latency)| *latency);
    let high_load = median.get(LOADS.len() - 2).map_or(0.0, |(_, latency)| *latency);
    let published = vec![
        Published::new("latency_at_low_load_us", 24.0, low_load),
        Published::new("latency_at_high_load_us", 52.0, high_load),
    ];
    Ok(Figure {
        id: "mica-5.13",
        title: "Latency by offered load",
        source: "Lim's thesis, Figure 5.13: tiny items, 50 % gets, EREW; here one worker, 25 requests a datagram, \
                 loopback",
        panels: vec![Panel {
            x: Axis::linear("million operations a second, offered"),
            y: Axis::logarithmic("latency in µs"),
            series: vec![Series::measurement("median", median), Series::measurement("99th percentile", high)],
        }],
        published,
    })
}
