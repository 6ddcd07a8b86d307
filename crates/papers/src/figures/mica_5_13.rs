//! Lim's Figure 5.13: latency over the load that is offered, uniform keys, 50 % gets, EREW, beside memcached.
//!
//! The latency is that of requests of calls that are due at equal intervals, from the moment at which a call is due to
//! its replies, so a server that does not keep up shows it. The thesis has 24 to 52 µs over a real network, and 69
//! million operations a second with 40 µs, "more than two orders of magnitude" more than memcached over the kernel's
//! network stack. Neither has requests in batches there. Here memcached, where it is installed, has one thread as our
//! server has, calls of as many requests, and a socket of the machine, which costs it less than a network.

use alluvium_bench::BenchError;
use alluvium_bench::udp::{LoadedMemcached, UdpOptions};

use super::mica_net::{Measured, TINY, options};
use super::replay::find_memcached;
use super::{Axis, Figure, Panel, Published, Scale, Series};

/// Datagrams of a call.
const WINDOW: usize = 4;
/// The offered load in percent of what is served when as much is sent as is answered.
const LOADS: [u32; 6] = [5, 20, 40, 60, 80, 95];

/// A server's throughput in operations a second, and its latencies in µs by the load in millions a second.
struct Curves {
    most: f64,
    per_core: f64,
    median: Vec<(f64, f64)>,
    high: Vec<(f64, f64)>,
}

impl Curves {
    /// Measures with `measure`: as much as is answered, then with the loads.
    fn of(
        mut options: UdpOptions,
        measure: impl Fn(&UdpOptions) -> Result<Measured, BenchError>,
    ) -> Result<Self, BenchError> {
        let served = measure(&options)?;
        let (most, per_core) = (served.get("ops_per_s"), served.millions_per_core());
        (options.window, options.calls) = (Some(WINDOW), 64);
        let (mut median, mut high) = (Vec::new(), Vec::new());
        for percent in LOADS {
            let rate = most * f64::from(percent) / 100.0;
            options.rate = Some(rate.max(1.0));
            let measured = measure(&options)?;
            median.push((rate / 1e6, measured.get("p50_us")));
            high.push((rate / 1e6, measured.get("p99_us")));
        }
        Ok(Self { most, per_core, median, high })
    }

    fn series(&self, of: &str) -> [Series; 2] {
        [("median", &self.median), ("99th percentile", &self.high)]
            .map(|(name, points)| Series::measurement(format!("{of}{name}"), points.clone()))
    }

    fn at_low_load(&self) -> f64 {
        self.median.first().map_or(0.0, |(_, latency)| *latency)
    }

    fn at_high_load(&self) -> f64 {
        self.median.get(LOADS.len() - 2).map_or(0.0, |(_, latency)| *latency)
    }
}

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let mut options = options(scale, TINY, 1);
    options.get_share = 0.5;
    let ours = Curves::of(options.clone(), Measured::of)?;
    let mut series: Vec<Series> = ours.series("").into();
    let mut published = vec![
        Published::new("latency_at_low_load_us", 24.0, ours.at_low_load()),
        Published::new("latency_at_high_load_us", 52.0, ours.at_high_load()),
        Published::ours("mops_per_s_per_core", ours.per_core),
    ];
    match find_memcached() {
        Some(program) => {
            let memcached = LoadedMemcached::start(&program, &options)?;
            let curves = Curves::of(options, |options| Ok(Measured::over(memcached.measure(options)?)))?;
            series.extend(curves.series("memcached, "));
            // The thesis compares them at 40 µs, where its memcached is at any load that it serves.
            published.push(Published::new("memcached_latency_at_low_load_us", 40.0, curves.at_low_load()));
            published.push(Published::ours("memcached_latency_at_high_load_us", curves.at_high_load()));
            published.push(Published::new("served_to_memcached", 100.0, ours.most / curves.most.max(1.0)));
            published.push(Published::ours("memcached_mops_per_s_per_core", curves.per_core));
        }
        None => eprintln!("mica-5.13: memcached is not installed, so its curves are left out"),
    }
    Ok(Figure {
        id: "mica-5.13",
        title: "Latency by offered load",
        source: "Lim's thesis, Figure 5.13: tiny items, 50 % gets, EREW, 24 to 52 µs; here one worker, 25 requests a \
                 datagram, loopback",
        panels: vec![Panel {
            x: Axis::logarithmic("million operations a second, offered"),
            y: Axis::logarithmic("latency in µs"),
            series,
        }],
        published,
    })
}
