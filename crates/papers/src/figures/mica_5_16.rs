//! Lim's Figure 5.16: throughput by access mode, for reads and writes, uniform and skewed.
//!
//! The thesis measures over a network with 16 cores: EREW is consistently good, CREW a little better for reads of
//! skewed keys, and CRCW "offers no benefit over EREW and CREW". Here two threads in one process direct requests to the
//! owners, as the thesis's clients do.
//!
//! A difference: here CREW does not gain on skewed keys. In the thesis it does because it spreads the reads of popular
//! items over 16 cores, whereas under EREW the busiest core has far more than its share. Of two threads the busier one
//! has only a few percent more, and each core's cache has its own part of the popular items to itself.

use alluvium_bench::BenchError;

use super::mica::{Mix, Mode, rates};
use super::{Axis, Figure, Panel, Published, Scale, Series};

const THREADS: usize = 2;
const GET_PERCENTS: [u8; 3] = [50, 80, 95];
const MODES: [Mode; 3] = [Mode::Erew, Mode::Crew, Mode::Crcw];
const SKEWS: [(f64, &str); 2] = [(0.0, "uniform"), (0.99, "skewed")];

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let mixes: Vec<Mix> = SKEWS
        .into_iter()
        .flat_map(|(skew, _)| GET_PERCENTS.map(|get_percent| Mix { skew, get_percent }))
        .collect();
    let mut by_mode = Vec::new();
    for mode in MODES {
        by_mode.push(rates(scale, mode, THREADS, &mixes)?);
    }
    let panels = SKEWS.into_iter().enumerate().map(|(number, (_, popularity))| {
        let curve = |(mode, rates): (Mode, &Vec<f64>)| {
            let rates = &rates[number * GET_PERCENTS.len()..][..GET_PERCENTS.len()];
            let points = GET_PERCENTS.into_iter().map(f64::from).zip(rates.iter().copied()).collect();
            Series::measurement(format!("{}, {popularity}", mode.name()), points)
        };
        Panel {
            x: Axis::linear("percent gets"),
            y: Axis::linear("million operations a second of CPU time, two threads"),
            series: MODES.into_iter().zip(&by_mode).map(curve).collect(),
        }
    });
    // The last mix has skewed keys and 95 % gets.
    let [erew, crew, crcw] = [0, 1, 2].map(|mode: usize| by_mode[mode].last().copied().unwrap_or(f64::NAN));
    let published = vec![
        Published::new("crew_to_erew_skewed_95_percent_gets_min", 1.0, crew / erew),
        Published::new("crcw_to_crew_skewed_95_percent_gets_max", 1.0, crcw / crew),
        // 65.6 to 70.5 against 75.5 to 76.9 million over the network.
        Published::new("erew_skewed_to_uniform_50_percent_gets_min", 0.86, by_mode[0][3] / by_mode[0][0]),
    ];
    Ok(Figure {
        id: "mica-5.16",
        title: "Modes of access",
        source: "Lim's thesis, Figure 5.16: items of 8+8 bytes; here two threads, batches of 32, no network",
        panels: panels.collect(),
        published,
    })
}
