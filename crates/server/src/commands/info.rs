//! `INFO [section ...]`

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use super::dbsize::QUICK_VISITS_MAX;
use super::{Command, Context, Failure, REDIS_VERSION};
use crate::shared::Shared;
use crate::store::StoreHealth;

pub(super) const COMMAND: Command = Command {
    name: "info",
    arity: -1,
    flags: &["loading", "stale"],
    group: "server",
    summary: "Get information and statistics about the server",
    syntax: "[section [section ...]]",
    handler: info,
    ..Command::DEFAULT
};

/// Title and writer of a section, in the order of Redis.
type Section = (&'static str, fn(&Shared, &mut String) -> std::fmt::Result);

const SECTIONS: &[Section] = &[
    ("Server", server),
    ("Clients", clients),
    ("Memory", memory),
    ("Persistence", persistence),
    ("Stats", statistics),
    ("Replication", replication),
    ("Cluster", cluster),
    ("Keyspace", keyspace),
];

/// Omits unknown sections, as Redis does.
fn info(context: &mut Context<'_>) -> Result<(), Failure> {
    let asked = context.arguments.from(1);
    let everything = asked.is_empty()
        || (1..=asked.len())
            .any(|at| ["all", "default", "everything"].iter().any(|word| context.is_word(at, word)));
    let mut text = String::new();
    for (title, section) in SECTIONS {
        if everything || asked.iter().any(|name| name.eq_ignore_ascii_case(title.as_bytes())) {
            if !text.is_empty() {
                text.push_str("\r\n");
            }
            let _ = write!(text, "# {title}\r\n").and_then(|()| section(context.shared, &mut text));
        }
    }
    context.reply.verbatim_text(&text);
    Ok(())
}

fn server(shared: &Shared, out: &mut String) -> std::fmt::Result {
    let uptime = shared.started.elapsed().as_secs();
    write!(out, "redis_version:{REDIS_VERSION}\r\n")?;
    write!(out, "redis_mode:standalone\r\n")?;
    write!(out, "alluvium_version:{}\r\n", env!("CARGO_PKG_VERSION"))?;
    write!(out, "os:{}\r\n", std::env::consts::OS)?;
    write!(out, "arch_bits:{}\r\n", usize::BITS)?;
    write!(out, "process_id:{}\r\n", std::process::id())?;
    write!(out, "tcp_port:{}\r\n", shared.address.port())?;
    write!(out, "io_threads:{}\r\n", shared.options.workers)?;
    write!(out, "uptime_in_seconds:{uptime}\r\nuptime_in_days:{}\r\n", uptime / 86_400)
}

fn clients(shared: &Shared, out: &mut String) -> std::fmt::Result {
    write!(out, "connected_clients:{}\r\nmaxclients:{}\r\n", shared.connected.len(), shared.clients_max)?;
    write!(out, "blocked_clients:{}\r\n", shared.held_clients.load(Ordering::Relaxed))
}

fn memory(shared: &Shared, out: &mut String) -> std::fmt::Result {
    write!(out, "used_memory:{}\r\n", shared.store.memory_bytes())?;
    write!(out, "maxmemory:{}\r\nmaxmemory_policy:noeviction\r\n", shared.store.memory_bytes_max())
}

/// A server that answers has opened its store. Tools read Redis's two fields to learn whether writes can be stored; the
/// others say more.
fn persistence(shared: &Shared, out: &mut String) -> std::fmt::Result {
    let (state, reason, resumable) = match shared.store.health() {
        StoreHealth::Healthy => ("ok", String::new(), false),
        StoreHealth::Retrying { reason } => ("retrying", reason, false),
        StoreHealth::ReadOnly => ("read_only", String::new(), false),
        StoreHealth::Failed { reason, resumable } => ("failed", reason, resumable),
    };
    let status = if state == "failed" { "err" } else { "ok" };
    let resumptions = shared.resumptions.load(Ordering::Relaxed);
    write!(out, "loading:0\r\nrdb_bgsave_in_progress:0\r\nrdb_last_bgsave_status:{status}\r\n")?;
    write!(out, "aof_enabled:0\r\naof_last_write_status:{status}\r\n")?;
    write!(out, "store_status:{state}\r\nstore_resumable:{}\r\n", u8::from(resumable))?;
    write!(out, "store_failure:{}\r\n", reason.replace(char::is_control, " "))?;
    write!(out, "store_resumptions:{resumptions}\r\n")
}

fn statistics(shared: &Shared, out: &mut String) -> std::fmt::Result {
    let accepted = shared.connections_accepted.load(Ordering::Relaxed);
    let refused = shared.connections_refused.load(Ordering::Relaxed);
    write!(out, "total_connections_received:{accepted}\r\n")?;
    write!(out, "total_commands_processed:{}\r\n", shared.commands_processed.load(Ordering::Relaxed))?;
    write!(out, "rejected_connections:{refused}\r\n")
}

fn replication(_: &Shared, out: &mut String) -> std::fmt::Result {
    write!(out, "role:master\r\nconnected_slaves:0\r\n")
}

fn cluster(_: &Shared, out: &mut String) -> std::fmt::Result {
    write!(out, "cluster_enabled:0\r\n")
}

/// Exact if that is known or quickly counted; otherwise an estimate that says so, because INFO is requested often.
fn keyspace(shared: &Shared, out: &mut String) -> std::fmt::Result {
    for number in shared.store.opened() {
        let database = shared.store.database(number);
        let counted = database.count_within(QUICK_VISITS_MAX).ok().flatten();
        let (keys, estimated) = match counted {
            Some(keys) => (keys, ""),
            None => (database.approximate_len(), ",estimated=1"),
        };
        if keys > 0 {
            write!(out, "db{number}:keys={keys},expires=0,avg_ttl=0{estimated}\r\n")?;
        }
    }
    Ok(())
}
