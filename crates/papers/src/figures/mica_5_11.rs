//! Lim's Figure 5.11: what a core serves of uniform and of skewed keys, 50 % gets, EREW.
//!
//! In the thesis the busiest core receives 17.3 packets at a time instead of 10.2, which makes each cheaper, and finds
//! more in its caches. Here datagrams come in trains, so bursts are long whatever the skew.

use alluvium_bench::BenchError;

use super::mica_net::{Measured, SKEWED, TINY, options};
use super::{Axis, Figure, Panel, Published, Scale, Series};

const WORKERS: usize = 2;
/// Skews in hundredths; the thesis has the first and the last but one.
const SKEWS: [u32; 5] = [0, 50, 90, 99, 120];

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let (mut rates, mut all, mut bursts) = (Vec::new(), Vec::new(), Vec::new());
    for hundredths in SKEWS {
        let skew = f64::from(hundredths) / 100.0;
        let mut options = options(scale, TINY, WORKERS);
        (options.skew, options.get_share) = (skew, 0.5);
        let measured = Measured::of(&options)?;
        rates.push((skew, measured.millions_per_core()));
        all.push((skew, measured.millions_of_all_cores() / WORKERS as f64));
        bursts.push((skew, measured.get("burst_mean")));
    }
    let rates = Series::measurement("a core on average", rates);
    let all = Series::measurement("a core, as far as the busiest allows", all);
    let ratio = |series: &Series| {
        series.at(SKEWED).zip(series.at(0.0)).map_or(0.0, |(skewed, uniform)| skewed / uniform)
    };
    let published = vec![
        // 70.4 against 76.9 million.
        Published::new("skewed_to_uniform_50_percent_gets", 70.4 / 76.9, ratio(&all)),
    ];
    let panels = vec![
        Panel {
            x: Axis::linear("Zipf skew"),
            y: Axis::linear("million operations a second and core"),
            series: vec![rates, all],
        },
        Panel {
            x: Axis::linear("Zipf skew"),
            y: Axis::linear("datagrams received at a time"),
            series: vec![Series::measurement("burst", bursts)],
        },
    ];
    Ok(Figure {
        id: "mica-5.11",
        title: "Throughput of a core by skew",
        source: "Lim's thesis, Figure 5.11: tiny items, 50 % gets, EREW with 16 cores; here two workers, loopback",
        panels,
        published,
    })
}
