//! Wu's Figures 3.15 and 3.16: how the memory is divided after keys that were all alike become popular by Zipf's law.
//!
//! The thesis has 60 GB, 95 % gets, and shows seconds; here the time is that of the caches' clock, which runs ten times
//! as fast, and misses are followed by sets. Its hot zone may take all memory; 40 GB of items miss 37 %, so there are
//! some 64 GB. Ours takes six tenths at most, and would hold all of those, so the data are the 128 GB of the other
//! figures. The hot zone should serve eight tenths, as by default: for nine tenths it keeps nearly all that it may
//! have.

use std::time::Instant;

use alluvium_bench::BenchError;
use alluvium_bench::random::mix;

use super::replay::{AfterMiss, Mix, draw_requests, load, millions_per_s, miss_ratio, replay};
use super::zexpander::{Data, HASTE, YCSB_SHARE, YCSB_SKEW};
use super::{Axis, Figure, Panel, Published, Scale, Series};

/// Percent of the hits that the hot zone should serve.
const HOT_PERCENT: u8 = 80;
/// Seconds by the thesis's clock of each pattern, with ten million keys or more.
const SECONDS_MAX: f64 = 250.0;
/// Points of a curve, for each pattern.
const POINTS: usize = 25;
/// Parts of the requests, after each of which the clock is looked at.
const PARTS: usize = 64;
/// Patterns: their skew, by time.
const SKEWS: [f64; 2] = [0.0, YCSB_SKEW];

/// What is noted at one moment.
#[derive(Clone, Copy, Debug)]
struct Moment {
    seconds: f64,
    hot_share: f64,
    zone_share: f64,
    items_share: f64,
    millions_per_s: f64,
    miss_ratio: f64,
}

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let data = Data::new(scale)?;
    let memory = (YCSB_SHARE * data.bytes()) as u64;
    let seconds = (scale.simulated_keys_max as f64 / 1e7 * SECONDS_MAX).clamp(1.0, SECONDS_MAX);
    let [_, (_, cache)] = data.caches(memory, HOT_PERCENT)?;
    load(&cache, &data.values, data.loaded(memory))?;
    let began = Instant::now();
    let now = || began.elapsed().as_secs_f64() * f64::from(HASTE);
    let mut moments = Vec::new();
    for (pattern, skew) in SKEWS.into_iter().enumerate() {
        let start = now();
        for point in 1..=POINTS {
            let (count, seed) = (data.keys as usize, mix(scale.seed ^ (pattern * POINTS + point) as u64));
            let requests = draw_requests(data.keys, skew, Mix::of_gets(95.0), count, seed)?;
            let mut parts = requests.chunks(count.div_ceil(PARTS)).cycle();
            let end = start + seconds * point as f64 / POINTS as f64;
            let mut sum = [0.0; 3];
            while sum[0] == 0.0 || now() < end {
                let part = parts.next().unwrap_or_default();
                let tally = replay(&cache, &data.values, part, AfterMiss::Set)?;
                sum[0] += 1.0;
                sum[1] += millions_per_s(&tally);
                sum[2] += miss_ratio(&tally);
            }
            let stats = cache.stats().total();
            let share = |bytes: u64| bytes as f64 / memory as f64;
            moments.push(Moment {
                seconds: seconds * (pattern * POINTS + point) as f64 / POINTS as f64,
                hot_share: share(stats.log_bytes_max),
                zone_share: share(stats.zone.arena_bytes),
                items_share: share(stats.items * data.payload as u64),
                millions_per_s: sum[1] / sum[0],
                miss_ratio: sum[2] / sum[0],
            });
        }
    }
    let (before, after) = (moments[POINTS - 1], moments[2 * POINTS - 1]);
    let is_divided = |moment: &&Moment| (moment.hot_share - after.hot_share).abs() <= 0.03;
    let unsettled =
        moments[POINTS..].iter().rev().take_while(is_divided).last().map_or(0.0, |moment| moment.seconds);
    let published = vec![
        Published::new("seconds_to_divide_anew", 900.0, (unsettled - before.seconds).max(0.0)),
        Published::new("hot_share_after", 25.0 / 60.0, after.hot_share),
        Published::ours("hot_share_before", before.hot_share),
        Published::new("items_after_to_before", 65.0 / 40.0, after.items_share / before.items_share),
        Published::new(
            "throughput_after_to_before",
            24.0 / 29.0,
            after.millions_per_s / before.millions_per_s,
        ),
        Published::new("miss_ratio_before", 0.37, before.miss_ratio),
        Published::new("miss_ratio_after", 0.052, after.miss_ratio),
    ];
    let curve = |name: &str, of: fn(&Moment) -> f64| {
        Series::measurement(name, moments.iter().map(|moment| (moment.seconds, of(moment))).collect())
    };
    let panel =
        |y, series| Panel { x: Axis::linear("seconds of the cache's clock"), y: Axis::linear(y), series };
    Ok(Figure {
        id: "wu-3.15",
        title: "Division of the memory after a change of popularity",
        source: "Wu's thesis, Figures 3.15 and 3.16: 60 GB, 24 threads; here one thread, and a clock ten times as fast",
        panels: vec![
            panel(
                "share of the memory",
                vec![
                    curve("hot zone", |moment| moment.hot_share),
                    curve("compressed zone", |moment| moment.zone_share),
                    curve("items before compression", |moment| moment.items_share),
                ],
            ),
            panel(
                "million requests a second of processor time",
                vec![curve("compressed", |moment| moment.millions_per_s)],
            ),
            panel("miss ratio", vec![curve("compressed", |moment| moment.miss_ratio)]),
        ],
        published,
    })
}
