//! The `alluvium` command: one file per subcommand in `commands`.
//!
//! Exit codes: 0 done; 1 an error, a failed check, or nothing found; 2 wrong usage.
#![forbid(unsafe_code)]

mod bytes;
mod commands;
mod database;
mod durable_file;
mod failure;
mod http_get;
mod interrupt;
mod keyspace_head;
mod output;
mod progress;
mod resume;
mod service_manager;
mod transfer_format;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    name = "alluvium",
    version,
    about = "A key-value store for very many small items on very little memory"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print the value of a key
    Get(commands::get::Options),
    /// Store a value under a key
    Put(commands::put::Options),
    /// Remove a key
    Delete(commands::delete::Options),
    /// Print items, in the order of their hashes
    Scan(commands::scan::Options),
    /// Show what a database consists of
    Inspect(commands::inspect::Options),
    /// Check everything that is stored; writes nothing to tables
    Verify(commands::verify::Options),
    /// Repair a damaged database and keep everything that can still be read
    Repair(commands::repair::Options),
    /// Merge everything into the sorted runs and drop what has expired
    Compact(commands::compact::Options),
    /// Make an independent copy of a database
    Checkpoint(commands::checkpoint::Options),
    /// Make a backup next to earlier ones, with which it shares unchanged files; or list them
    Backup(commands::backup::Options),
    /// Make a database from a backup
    Restore(commands::restore::Options),
    /// Show levels, memory and traffic, once or repeatedly
    Stat(commands::stat::Options),
    /// Write all items to a file or to standard output
    Export(commands::export::Options),
    /// Store the items of a file or of standard input
    Import(commands::import::Options),
    /// Print a script that makes a shell complete this command
    Completions(commands::completions::Options),
    /// Find the plan that fits a workload, and explain it
    Plan(commands::plan::Options),
    /// Measure what the device can do, for the planner
    Calibrate(commands::calibrate::Options),
    /// Write one shard of a bulk build
    BuildShard(commands::build_shard::Options),
    /// Commit a bulk build when all its shards are written, or abort it
    CommitBuild(commands::commit_build::Options),
    /// Make a bulk build a database, without rewriting it
    Adopt(commands::adopt::Options),
    /// List the built versions that a server can serve
    Versions(commands::versions::Options),
    /// Run a benchmark
    Bench(commands::bench::Options),
    /// Serve a database over the Redis protocol
    Serve(Box<commands::serve::Options>),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Get(options) => commands::get::run(&options),
        Command::Put(options) => commands::put::run(&options),
        Command::Delete(options) => commands::delete::run(&options),
        Command::Scan(options) => commands::scan::run(&options),
        Command::Inspect(options) => commands::inspect::run(&options),
        Command::Verify(options) => commands::verify::run(&options),
        Command::Repair(options) => commands::repair::run(&options),
        Command::Compact(options) => commands::compact::run(&options),
        Command::Checkpoint(options) => commands::checkpoint::run(&options),
        Command::Backup(options) => commands::backup::run(&options),
        Command::Restore(options) => commands::restore::run(&options),
        Command::Stat(options) => commands::stat::run(&options),
        Command::Export(options) => commands::export::run(&options),
        Command::Import(options) => commands::import::run(&options),
        Command::Completions(options) => commands::completions::run(&options),
        Command::Plan(options) => commands::plan::run(&options),
        Command::Calibrate(options) => commands::calibrate::run(&options),
        Command::BuildShard(options) => commands::build_shard::run(&options),
        Command::CommitBuild(options) => commands::commit_build::run(&options),
        Command::Adopt(options) => commands::adopt::run(&options),
        Command::Versions(options) => commands::versions::run(&options),
        Command::Bench(options) => commands::bench::run(&options),
        Command::Serve(options) => commands::serve::run(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
