//! What the lookaside buffer's figures share: throughput over the number of keys, without the buffer and with tables of
//! three sizes.
//!
//! The thesis has 100 million items, 16 threads and 40 MB of third-level cache. Here there are one thread and as many
//! items as the figure has keys; compare the shapes, not the heights.

use alluvium_bench::index::slb::contest::{Requests, gains};
use alluvium_bench::index::slb::subject::Subject;
use alluvium_index::slb::Config;

use super::{Axis, Panel, Published, Scale, Series};

/// Numbers of keys, as far as the scale allows.
const KEYS: [u32; 4] = [100_000, 400_000, 1_600_000, 6_400_000];

/// Bytes of the cache tables, and names of their curves.
pub const TABLES: [(usize, &str); 3] = [(16 << 20, "16 MiB"), (32 << 20, "32 MiB"), (64 << 20, "64 MiB")];

/// Requests of a round: enough for some milliseconds.
const ROUND_LEN: std::ops::RangeInclusive<u32> = 1 << 18..=1 << 19;

/// A panel and the gains in it.
pub struct Curves {
    pub panel: Panel,
    /// Ratios of the throughput with a table to that without, by number of keys and table.
    gains: Vec<f64>,
}

impl Curves {
    /// The smallest gain compared with a published number.
    pub fn least(&self, name: &str, published: f64) -> Published {
        Published::new(name, published, self.gains.iter().copied().fold(f64::INFINITY, f64::min))
    }

    /// The largest gain compared with a published number.
    pub fn most(&self, name: &str, published: f64) -> Published {
        Published::new(name, published, self.gains.iter().copied().fold(0.0, f64::max))
    }

    /// Throughput without a buffer for the smallest number of keys, in millions per second.
    pub fn direct_first(&self) -> f64 {
        self.panel.series[0].points[0].1
    }
}

/// Measures gets.
pub fn gets<S: Subject>(name: &'static str, scale: &Scale) -> Curves {
    curves(name, scale, |keys, requests, tables| gains(S::build(keys), requests, tables))
}

/// Measures `rates` for each number of keys and the tables: operations per second without and with each table.
pub fn curves(
    name: &'static str,
    scale: &Scale,
    rates: impl Fn(u32, &Requests, &[Config]) -> Vec<[f64; 2]>,
) -> Curves {
    let tables = TABLES.map(|(bytes, _)| Config::with_cache_bytes(bytes));
    let mut points = vec![Vec::new(); TABLES.len() + 1];
    let mut gains = Vec::new();
    let measured = |keys: &u32| *keys == KEYS[0] || u64::from(*keys) <= scale.simulated_keys_max;
    for keys in KEYS.into_iter().filter(measured) {
        let requests =
            Requests::draw(keys, keys.clamp(*ROUND_LEN.start(), *ROUND_LEN.end()) as usize, scale.seed);
        let rates = rates(keys, &requests, &tables);
        points[0].push((f64::from(keys), rates[0][0] / 1e6));
        for ([direct, through], points) in rates.into_iter().zip(&mut points[1..]) {
            points.push((f64::from(keys), through / 1e6));
            gains.push(through / direct);
        }
    }
    let names = ["no SLB"].into_iter().chain(TABLES.map(|(_, size)| size));
    let series = names
        .zip(points)
        .map(|(table, points)| Series::measurement(format!("{name}, {table}"), points))
        .collect();
    let x = Axis::logarithmic("keys");
    Curves { panel: Panel { x, y: Axis::linear("million operations a second"), series }, gains }
}
