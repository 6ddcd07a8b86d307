//! Wu's Figure 3.13: throughput with and without filters of the blocks' content, by the share of absent keys.
//!
//! Our zone has fingerprints of the items in place of Bloom filters, and cannot do without them. What it would be
//! without them is computed: each get of an absent key takes as long as one that decompresses a block.

use std::time::Instant;

use alluvium_bench::BenchError;
use alluvium_bench::cache::documents::key;
use alluvium_cache::Cache;

use super::replay::{AfterMiss, Mix, Request, draw_requests, millions_per_s, replay};
use super::zexpander::{Data, HOT_PERCENT, YCSB_SHARE, YCSB_SKEW};
use super::{Axis, Figure, Panel, Published, Scale, Series};

/// Percent of the gets that are for absent keys, and the gain by the thesis's filters with 5 threads.
const ABSENT_PERCENTS: [(u32, Option<f64>); 4] =
    [(0, None), (50, Some(0.39)), (75, Some(0.53)), (100, Some(0.64))];
/// Gets whose time is taken.
const SAMPLES: u32 = 50_000;

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let data = Data::new(scale)?;
    let memory = (YCSB_SHARE * data.bytes()) as u64;
    let caches = data.caches(memory, HOT_PERCENT)?;
    let mut series = Vec::new();
    for (name, cache) in &caches {
        data.warm_up(cache, memory, YCSB_SKEW, Mix::of_gets(95.0))?;
        let mut points = Vec::new();
        for (percent, _) in ABSENT_PERCENTS {
            let requests = requests(&data, cache, percent, scale.seed)?;
            let rate = millions_per_s(&replay(cache, &data.values, &requests, AfterMiss::Nothing)?);
            points.push((f64::from(percent), rate));
        }
        series.push(Series::measurement(*name, points));
    }
    let compressed = &series[1].points;
    let absent_us = 1.0 / compressed[ABSENT_PERCENTS.len() - 1].1;
    let zone_hit_us = zone_hit_us(&caches[1].1, &data);
    let without = |&(percent, rate): &(f64, f64)| {
        (percent, 1.0 / (1.0 / rate + percent / 100.0 * (zone_hit_us - absent_us).max(0.0)))
    };
    let without = Series::model("compressed, without fingerprints", compressed.iter().map(without).collect());
    let mut published = Vec::new();
    for (number, (percent, stated)) in ABSENT_PERCENTS.into_iter().enumerate() {
        let Some(stated) = stated else { continue };
        let more = compressed[number].1 / without.points[number].1 - 1.0;
        published.push(Published::new(format!("more_by_filters_{percent}_percent_absent"), stated, more));
    }
    published.push(Published::ours("absent_us", absent_us));
    published.push(Published::ours("zone_hit_us", zone_hit_us));
    published.push(Published::ours("plain_absent_us", 1.0 / series[0].points[ABSENT_PERCENTS.len() - 1].1));
    series.push(without);
    Ok(Figure {
        id: "wu-3.13",
        title: "Filters of the compressed zone",
        source: "Wu's thesis, Figure 3.13: 5 to 20 threads; here one, and the curve without filters is computed",
        panels: vec![Panel {
            x: Axis::linear("percent of the gets for absent keys"),
            y: Axis::linear("million gets a second of processor time"),
            series,
        }],
        published,
    })
}

/// Gets of present items by popularity, and of items that are absent.
fn requests(data: &Data, cache: &Cache, absent_percent: u32, seed: u64) -> Result<Vec<Request>, BenchError> {
    let gets = Mix::of_gets(100.0);
    let mut requests = draw_requests(data.keys, YCSB_SKEW, gets, data.keys as usize, seed)?;
    let (mut present, mut absent) = (Vec::new(), Vec::new());
    for number in 0..data.keys {
        let of = if cache.contains(&key(u64::from(number))) { &mut present } else { &mut absent };
        of.push(number);
    }
    for (at, request) in requests.iter_mut().enumerate() {
        let all = if (at as u32).wrapping_mul(61) % 100 < absent_percent { &absent } else { &present };
        // The most popular of them are as popular as the most popular of all.
        if let Some(number) = all.get(request.number as usize % all.len().max(1)) {
            request.number = *number;
        }
    }
    Ok(requests)
}

/// Microseconds of the median get that the zone answers.
fn zone_hit_us(cache: &Cache, data: &Data) -> f64 {
    let mut times = Vec::new();
    let step = (data.keys / SAMPLES).max(1);
    for number in (0..data.keys).step_by(step as usize) {
        let key = key(u64::from(number));
        let before = cache.stats().total().zone.hits;
        let began = Instant::now();
        cache.get_with(&key, |item| std::hint::black_box(item.value.len()));
        let us = began.elapsed().as_secs_f64() * 1e6;
        if cache.stats().total().zone.hits > before {
            times.push(us);
        }
    }
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(0.0)
}
