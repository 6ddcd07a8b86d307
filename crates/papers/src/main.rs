//! `alluvium-papers`: draws the papers' figures, and evaluates their models.
//!
//! Exit codes: 0 done; 1 an error; 2 wrong usage.
#![forbid(unsafe_code)]

mod commands;
mod interruption;

use std::io;
use std::process::ExitCode;

use alluvium_bench::{BenchError, Report};
use alluvium_papers::figures::{self, FigureOptions};
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "alluvium-papers", version, about = "The papers' figures, models and simulations")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Print one JSON object per line instead of a table. Infinite values are null
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Published results measured again, as numbers and drawings
    Figure(FigureOptions),
    /// Evaluate a cost model
    Model(Box<commands::Options>),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let error = match run(&arguments) {
        Ok(()) => return ExitCode::SUCCESS,
        // The reader of our output has closed it.
        Err(BenchError::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
        Err(error) => error,
    };
    eprintln!("alluvium-papers: {error}");
    let is_usage = matches!(error, BenchError::Usage(_) | BenchError::Model(_));
    ExitCode::from(if is_usage { 2 } else { 1 })
}

fn run(arguments: &Arguments) -> Result<(), BenchError> {
    let mut report = Report::new(arguments.json);
    let outcome = match &arguments.command {
        Command::Figure(options) => {
            interruption::remove_directories(report.directories().clone())?;
            figures::run(options, &mut report)
        }
        Command::Model(options) => commands::run(options, &mut report),
    };
    // Results that were made before a failure are still useful.
    report.finish()?;
    outcome
}
