//! Wu's Table 3.1: misses that a larger cache and other replacement save, of those of LRU at the size of the base
//! cache.
//!
//! The base cache has room for the items that get four fifths of the requests. The thesis has LRU, LIRS, ARC and an
//! LRU-X that replaces at random beyond the base cache, in a simulation that does not count their memory. Here the
//! cache itself runs with its exact LRU and with S3-FIFO, on requests by Zipf's law with the thesis's share of popular
//! items; LIRS and ARC are compared with S3-FIFO.

use alluvium_bench::BenchError;
use alluvium_bench::cache::speed::refused;
use alluvium_cache::{Cache, Eviction};

use super::popularity::share_of;
use super::replay::{AfterMiss, Mix, Values, draw_requests, replay};
use super::traces::Trace;
use super::zexpander::YCSB_SKEW;
use super::{Axis, Figure, Panel, Published, Scale, Series};

/// Size of the cache by that of the base cache.
const SIZES: [f64; 5] = [1.0, 1.5, 2.0, 2.5, 3.0];
const POLICIES: [(&str, Eviction); 2] = [("LRU", Eviction::Lru), ("S3-FIFO", Eviction::S3Fifo)];
const VALUE_BYTES: usize = 64;

/// The percent of misses that the thesis states as saved, by [`SIZES`].
struct Saved {
    name: &'static str,
    lru: [f64; 5],
    lirs: [f64; 5],
    arc: [f64; 5],
}

const TRACES: [Saved; 4] = [
    Saved {
        name: "ETC",
        lru: [0.00, 30.99, 43.42, 49.49, 52.76],
        lirs: [2.55, 30.68, 43.53, 50.35, 54.19],
        arc: [8.50, 28.26, 42.01, 49.28, 53.40],
    },
    Saved {
        name: "APP",
        lru: [0.00, 20.46, 31.56, 39.19, 44.91],
        lirs: [16.70, 32.32, 41.16, 46.64, 51.18],
        arc: [7.27, 23.96, 33.28, 39.74, 44.09],
    },
    Saved {
        name: "USR",
        lru: [0.00, 38.60, 61.61, 75.58, 84.39],
        lirs: [15.83, 47.47, 65.74, 77.42, 85.97],
        arc: [10.81, 42.89, 63.97, 76.21, 84.38],
    },
    Saved {
        name: "YCSB",
        lru: [0.00, 10.65, 18.22, 24.30, 29.24],
        lirs: [15.51, 24.44, 30.75, 35.77, 39.86],
        arc: [18.29, 26.77, 32.69, 37.37, 41.13],
    },
];

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let keys = (scale.simulated_keys_max / 20).clamp(40_000, 1 << 25) as u32;
    let values = Values::Numbered(VALUE_BYTES);
    let (mut panels, mut published) = (Vec::new(), Vec::new());
    for trace in &TRACES {
        let skew = if trace.name == "YCSB" { YCSB_SKEW } else { Trace::named(trace.name).skew(keys) };
        let base = share_of(keys, skew) * f64::from(keys);
        let requests = draw_requests(keys, skew, Mix::of_gets(100.0), 3 * keys as usize, scale.seed)?;
        let (warming, counted) = requests.split_at(keys as usize);
        let mut base_misses = 1.0;
        let mut series = Vec::new();
        for (policy, eviction) in POLICIES {
            let mut points = Vec::new();
            for size in SIZES {
                let builder = Cache::builder().payload_bytes_mean(values.payload_bytes_mean());
                let builder = builder.eviction(eviction).room_for((base * size) as usize);
                let cache = builder.build().map_err(refused)?;
                replay(&cache, &values, warming, AfterMiss::Set)?;
                let misses = replay(&cache, &values, counted, AfterMiss::Set)?.misses as f64;
                if eviction == Eviction::Lru && size == SIZES[0] {
                    base_misses = misses.max(1.0);
                }
                points.push((size, 100.0 * (1.0 - misses / base_misses)));
            }
            series.push(Series::measurement(policy, points));
        }
        for (number, size) in SIZES.into_iter().enumerate() {
            let name = |policy: &str| format!("{}_{policy}_{size}_saved_percent", trace.name.to_lowercase());
            let [lru, s3_fifo] = [0, 1].map(|policy: usize| series[policy].points[number].1);
            if number > 0 {
                published.push(Published::new(name("lru"), trace.lru[number], lru));
            }
            published.push(Published::new(
                name("lirs_or_arc"),
                trace.lirs[number].max(trace.arc[number]),
                s3_fifo,
            ));
        }
        panels.push(Panel {
            x: Axis::linear("size, by that of the base cache"),
            y: Axis::linear("percent of the base cache's misses saved"),
            series: series
                .into_iter()
                .map(|series| Series { name: format!("{}, {}", trace.name, series.name), ..series })
                .collect(),
        });
    }
    Ok(Figure {
        id: "wu-table-3.1",
        title: "Misses saved by larger caches and other replacement",
        source: "Wu's thesis, Table 3.1: traces, simulated; here synthetic requests, and S3-FIFO for LIRS and ARC",
        panels,
        published,
    })
}
