//! `alluvium stat`.

mod remote;

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use alluvium::{Db, Stats};
use serde::Serialize;

use crate::database::{Database, YoungOptions};
use crate::failure::Failure;
use crate::http_get::Url;
use crate::interrupt::Interrupt;
use crate::output::{self, JsonOption};

/// Options of `stat`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Directory of the database
    #[arg(value_name = "DIR", required_unless_present = "url")]
    database: Option<PathBuf>,
    #[command(flatten)]
    young: YoungOptions,
    /// Ask a running server at its address for metrics, such as http://127.0.0.1:6380, instead of opening a database
    #[arg(long, conflicts_with = "database", value_parser = Url::parse)]
    url: Option<Url>,
    /// Print only whether the store of the server is healthy; exit with 1 if it takes no more writes
    #[arg(long, requires = "url")]
    health: bool,
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
    if let Some(url) = &options.url {
        return repeat(options, || match options.health {
            true => remote::print_health(url),
            false => remote::print(url, options.output),
        });
    }
    let Some(database) = options.database.clone() else {
        return Err(Failure::Usage("give the directory of a database, or --url".to_owned()));
    };
    let database = Database { database, young: options.young.clone() };
    // Watching is meant for background work, so the database is opened for writing.
    let db = match options.watch {
        None => database.open_to_read()?,
        Some(_) => database.open_existing()?,
    };
    repeat(options, || print(options, &db))?;
    db.close()?;
    Ok(())
}

/// Prints once, or until interrupted.
fn repeat(options: &Options, print: impl Fn() -> Result<(), Failure>) -> Result<(), Failure> {
    let Some(period) = options.watch else { return print() };
    let interrupt = Interrupt::on_signals()?;
    print()?;
    while !interrupt.wait(period) {
        if !options.output.json {
            println!();
        }
        print()?;
    }
    Ok(())
}

fn print(options: &Options, db: &Db) -> Result<(), Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let at_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    let sample = Sample { at_ms, stats: db.stats() };
    options.output.print(&sample, || output::statistics(&sample.stats))
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds
        .filter(|time| (0.1..=86_400.0).contains(&time.as_secs_f64()))
        .ok_or_else(|| "say 0.1 to 86400".to_owned())
}
