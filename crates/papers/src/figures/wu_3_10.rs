//! Wu's Figures 3.10 and 3.12: throughput and misses of caches with and without a compressed zone, by mix and threads.
//!
//! The thesis has a fast cache of its own in 60 GB, and up to 24 threads. After both caches were warmed up, gets that
//! find nothing are not followed by a set: the mix is exactly what is measured, as in the thesis, where there is one of
//! gets only. What a cache costs whose users do set items after misses is the last curve.

use alluvium_bench::BenchError;

use super::replay::{AfterMiss, Mix, draw_requests, millions_per_s, replay_together, threads};
use super::zexpander::{Data, HOT_PERCENT, YCSB_SHARE, YCSB_SKEW};
use super::{Axis, Figure, Panel, Published, Scale, Series};

const GET_PERCENTS: [u32; 4] = [5, 50, 95, 100];
const THREADS_MAX: usize = 24;

/// A curve: million requests and million misses a second, by percent gets.
struct Curve {
    name: String,
    rates: Vec<(f64, f64)>,
    misses: Vec<(f64, f64)>,
}

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let curves = measure(scale)?;
    let mut published = Vec::new();
    for (number, percent) in GET_PERCENTS.into_iter().enumerate() {
        // The thesis has 10 to 15 % less.
        let ratio = curves[1].rates[number].1 / curves[0].rates[number].1;
        published.push(Published::new(format!("compressed_to_plain_{percent}_percent_gets"), 0.85, ratio));
    }
    let [plain, compressed] = [curves.len() - 2, curves.len() - 1].map(|at| curves[at].rates[2].1);
    published.push(Published::ours("compressed_to_plain_with_sets_after_misses", compressed / plain));
    // 33 million a second at most, of 24 threads.
    published.push(Published::new(
        "plain_100_percent_gets_mops_per_s_and_thread",
        33.0 / 24.0,
        curves[0].rates[3].1,
    ));
    let compressed = curves[1].rates[3].1;
    published.push(Published::ours("compressed_100_percent_gets_mops_per_s_and_thread", compressed));
    let series = curves.into_iter().map(|curve| Series::measurement(curve.name, curve.rates)).collect();
    Ok(Figure {
        id: "wu-3.10",
        title: "Throughput with a compressed zone",
        source: "Wu's thesis, Figure 3.10: 60 GB, up to 24 threads; here the same share of the data, processor time",
        panels: vec![Panel {
            x: Axis::linear("percent gets"),
            y: Axis::linear("million requests a second of processor time"),
            series,
        }],
        published,
    })
}

pub fn draw_misses(scale: &Scale) -> Result<Figure, BenchError> {
    let curves = measure(scale)?;
    let mut published = Vec::new();
    for (number, percent) in GET_PERCENTS.into_iter().enumerate() {
        let [plain, compressed] = [0, 1].map(|curve: usize| &curves[curve]);
        let misses_per_s = compressed.misses[number].1 / plain.misses[number].1.max(1e-12);
        let of = |curve: &Curve| curve.misses[number].1 / curve.rates[number].1;
        published.push(Published::new(
            format!("misses_per_s_to_plain_{percent}_percent_gets"),
            0.7,
            misses_per_s,
        ));
        let name = format!("misses_per_request_to_plain_{percent}_percent_gets");
        published.push(Published::ours(name, of(compressed) / of(plain).max(1e-12)));
    }
    let series = curves.into_iter().map(|curve| Series::measurement(curve.name, curve.misses)).collect();
    Ok(Figure {
        id: "wu-3.12",
        title: "Misses a second with a compressed zone",
        source: "Wu's thesis, Figure 3.12: 60 GB, up to 24 threads; here the same share of the data, processor time",
        panels: vec![Panel {
            x: Axis::linear("percent gets"),
            y: Axis::linear("million misses a second of processor time"),
            series,
        }],
        published,
    })
}

/// The curves of both caches, for each number of threads; then with sets after misses.
fn measure(scale: &Scale) -> Result<Vec<Curve>, BenchError> {
    let data = Data::new(scale)?;
    let memory = (YCSB_SHARE * data.bytes()) as u64;
    let caches = data.caches(memory, HOT_PERCENT)?;
    for (_, cache) in &caches {
        data.warm_up(cache, memory, YCSB_SKEW, Mix::of_gets(95.0))?;
    }
    let mut cases: Vec<_> =
        threads(THREADS_MAX).into_iter().map(|threads| (threads, AfterMiss::Nothing)).collect();
    cases.push((1, AfterMiss::Set));
    let mut curves = Vec::new();
    for (threads, after_miss) in cases {
        for (name, cache) in &caches {
            let with = if after_miss == AfterMiss::Set { ", sets after misses" } else { "" };
            let mut curve = Curve {
                name: format!("{name}, {threads} threads{with}"),
                rates: Vec::new(),
                misses: Vec::new(),
            };
            for percent in GET_PERCENTS {
                let mix = Mix::of_gets(f64::from(percent));
                let seed = scale.seed ^ u64::from(percent) << 32;
                let requests = draw_requests(data.keys, YCSB_SKEW, mix, data.keys as usize, seed)?;
                let tally = replay_together(cache, &data.values, &requests, after_miss, threads)?;
                let rate = millions_per_s(&tally);
                curve.rates.push((f64::from(percent), rate));
                let misses = rate * tally.misses as f64 / tally.requests.max(1) as f64;
                curve.misses.push((f64::from(percent), misses));
            }
            curves.push(curve);
        }
    }
    Ok(curves)
}
