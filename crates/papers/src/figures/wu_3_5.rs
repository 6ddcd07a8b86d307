//! Wu's Figures 3.5 and 3.6: misses and items of caches with and without a compressed zone, by workload and memory.
//!
//! The thesis replays Facebook's traces ETC, APP and USR, which are not public, and one of YCSB. Here keys are drawn by
//! Zipf's law with the exponent at which as many of them get four fifths of the requests as in Figure 3.1, and sets
//! have their share of Table 5.1 (5 % in YCSB's), without its removals. The sizes of the data follow from that share
//! and the size of the base cache; a cache has the same share of the data as there. The text names the sizes of YCSB's
//! caches and some of APP's and USR's; those of ETC are ours. Where memcached is installed, it gets the requests at the
//! middle size, and the caches get as much memory there as its process took for items.

use alluvium_bench::BenchError;
use alluvium_bench::cache::memcached::Memcached;

use super::replay::{AfterMiss, Mix, draw_requests, find_memcached, load, miss_ratio, replay};
use super::traces::Trace;
use super::zexpander::{Data, HOT_PERCENT, YCSB_GB, YCSB_SKEW};
use super::{Axis, Figure, Panel, Published, Scale, Series};

/// A workload of the thesis.
struct Workload {
    name: &'static str,
    skew: f64,
    mix: Mix,
    /// Gigabytes of all items.
    data_gb: f64,
    /// Sizes of the cache in gigabytes.
    sizes_gb: [f64; 3],
}

/// The traces that the thesis replays, with sizes of caches.
const TRACES: [(&str, [f64; 3]); 3] =
    [("ETC", [20.0, 30.0, 40.0]), ("APP", [15.0, 20.0, 25.0]), ("USR", [20.0, 30.0, 40.0])];

/// Index of the size at which memcached is measured.
const MIDDLE: usize = 1;
/// A memcached of less memory does not start.
const MEMCACHED_BYTES_MIN: u64 = 4 << 20;
/// Requests to a memcached, by those to other caches: it takes some 15 µs each.
const MEMCACHED_SHARE: usize = 8;

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let data = Data::new(scale)?;
    let (mut panels, mut published) = (Vec::new(), Vec::new());
    let mut saved_max = (0.0_f64, 0.0_f64);
    for workload in workloads(data.keys) {
        let curves = workload.measure(&data, scale)?;
        let [misses, items] = [&curves.misses, &curves.items].map(|curves| {
            [0, 1].map(|cache: usize| curves[cache].points.iter().map(|point| point.1).collect::<Vec<_>>())
        });
        let of = |pairs: &[Vec<f64>; 2], sign: f64| -> Vec<f64> {
            pairs[0]
                .iter()
                .zip(&pairs[1])
                .map(|(plain, compressed)| sign * (compressed / plain - 1.0))
                .collect()
        };
        let (saved, more) = (of(&misses, -1.0), of(&items, 1.0));
        let most = |shares: &[f64]| shares.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        saved_max.0 = saved_max.0.max(most(&saved));
        let name = workload.name.to_lowercase();
        published.push(Published::ours(format!("{name}_misses_saved_share_max"), most(&saved)));
        if workload.name == "USR" {
            published.push(Published::new("usr_items_more_share_max", 0.63, most(&more)));
        } else {
            published.push(Published::ours(format!("{name}_items_more_share_max"), most(&more)));
        }
        if workload.name == "APP" {
            let ratio = misses[1][0] / misses[0][MIDDLE];
            published.push(Published::new("app_misses_15_gb_compressed_to_20_gb_plain_max", 1.0, ratio));
        }
        if let Some((memcached_misses, memcached_items)) = curves.memcached {
            let saved = 1.0 - misses[1][MIDDLE] / memcached_misses;
            saved_max.1 = saved_max.1.max(saved);
            let more = items[1][MIDDLE] / memcached_items - 1.0;
            let pairs = [
                ("misses_saved", saved, (workload.name == "USR").then_some(0.46)),
                ("items_more", more, (workload.name == "USR").then_some(0.63)),
            ];
            for (what, ours, stated) in pairs {
                let name = format!("{name}_{what}_beside_memcached_share");
                published.push(Published { name, published: stated, ours });
            }
        }
        panels.extend(curves.panels());
    }
    published.push(Published::new("misses_saved_share_max", 0.46, saved_max.0));
    if saved_max.1 > 0.0 {
        published.push(Published::new("misses_saved_beside_memcached_share_max", 0.46, saved_max.1));
    }
    Ok(Figure {
        id: "wu-3.5",
        title: "Misses and items with a compressed zone",
        source: "Wu's thesis, Figures 3.5 and 3.6: against memcached, traces; here synthetic ones, against our cache",
        panels,
        published,
    })
}

