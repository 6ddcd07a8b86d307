//! `bench cache`: the memory engine, in process.
//!
//! Separate programs, since a cache can excel in one and lose another: speed and memory (`speed`), the eviction
//! policies' miss ratios (`trace`), a compressed zone (`zone`), the same in front of flash (`tiered`), a file that
//! survives (`survive`), space under items of changing sizes (`shift`), and a soak test that checks the counters at the
//! end (`soak`).

pub mod documents;
pub mod engine;
mod hot_hits;
pub mod items;
pub mod memcached;
pub mod options;
mod raw;
pub mod requests;
mod shift;
mod soak;
pub mod speed;
#[cfg(target_os = "linux")]
mod survive;
#[cfg(target_os = "linux")]
mod survive_compressed;
mod tiered;
mod trace;
pub mod worker;
pub mod zone;

pub use options::CacheOptions;
use options::Mode;

use crate::error::BenchError;
use crate::report::Report;

/// Runs what the options request.
///
/// # Errors
/// [`BenchError`]: the first wrong answer, or options that contradict each other.
pub fn run(options: &CacheOptions, report: &mut Report) -> Result<(), BenchError> {
    if options.mode == Mode::Zexpander {
        return zone::run(options, report);
    }
    if options.mode == Mode::Tiered {
        return tiered::run(options, report);
    }
    #[cfg(target_os = "linux")]
    if options.mode == Mode::Nvm {
        return match options.codec {
            Some(codec) => survive_compressed::run(options, codec.codec(), report),
            None => survive::run(options, report),
        };
    }
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
