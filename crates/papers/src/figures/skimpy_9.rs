//! SkimpyStash's Figures 9 and 10: how long a get takes, by the length of chains, in the base and the enhanced design.
//!
//! Nothing is collected, so that chains of updated keys grow, as in the paper. What the paper's base design takes on
//! its traces depends on how often keys are updated and asked for in vain, which it does not state.

use alluvium_bench::BenchError;
use alluvium_model::Plan;
use indicatif::ProgressBar;

use super::skimpy_trace::{LENGTHS, NEVER, Replayed, Trace, chains, replay};
use super::{Axis, Figure, Panel, Published, Scale, Series};

/// Figure 9.
pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let runs = Runs::of(scale, "skimpy-9", Trace::Xbox)?;
    let mut published = vec![Published::new("enhanced_get_us_at_8", 20.0, runs.enhanced[3].get_us)];
    published.extend(runs.gains("base_by_enhanced_get_us", |run| run.get_us, (6.0, 24.0)));
    published.extend(runs.reads());
    let source = "SkimpyStash (SIGMOD 2011), Figure 9: Xbox trace; here requests like it (92+1200 bytes, 7.5 gets a \
                  set, updates), one thread";
    runs.figure("skimpy-9", "SkimpyStash: time of a get, game state", source, published)
}

/// Figure 10.
pub fn draw_dedup(scale: &Scale) -> Result<Figure, BenchError> {
    let runs = Runs::of(scale, "skimpy-10", Trace::Dedup)?;
    let mut published = vec![Published::new("enhanced_get_us_at_8", 12.0, runs.enhanced[3].get_us)];
    published.extend(runs.gains("base_by_enhanced_get_us", |run| run.get_us, (1.5, 2.5)));
    published.extend(runs.reads());
    let source = "SkimpyStash (SIGMOD 2011), Figure 10: dedup trace; here requests like it (20+44 bytes, 2.2 gets a \
                  set, no updates), one thread";
    runs.figure("skimpy-10", "SkimpyStash: time of a get, deduplication", source, published)
}

/// A trace with chains of each length, by design.
pub struct Runs {
    pub base: Vec<Replayed>,
    pub enhanced: Vec<Replayed>,
}

impl Runs {
    pub fn of(scale: &Scale, id: &str, trace: Trace) -> Result<Self, BenchError> {
        let bar = ProgressBar::new(2 * LENGTHS.len() as u64);
        let mut runs = [Vec::new(), Vec::new()];
        for length in LENGTHS {
            for (is_enhanced, runs) in [false, true].into_iter().zip(&mut runs) {
                runs.push(replay(scale, id, trace, &Plan::Chained(chains(length, is_enhanced, NEVER)))?);
                bar.inc(1);
            }
        }
        bar.finish_and_clear();
        let [base, enhanced] = runs;
        Ok(Self { base, enhanced })
    }

    /// A figure of each run by the length of chains.
    pub fn series(&self, of: fn(&Replayed) -> f64) -> Vec<Series> {
        let points = |runs: &[Replayed]| -> Vec<(f64, f64)> {
            LENGTHS.iter().zip(runs).map(|(length, run)| (f64::from(*length), of(run))).collect()
        };
        vec![
            Series::measurement("base", points(&self.base)),
            Series::measurement("enhanced", points(&self.enhanced)),
        ]
    }

    /// By how much the base design has more of something, with chains of 1 and 32, and the paper's numbers.
    pub fn gains(&self, name: &str, of: fn(&Replayed) -> f64, stated: (f64, f64)) -> [Published; 2] {
        let last = LENGTHS.len() - 1;
        [(0, 1, stated.0), (last, 32, stated.1)].map(|(at, length, stated)| {
            let gain = of(&self.base[at]) / of(&self.enhanced[at]).max(1e-6);
            Published::new(format!("{name}_at_{length}"), stated, gain)
        })
    }

    fn reads(&self) -> Vec<Published> {
        let of = |name: &str, runs: &[Replayed]| {
            let reads = LENGTHS.iter().zip(runs).map(|(length, run)| {
                Published::ours(format!("{name}_reads_per_get_at_{length}"), run.reads_per_get)
            });
            reads.collect::<Vec<_>>()
        };
        [of("base", &self.base), of("enhanced", &self.enhanced)].concat()
    }

    fn figure(
        &self,
        id: &'static str,
        title: &'static str,
        source: &'static str,
        published: Vec<Published>,
    ) -> Result<Figure, BenchError> {
        let panel = |label, of| Panel {
            x: Axis::logarithmic("keys per slot"),
            y: Axis::linear(label),
            series: self.series(of),
        };
        let panels = vec![
            panel("microseconds of a get, absent keys included", |run: &Replayed| run.get_us),
            panel("reads of the device for a get", |run: &Replayed| run.reads_per_get),
        ];
        Ok(Figure { id, title, source, panels, published })
    }
}
