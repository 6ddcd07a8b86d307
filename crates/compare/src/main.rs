//! `alluvium-compare`: Alluvium beside other software, in one process and by turns.
//!
//! Other software is a feature each kind: `cargo run --release -p alluvium-compare --features caches -- cache`.
#![forbid(unsafe_code)]

#[cfg(feature = "caches")]
mod cache;

use std::process::ExitCode;

use clap::Parser;

/// Alluvium beside other software, in one process and by turns
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    subject: Option<Subject>,
}

#[derive(Debug, clap::Subcommand)]
enum Subject {
    /// The memory engine beside quick_cache, moka, segcache, and dashmap, which never evicts
    #[cfg(feature = "caches")]
    Cache(cache::Options),
}

fn main() -> ExitCode {
    match Arguments::parse().subject {
        #[cfg(feature = "caches")]
        Some(Subject::Cache(options)) => match cache::run(&options) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        },
        _ => {
            eprintln!("nothing to compare with was built in: give a feature, for instance --features caches");
            ExitCode::FAILURE
        }
    }
}