fn workloads(keys: u32) -> Vec<Workload> {
    let of_trace = |(name, sizes_gb)| {
        let trace = Trace::named(name);
        let (skew, mix) = (trace.skew(keys), trace.mix_without_removals());
        Workload { name, skew, mix, data_gb: trace.data_gb, sizes_gb }
    };
    let mut workloads: Vec<Workload> = TRACES.into_iter().map(of_trace).collect();
    workloads.push(Workload {
        name: "YCSB",
        skew: YCSB_SKEW,
        mix: Mix::of_gets(95.0),
        data_gb: YCSB_GB,
        sizes_gb: [40.0, 50.0, 60.0],
    });
    workloads
}

/// The two panels of a workload.
struct Curves {
    misses: Vec<Series>,
    items: Vec<Series>,
    /// Miss ratio and gigabytes of the items of memcached at the middle size.
    memcached: Option<(f64, f64)>,
}

impl Curves {
    fn panels(mut self) -> [Panel; 2] {
        for (series, at_middle) in [(&mut self.misses, 0), (&mut self.items, 1)] {
            if let Some(memcached) = self.memcached {
                let x = series[0].points[MIDDLE].0;
                let name = series[0].name.replace("plain", "memcached");
                series.push(Series::measurement(name, vec![(x, [memcached.0, memcached.1][at_middle])]));
            }
        }
        let x = Axis::linear("cache, GB of the thesis");
        [
            Panel { x, y: Axis::linear("miss ratio"), series: self.misses },
            Panel { x, y: Axis::linear("items, GB before compression"), series: self.items },
        ]
    }
}

impl Workload {
    fn measure(&self, data: &Data, scale: &Scale) -> Result<Curves, BenchError> {
        let &Self { skew, mix, .. } = self;
        let requests = draw_requests(data.keys, skew, mix, data.keys as usize, scale.seed)?;
        let bytes_per_gb = data.bytes() / self.data_gb;
        let mut points = [const { Vec::new() }; 4];
        let mut of_memcached = None;
        for (number, size_gb) in self.sizes_gb.into_iter().enumerate() {
            let mut memory = (size_gb * bytes_per_gb) as u64;
            if let Some(program) =
                find_memcached().filter(|_| number == MIDDLE && memory >= MEMCACHED_BYTES_MIN)
            {
                let mut memcached = Memcached::start(&program, memory)?;
                load(&mut memcached, &data.values, data.loaded(memory))?;
                let mut parts = requests.chunks(requests.len().div_ceil(MEMCACHED_SHARE));
                let mut part = || parts.next().unwrap_or_default();
                replay(&mut memcached, &data.values, part(), AfterMiss::Set)?;
                let tally = replay(&mut memcached, &data.values, part(), AfterMiss::Set)?;
                let items_gb = memcached.items()? as f64 * data.payload as f64 / bytes_per_gb;
                of_memcached = Some((miss_ratio(&tally), items_gb));
                memory = memory.max(memcached.resident_bytes());
            }
            for (at, (_, cache)) in data.caches(memory, HOT_PERCENT)?.into_iter().enumerate() {
                data.warm_up(&cache, memory, skew, mix)?;
                let tally = replay(&cache, &data.values, &requests, AfterMiss::Set)?;
                let items_gb = cache.stats().total().items as f64 * data.payload as f64 / bytes_per_gb;
                let x = memory as f64 / bytes_per_gb;
                points[at].push((x, miss_ratio(&tally)));
                points[2 + at].push((x, items_gb));
            }
        }
        let mut curves = points.into_iter().zip(["plain", "compressed"].into_iter().cycle());
        let mut two = || -> Vec<Series> {
            let curve = |(points, name)| Series::measurement(format!("{}, {name}", self.name), points);
            curves.by_ref().take(2).map(curve).collect()
        };
        Ok(Curves { misses: two(), items: two(), memcached: of_memcached })
    }
}
