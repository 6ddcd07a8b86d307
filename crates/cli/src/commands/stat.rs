//! `alluvium stat`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use alluvium::{Db, Stats};
use serde::Serialize;

use crate::database::Database;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::{self, JsonOption};

/// Options of `stat`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    database: Database,
    /// Print again every SECONDS seconds until interrupted. The database stays open and continues its background work
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    watch: Option<Duration>,
    #[command(flatten)]
    output: JsonOption,
}

/// Statistics with their time.
#[derive(Serialize)]
struct Sample {
    /// Milliseconds since 1970.
    at_ms: u64,
    #[serde(flatten)]
    stats: Stats,
}

/// Prints levels, memory and traffic, once or until interrupted.
pub fn run(options: &Options) -> Result<(), Failure> {
    // Watching is meant for background work, so the database is opened for writing.
    let db = match options.watch {
        None => options.database.open_to_read()?,
        Some(_) => options.database.open_existing()?,
    };
    match options.watch {
        None => print(options, &db)?,
        Some(period) => {
            let interrupt = Interrupt::on_signals()?;
            print(options, &db)?;
            while !interrupt.wait(period) {
                if !options.output.json {
                    println!();
                }
                print(options, &db)?;
            }
        }
    }
    db.close()?;
    Ok(())
}

fn print(options: &Options, db: &Db) -> Result<(), Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let at_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    let sample = Sample { at_ms, stats: db.stats() };
    options.output.print(&sample, || {
        let stats = &sample.stats;
        let (levels, memory, traffic) =
            (output::levels(stats), output::memory(stats), output::traffic(stats));
        let changes = output::plan_changes(stats);
        format!("{levels}\n{memory}\n{changes}{traffic}")
    })
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds
        .filter(|time| (0.1..=86_400.0).contains(&time.as_secs_f64()))
        .ok_or_else(|| "say 0.1 to 86400".to_owned())
}
