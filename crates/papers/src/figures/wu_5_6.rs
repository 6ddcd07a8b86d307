//! Wu's Figures 5.6 and 5.7: throughput of caches in a file by the percent of sets, for three sizes of values, and for
//! several threads.
//!
//! The text states few numbers: NVMcached is at most 4.5 times as fast as the others on such requests, and faster than
//! MC-NVM from 20 % sets on. It has up to 12 threads.

use alluvium_bench::BenchError;

use super::nvmcached::{Caches, Files, Kind};
use super::replay::{Mix, Request, draw_requests, threads};
use super::{Axis, Figure, Panel, Published, Scale, Series};

const SET_PERCENTS: [u32; 6] = [0, 5, 20, 50, 80, 100];
const VALUE_BYTES: [usize; 3] = [100, 1000, 10_000];
const THREADS_MAX: usize = 12;
const SKEW: f64 = 0.99;
/// What the thesis states of NVMcached against the others, on requests by Zipf's law.
const GAIN_MAX: f64 = 4.5;

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let files = Files::new(scale, "wu-5.6")?;
    let (mut panels, mut published) = (Vec::new(), Vec::new());
    for value_bytes in VALUE_BYTES {
        let caches = Caches::new(scale, &files, value_bytes);
        let [series] = measure(scale, &caches, [1])?;
        published.extend(compared(&format!("{value_bytes}_bytes"), &series));
        panels.push(panel(series, &format!("{value_bytes} bytes")));
    }
    Ok(Figure {
        id: "wu-5.6",
        title: "Throughput of caches in a file by size of the values",
        source: "Wu's thesis, Figure 5.6: one thread; here DRAM in huge pages for both, no MC-NVLRU, processor time",
        panels,
        published,
    })
}

pub fn draw_threads(scale: &Scale) -> Result<Figure, BenchError> {
    let files = Files::new(scale, "wu-5.7")?;
    let (mut panels, mut published) = (Vec::new(), Vec::new());
    let caches = Caches::new(scale, &files, VALUE_BYTES[0]);
    let numbers = threads(THREADS_MAX);
    let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else {
        unreachable!("there are threads")
    };
    for (threads, series) in [*first, *last].into_iter().zip(measure(scale, &caches, [*first, *last])?) {
        published.extend(compared(&format!("{threads}_threads"), &series));
        panels.push(panel(series, &format!("{threads} threads")));
    }
    Ok(Figure {
        id: "wu-5.7",
        title: "Throughput of caches in a file by threads",
        source: "Wu's thesis, Figure 5.7: 4 to 12 threads, values of 100 B; here as many as processors, no MC-NVLRU",
        panels,
        published,
    })
}

/// A curve for each kind of cache, over the percent of sets, for each number of threads.
fn measure<const THREADS: usize>(
    scale: &Scale,
    caches: &Caches<'_>,
    threads: [usize; THREADS],
) -> Result<[Vec<Series>; THREADS], BenchError> {
    let mut drawn = Vec::new();
    for percent in SET_PERCENTS {
        let mix = Mix::of_gets(100.0 - f64::from(percent));
        drawn.push(draw_requests(caches.keys, SKEW, mix, caches.requests_len(), scale.seed)?);
    }
    let mut curves = threads.map(|_| Vec::new());
    for kind in Kind::ALL {
        let series: Vec<(&[Request], usize)> = threads
            .iter()
            .flat_map(|&threads| drawn.iter().map(move |requests| (requests.as_slice(), threads)))
            .collect();
        let rates = caches.rates(kind, &series)?;
        for (curves, rates) in curves.iter_mut().zip(rates.chunks(SET_PERCENTS.len())) {
            let points = SET_PERCENTS.into_iter().map(f64::from).zip(rates.iter().copied()).collect();
            curves.push(Series::measurement(kind.name(), points));
        }
    }
    Ok(curves)
}

/// What the text states, and how far our cache is from the one in memory.
fn compared(case: &str, series: &[Series]) -> Vec<Published> {
    let of = |kind: Kind| series.iter().find(|series| series.name == kind.name());
    let ratio = |one: Kind, other: Kind, percent: u32| {
        let at = |kind: Kind| of(kind).and_then(|series| series.at(f64::from(percent))).unwrap_or(f64::NAN);
        at(one) / at(other)
    };
    let gains = SET_PERCENTS.into_iter().map(|percent| {
        [Kind::Surviving, Kind::WriteCache]
            .map(|kind| ratio(kind, Kind::EverySet, percent))
            .into_iter()
            .fold(0.0, f64::max)
    });
    let mut compared = vec![
        Published::new(format!("{case}_to_each_set_flushed_max"), GAIN_MAX, gains.fold(0.0, f64::max)),
        Published::new(
            format!("{case}_to_each_set_flushed_20_percent_sets_min"),
            1.0,
            ratio(Kind::Surviving, Kind::EverySet, 20),
        ),
    ];
    for percent in [5, 50, 100] {
        let name = |of: &str| format!("{case}_{of}_{percent}_percent_sets");
        compared.push(Published::ours(name("to_in_memory"), ratio(Kind::Surviving, Kind::Plain, percent)));
        compared.push(Published::ours(
            name("to_each_set_flushed"),
            ratio(Kind::Surviving, Kind::EverySet, percent),
        ));
        compared.push(Published::ours(
            name("with_write_cache_to_each_set_flushed"),
            ratio(Kind::WriteCache, Kind::EverySet, percent),
        ));
    }
    compared
}

fn panel(series: Vec<Series>, case: &str) -> Panel {
    Panel {
        x: Axis::linear("percent sets"),
        y: Axis::linear("million requests a second of processor time"),
        series: series
            .into_iter()
            .map(|series| Series { name: format!("{}, {case}", series.name), ..series })
            .collect(),
    }
}
