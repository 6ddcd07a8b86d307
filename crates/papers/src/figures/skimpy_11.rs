//! SkimpyStash's Figures 11 and 12: operations per second, by the length of chains, in the base and the enhanced
//! design.

use alluvium_bench::BenchError;

use super::skimpy_9::Runs;
use super::skimpy_trace::{Replayed, Trace};
use super::{Axis, Figure, Panel, Published, Scale};

/// Figure 11.
pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let source = "SkimpyStash (SIGMOD 2011), Figure 11: Xbox trace; here requests like it (92+1200 bytes, 7.5 gets a \
                  set, updates), one thread, sets not synced";
    let title = "SkimpyStash: operations per second, game state";
    throughput(scale, ("skimpy-11", title, source), Trace::Xbox, (69_000.0, 10_000.0), (3.5, 20.0))
}

/// Figure 12.
pub fn draw_dedup(scale: &Scale) -> Result<Figure, BenchError> {
    let source = "SkimpyStash (SIGMOD 2011), Figure 12: dedup trace; here requests like it (20+44 bytes, 2.2 gets a \
                  set, no updates), one thread, sets not synced";
    let title = "SkimpyStash: operations per second, deduplication";
    throughput(scale, ("skimpy-12", title, source), Trace::Dedup, (165_000.0, 34_000.0), (1.3, 2.5))
}

/// `rates` are the paper's of the enhanced design with chains of 1 and 32, `gains` these by those of the base design.
fn throughput(
    scale: &Scale,
    (id, title, source): (&'static str, &'static str, &'static str),
    trace: Trace,
    rates: (f64, f64),
    gains: (f64, f64),
) -> Result<Figure, BenchError> {
    let runs = Runs::of(scale, id, trace)?;
    let ends = |runs: &[Replayed]| (runs[0].ops_per_s(), runs[runs.len() - 1].ops_per_s());
    let (base, enhanced) = (ends(&runs.base), ends(&runs.enhanced));
    Ok(Figure {
        id,
        title,
        source,
        published: vec![
            Published::new("enhanced_ops_per_s_at_1", rates.0, enhanced.0),
            Published::new("enhanced_ops_per_s_at_32", rates.1, enhanced.1),
            Published::new("enhanced_by_base_ops_per_s_at_1", gains.0, enhanced.0 / base.0),
            Published::new("enhanced_by_base_ops_per_s_at_32", gains.1, enhanced.1 / base.1),
        ],
        panels: vec![Panel {
            x: Axis::logarithmic("keys per slot"),
            y: Axis::linear("thousand operations per second"),
            series: runs.series(|run| run.ops_per_s() / 1e3),
        }],
    })
}
