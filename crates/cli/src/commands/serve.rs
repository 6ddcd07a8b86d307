//! `alluvium serve`.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use alluvium::{Db, Durability};
use alluvium_base::units;
use alluvium_server::{Password, Server, ServerError, ServerOptions, raise_descriptor_limit};

use crate::database::YoungOptions;
use crate::failure::Failure;
use crate::output;

/// Options of `serve`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Directory of the database; created if absent
    #[arg(long)]
    dir: PathBuf,
    #[command(flatten)]
    young: YoungOptions,
    /// Port on the loopback address; 0 lets the system choose
    #[arg(long, default_value_t = 6379)]
    port: u16,
    /// Address to listen on instead of the loopback address, including the port
    #[arg(long, conflicts_with = "port")]
    address: Option<SocketAddr>,
    /// Answer HTTP requests for the server's page, metrics and health at this address, such as 127.0.0.1:6380
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    /// Allow addresses that other machines can reach: for clients without a password, and for metrics
    #[arg(long)]
    allow_remote: bool,
    /// File whose first line is the password that clients must give; ALLUVIUM_PASSWORD by default
    #[arg(long)]
    password_file: Option<PathBuf>,
    /// Maximum connections served at once; 10000 by default. Reduced if the process may not have that many descriptors
    #[arg(long)]
    clients_max: Option<usize>,
    /// Threads that serve connections; one per core by default
    #[arg(long)]
    workers: Option<NonZeroUsize>,
    /// When a write is acknowledged: buffered, process (survives its death), sync, or an interval such as 10ms
    #[arg(long, default_value = "sync", value_parser = parse_durability)]
    durability: Durability,
}

/// Serves until SIGTERM or SIGINT, then closes the database.
pub fn run(options: &Options) -> Result<(), Failure> {
    let loopback = SocketAddr::from(([127, 0, 0, 1], options.port));
    // Before the database is opened, since it takes its share of the descriptors. If the limit cannot be raised, all
    // users get fewer.
    let _ = raise_descriptor_limit();
    let db = options.young.give(Db::builder(&options.dir).durability(options.durability)).open()?;
    let defaults = ServerOptions::default();
    let server_options = ServerOptions {
        address: options.address.unwrap_or(loopback),
        metrics_address: options.metrics,
        allow_remote: options.allow_remote,
        password: password(options.password_file.as_deref())?,
        clients_max: options.clients_max.unwrap_or(defaults.clients_max),
        workers: options.workers.unwrap_or(defaults.workers),
        ..defaults
    };
    let asked = server_options.clients_max;
    let server = Server::bind(server_options, db.clone()).map_err(failure)?;
    server.shutdown_handle().on_termination_signals()?;
    eprintln!("alluvium: {} is served at {}", options.dir.display(), server.local_address());
    if let Some(address) = server.metrics_address() {
        eprintln!("alluvium: metrics are at http://{address}/metrics");
    }
    let clients_max = server.clients_max();
    if clients_max < asked {
        output::warn(&format!(
            "at most {clients_max} clients are served at once, not {asked}: half of the descriptors (`ulimit -n`) are \
             for the database"
        ));
    }
    server.run().map_err(failure)?;
    db.close()?;
    Ok(())
}

/// The password of the file, or of the environment. A password on the command line would be in the list of processes.
fn password(file: Option<&Path>) -> Result<Option<Password>, Failure> {
    let text = match file {
        Some(file) => {
            let text = std::fs::read_to_string(file)
                .map_err(|error| Failure::Failed(format!("cannot read {}: {error}", file.display())))?;
            text.lines().next().unwrap_or_default().to_owned()
        }
        None => match std::env::var("ALLUVIUM_PASSWORD") {
            Ok(text) => text,
            Err(_) => return Ok(None),
        },
    };
    match Password::new(text) {
        Some(password) => Ok(Some(password)),
        None => Err(Failure::Failed("the password is empty".to_owned())),
    }
}

fn failure(error: ServerError) -> Failure {
    Failure::Failed(error.to_string())
}

fn parse_durability(text: &str) -> Result<Durability, String> {
    match text {
        "buffered" => Ok(Durability::Buffered),
        "process" => Ok(Durability::Process),
        "sync" => Ok(Durability::Sync),
        text => match units::parse_duration(text) {
            Ok(interval) if interval > Duration::ZERO => Ok(Durability::Interval(interval)),
            _ => Err("expected buffered, process, sync, or an interval such as 10ms".to_owned()),
        },
    }
}
