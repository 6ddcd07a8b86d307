//! SkimpyStash's Figures 13 and 14: operations per second and the time of a get, by how eagerly garbage is collected.
//!
//! The paper collects one whole chain after each g updates, and writes its records to one place, so that the chain is
//! shorter in pages, too. This engine has no such knob. It collects the oldest segments when a share of the log is
//! garbage, and moves live records only (decision 0082); and it writes chains anew at one place after gets that read
//! more than the plan says. So the horizontal axis is that share here, and there is a curve without and one with chains
//! that are written anew. The paper's g = 2 keeps up with the updates; with g = 128 garbage grows as if nothing was
//! collected, as with a share of 0.9 here.

use alluvium_bench::BenchError;
use alluvium_model::{ChainedSpec, Plan};
use indicatif::ProgressBar;

use super::skimpy_trace::{Replayed, Trace, chains, replay};
use super::{Axis, Figure, Panel, Published, Scale, Series};

const SHARES: [f64; 7] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.9];
/// Keys for a slot, on average.
const LENGTH: u32 = 8;
/// Reads of a get after which chains are written anew.
const READS_MAX: u32 = 3;

/// Figure 13.
pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let runs = Runs::of(scale, "skimpy-13")?;
    let mut published = Vec::new();
    for (name, runs) in [("left", &runs.left), ("anew", &runs.anew)] {
        let rates: Vec<f64> = runs.iter().map(Replayed::ops_per_s).collect();
        let best = (0..SHARES.len()).max_by(|&one, &other| rates[one].total_cmp(&rates[other])).unwrap_or(0);
        let gain = rates[best] / rates[SHARES.len() - 1];
        published.push(Published::ours(format!("{name}_best_garbage_share"), SHARES[best]));
        published.push(Published::ours(format!("{name}_best_by_never_ops_per_s"), gain));
        for (share, run) in SHARES.iter().zip(runs) {
            let written = run.written_per_byte;
            published.push(Published::ours(format!("{name}_write_amplification_at_{share}"), written));
        }
    }
    Ok(Figure {
        id: "skimpy-13",
        title: "SkimpyStash: operations per second, by garbage collection",
        source: "SkimpyStash (SIGMOD 2011), Figure 13: Xbox trace, 8 keys a slot, peak at one chain per 8 updates; \
                 here by the share of garbage at which the oldest segments are collected",
        published,
        panels: vec![runs.panel("thousand operations per second", |run| run.ops_per_s() / 1e3)],
    })
}

/// Figure 14.
pub fn draw_gets(scale: &Scale) -> Result<Figure, BenchError> {
    let runs = Runs::of(scale, "skimpy-14")?;
    let mut published = Vec::new();
    for (name, runs) in [("left", &runs.left), ("anew", &runs.anew)] {
        let never = runs[SHARES.len() - 1].get_us / runs[0].get_us.max(1e-6);
        published.push(Published::ours(format!("{name}_never_by_most_eager_get_us"), never));
        for (share, run) in SHARES.iter().zip(runs) {
            published.push(Published::ours(format!("{name}_reads_per_get_at_{share}"), run.reads_per_get));
        }
    }
    Ok(Figure {
        id: "skimpy-14",
        title: "SkimpyStash: time of a get, by garbage collection",
        source: "SkimpyStash (SIGMOD 2011), Figure 14: Xbox trace, 8 keys a slot, by updates per chain collected; here \
                 by the share of garbage at which the oldest segments are collected",
        published,
        panels: vec![
            runs.panel("microseconds of a get, absent keys included", |run| run.get_us),
            runs.panel("reads of the device for a get", |run| run.reads_per_get),
        ],
    })
}

/// The trace with each share of garbage.
struct Runs {
    /// Chains are left as they are.
    left: Vec<Replayed>,
    /// Chains are written anew.
    anew: Vec<Replayed>,
}

impl Runs {
    fn of(scale: &Scale, id: &str) -> Result<Self, BenchError> {
        let bar = ProgressBar::new(2 * SHARES.len() as u64);
        let mut runs = [Vec::new(), Vec::new()];
        for share in SHARES {
            for (walk_reads_max, runs) in [None, Some(READS_MAX)].into_iter().zip(&mut runs) {
                let spec = ChainedSpec { walk_reads_max, ..chains(LENGTH, true, share) };
                runs.push(replay(scale, id, Trace::Xbox, &Plan::Chained(spec))?);
                bar.inc(1);
            }
        }
        bar.finish_and_clear();
        let [left, anew] = runs;
        Ok(Self { left, anew })
    }

    fn panel(&self, label: &'static str, of: fn(&Replayed) -> f64) -> Panel {
        let points =
            |runs: &[Replayed]| SHARES.iter().zip(runs).map(|(share, run)| (*share, of(run))).collect();
        Panel {
            x: Axis::linear("share of garbage at which the log is collected"),
            y: Axis::linear(label),
            series: vec![
                Series::measurement("chains as they grow", points(&self.left)),
                Series::measurement("chains written anew after 3 reads", points(&self.anew)),
            ],
        }
    }
}
