//! `alluvium-compare`: Alluvium compared with other software, alternating in one process.
//!
//! Each kind of other software is a feature: `cargo run --release -p alluvium-compare --features caches -- cache`,
//! `--features stores -- store`, or `--features rocksdb -- prefix-scan`. With both `stores` and `rocksdb`, RocksDB
//! joins the other stores. `Cargo.toml` says how to build it.
#![forbid(unsafe_code)]

#[cfg(feature = "caches")]
mod cache;
#[cfg(feature = "rocksdb")]
mod prefix_scan;
#[cfg(feature = "databases")]
mod store;

use std::process::ExitCode;

use clap::Parser;

/// Alluvium compared with other software, alternating in one process
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    subject: Option<Subject>,
}

#[derive(Debug, clap::Subcommand)]
enum Subject {
    /// The memory engine compared with quick_cache, moka, segcache, and dashmap, which never evicts
    #[cfg(feature = "caches")]
    Cache(cache::Options),
    /// Scans of groups of items that share a prefix, compared with RocksDB
    #[cfg(feature = "rocksdb")]
    PrefixScan(prefix_scan::Options),
    /// The storage engine compared with LMDB, fjall, redb and RocksDB where users look first
    #[cfg(feature = "databases")]
    Store(store::Options),
}

fn main() -> ExitCode {
    match Arguments::parse().subject {
        #[cfg(feature = "caches")]
        Some(Subject::Cache(options)) => ended(cache::run(&options)),
        #[cfg(feature = "rocksdb")]
        Some(Subject::PrefixScan(options)) => ended(prefix_scan::run(&options)),
        #[cfg(feature = "databases")]
        Some(Subject::Store(options)) => ended(store::run(&options)),
        _ => {
            eprintln!("nothing to compare with was built in: give a feature, for instance --features caches");
            ExitCode::FAILURE
        }
    }
}

#[cfg(any(feature = "caches", feature = "databases"))]
fn ended(outcome: Result<(), alluvium_bench::BenchError>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
