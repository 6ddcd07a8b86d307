//! `alluvium-papers model`: every primitive and model of `alluvium-model` with arbitrary parameters.
//!
//! Sizes are in items unless their name says bytes. Numbers may be written as 1e8.

mod designs;
mod keys;
mod optimize;
mod output;
mod plan;
mod primitives;
mod simulate;
mod slimdb;

use std::io;
use std::path::Path;

use alluvium_bench::{BenchError, Report};
use clap::Subcommand;

/// Options of `model`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    #[command(subcommand)]
    model: Model,
}

#[derive(Clone, Debug, Subcommand)]
enum Model {
    /// Different keys among a number of requests
    Unique(primitives::UniqueOptions),
    /// Requests after which a number of different keys were named
    UniqueInverse(primitives::UniqueInverseOptions),
    /// Keys in the union of tables
    Merge(primitives::MergeOptions),
    /// Requests between compactions of the same key, in a level of this size
    Dinterval(primitives::DintervalOptions),
    /// Probability that a level has a key, by the distance from the last compacted one
    Density(primitives::DensityOptions),
    /// LevelDB (Lim's thesis, Algorithm 3)
    Leveldb(designs::LevelDbOptions),
    /// COLA (Lim's thesis, Algorithm 4)
    Cola(designs::StageOptions),
    /// SAMT (Lim's thesis, Algorithm 4)
    Samt(designs::StageOptions),
    /// SILT (Lim's thesis, Algorithm 5)
    Silt(designs::SiltOptions),
    /// SILT's closed forms for uniform updates (Lim's thesis, section 2.4)
    SiltClosedForm(designs::SiltClosedFormOptions),
    /// SlimDB's per-level cost table, and the best layouts under a memory limit (SlimDB, section 4)
    Slimdb(slimdb::SlimDbOptions),
    /// LSM-trie (Wu's thesis, section 4.2)
    LsmTrie(designs::LsmTrieOptions),
    /// SkimpyStash (SIGMOD 2011, sections 4.5 and 4.6)
    #[command(name = "skimpystash")]
    SkimpyStash(designs::SkimpyStashOptions),
    /// LevelDB's level sizes that write least (Lim's thesis, section 4.6)
    OptimizeLevels(optimize::OptimizeLevelsOptions),
    /// Any plan
    Plan(plan::PlanOptions),
    /// Execute a design by key numbers, and compare it with its model
    Simulate(simulate::SimulateOptions),
}

/// Evaluates the model.
pub fn run(options: &Options, report: &mut Report) -> Result<(), BenchError> {
    let measurements = match &options.model {
        Model::Unique(options) => options.run(),
        Model::UniqueInverse(options) => options.run(),
        Model::Merge(options) => options.run(),
        Model::Dinterval(options) => options.run(),
        Model::Density(options) => options.run(),
        Model::Leveldb(options) => options.run(),
        Model::Cola(options) => options.run_cola(),
        Model::Samt(options) => options.run_samt(),
        Model::Silt(options) => options.run(),
        Model::SiltClosedForm(options) => options.run(),
        Model::Slimdb(options) => options.run(),
        Model::LsmTrie(options) => options.run(),
        Model::SkimpyStash(options) => options.run(),
        Model::OptimizeLevels(options) => options.run(),
        Model::Plan(options) => options.run(),
        Model::Simulate(options) => options.run(),
    }?;
    for measurement in measurements {
        report.add(measurement)?;
    }
    Ok(())
}

/// The error of a file that cannot be read.
fn unreadable(path: &Path, error: &io::Error) -> BenchError {
    BenchError::Input { path: path.to_owned(), line: 0, reason: format!("it cannot be read: {error}") }
}
