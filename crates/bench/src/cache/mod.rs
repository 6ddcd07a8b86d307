//! `bench cache`: the memory engine in process.
//!
//! Programs of their own, for a cache can win one by losing another: speed and memory (`speed`), the eviction policies'
//! miss ratios (`trace`), space under items of changing sizes (`shift`), and a soak that ends with the accounts
//! balanced (`soak`).

pub mod engine;
pub mod items;
pub mod options;
mod raw;
pub mod requests;
mod shift;
mod soak;
pub mod speed;
mod trace;
pub mod worker;

pub use options::CacheOptions;

use crate::error::BenchError;
use crate::report::Report;

/// Runs what the options ask for.
///
/// # Errors
/// [`BenchError`]: the first wrong answer, or options that don't go together.
pub fn run(options: &CacheOptions, report: &mut Report) -> Result<(), BenchError> {
    if let Some(kind) = options.trace {
        return trace::run(options, kind, report);
    }
    if options.shifts {
        return shift::run(options, report);
    }
    if let Some(seconds) = options.soak {
        return soak::run(options, seconds, report);
    }
    speed::run(options, report)
}
