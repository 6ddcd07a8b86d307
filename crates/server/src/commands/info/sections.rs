//! The sections of `INFO`.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{REDIS_VERSION, process};
use crate::client::Client;
use crate::commands::dbsize::QUICK_VISITS_MAX;
use crate::shared::Shared;
use crate::store::{StoreHealth, Versions};
use crate::udp;

pub(super) fn server(shared: &Shared, out: &mut String) -> std::fmt::Result {
    let uptime = shared.started.elapsed().as_secs();
    write!(out, "redis_version:{REDIS_VERSION}\r\n")?;
    write!(out, "redis_mode:standalone\r\n")?;
    write!(out, "alluvium_version:{}\r\n", env!("CARGO_PKG_VERSION"))?;
    write!(out, "os:{}\r\n", std::env::consts::OS)?;
    write!(out, "arch_bits:{}\r\n", usize::BITS)?;
    write!(out, "process_id:{}\r\n", std::process::id())?;
    write!(out, "tcp_port:{}\r\n", shared.address.port())?;
    if let Some(directing) = &shared.directing {
        write!(out, "udp_port:{}\r\n", directing.address.port())?;
    }
    write!(out, "io_threads:{}\r\n", shared.options.workers)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    write!(out, "server_time_usec:{}\r\n", now.as_micros())?;
    write!(out, "uptime_in_seconds:{uptime}\r\nuptime_in_days:{}\r\n", uptime / 86_400)?;
    let executable = std::env::current_exe().unwrap_or_default();
    write!(out, "executable:{}\r\n", executable.display())?;
    let file = shared.options.settings_file.as_deref().map(|file| file.display().to_string());
    write!(out, "config_file:{}\r\n", file.unwrap_or_default())
}

pub(super) fn clients(shared: &Shared, out: &mut String) -> std::fmt::Result {
    let clients = shared.connected.all();
    let most = |bytes: fn(&Client) -> usize| clients.iter().map(|client| bytes(client)).max().unwrap_or(0);
    write!(out, "connected_clients:{}\r\ncluster_connections:0\r\n", clients.len())?;
    write!(out, "maxclients:{}\r\n", shared.clients_max())?;
    write!(out, "client_recent_max_input_buffer:{}\r\n", most(Client::input_bytes))?;
    write!(out, "client_recent_max_output_buffer:{}\r\n", most(Client::output_bytes))?;
    write!(out, "blocked_clients:{}\r\n", shared.held_clients.load(Ordering::Relaxed))?;
    write!(out, "tracking_clients:{}\r\n", shared.tracking.counts().clients)?;
    write!(out, "clients_in_timeout_table:0\r\n")
}

pub(super) fn memory(shared: &Shared, out: &mut String) -> std::fmt::Result {
    let (used, resident) = (shared.store.memory_bytes(), process::resident_bytes());
    let (limit, peak) = (shared.memory_bytes_max(), process::peak_resident_bytes());
    for (name, bytes) in [
        ("used_memory", used),
        ("used_memory_rss", resident),
        ("used_memory_peak", peak),
        ("maxmemory", limit),
    ] {
        write!(out, "{name}:{bytes}\r\n{name}_human:{}\r\n", human(bytes))?;
    }
    scripting(shared, out)?;
    let ratio = if used > 0 { resident as f64 / used as f64 } else { 1.0 };
    write!(out, "maxmemory_policy:{}\r\n", shared.store.eviction_policy())?;
    write!(out, "mem_fragmentation_ratio:{ratio:.2}\r\n")?;
    let clients = &shared.memory;
    write!(out, "mem_clients_normal:{}\r\nmem_clients_limit:{}\r\n", clients.used(), clients.bytes_max())?;
    write!(out, "mem_clients_waiting:{}\r\n", clients.waiting())?;
    write!(out, "mem_clients_slaves:0\r\nmem_aof_buffer:0\r\n")?;
    write!(out, "mem_allocator:libc\r\nactive_defrag_running:0\r\nlazyfree_pending_objects:0\r\n")
}

#[cfg(feature = "scripting")]
fn scripting(shared: &Shared, out: &mut String) -> std::fmt::Result {
    let (scripts, libraries) = (&shared.scripts, shared.libraries.current());
    write!(out, "used_memory_lua:0\r\nused_memory_scripts_eval:{}\r\n", scripts.bytes())?;
    write!(out, "number_of_cached_scripts:{}\r\n", scripts.len())?;
    write!(out, "number_of_functions:{}\r\n", libraries.functions_len())?;
    write!(out, "number_of_libraries:{}\r\n", libraries.all().len())?;
    write!(out, "used_memory_functions:{}\r\n", libraries.bytes())?;
    write!(out, "used_memory_scripts:{}\r\n", scripts.bytes() + libraries.bytes())
}

#[cfg(not(feature = "scripting"))]
fn scripting(_: &Shared, out: &mut String) -> std::fmt::Result {
    out.push_str("used_memory_lua:0\r\nnumber_of_cached_scripts:0\r\n");
    Ok(())
}

/// A server that answers has opened its store. Tools read Redis's two fields to learn whether writes can be stored; the
/// others say more.
pub(super) fn persistence(shared: &Shared, out: &mut String) -> std::fmt::Result {
    let (state, reason, resumable) = match shared.store.health() {
        StoreHealth::Healthy => ("ok", String::new(), false),
        StoreHealth::Retrying { reason } => ("retrying", reason, false),
        StoreHealth::ReadOnly => ("read_only", String::new(), false),
        StoreHealth::Failed { reason, resumable } => ("failed", reason, resumable),
    };
    let status = if state == "failed" { "err" } else { "ok" };
    let saves = shared.saves.state();
    let resumptions = shared.resumptions.load(Ordering::Relaxed);
    write!(
        out,
        "loading:0\r\nasync_loading:0\r\nrdb_changes_since_last_save:{}\r\n",
        shared.store.changes().saturating_sub(saves.changes)
    )?;
    let seconds = |duration: Option<Duration>| duration.map_or(-1, |duration| duration.as_secs() as i64);
    let saved = if saves.has_failed { "err" } else { status };
    write!(out, "rdb_bgsave_in_progress:{}\r\n", u8::from(saves.begun.is_some()))?;
    write!(out, "rdb_last_save_time:{}\r\nrdb_last_bgsave_status:{saved}\r\n", saves.saved_at_s)?;
    write!(out, "rdb_last_bgsave_time_sec:{}\r\n", seconds(saves.duration))?;
    let current = saves.begun.map(|begun| begun.elapsed());
    write!(out, "rdb_current_bgsave_time_sec:{}\r\nrdb_saves:{}\r\n", seconds(current), saves.count)?;
    write!(out, "aof_enabled:0\r\naof_rewrite_in_progress:0\r\naof_last_write_status:{status}\r\n")?;
    write!(out, "store_status:{state}\r\nstore_resumable:{}\r\n", u8::from(resumable))?;
    write!(out, "store_failure:{}\r\n", reason.replace(char::is_control, " "))?;
    write!(out, "store_resumptions:{resumptions}\r\n")?;
    let Some(served) = shared.store.versions().map(Versions::served) else { return Ok(()) };
    let job = served.job.unwrap_or_default().replace(char::is_control, " ");
    let previous = served.previous.map_or_else(String::new, |number| number.to_string());
    write!(out, "version:{}\r\nversion_previous:{previous}\r\nversion_job:{job}\r\n", served.number)?;
    write!(out, "version_swaps:{}\r\nversion_refusals:{}\r\n", served.swaps, served.refusals)
}

pub(super) fn statistics(shared: &Shared, out: &mut String) -> std::fmt::Result {
    let accepted = shared.connections_accepted.load(Ordering::Relaxed);
    let refused = shared.connections_refused.load(Ordering::Relaxed);
    write!(out, "total_connections_received:{accepted}\r\n")?;
    write!(out, "total_commands_processed:{}\r\n", shared.commands_processed.load(Ordering::Relaxed))?;
    write!(out, "rejected_connections:{refused}\r\nevicted_keys:0\r\n")?;
    write!(out, "evicted_clients:{}\r\n", shared.memory.closed())?;
    let totals = shared.totals();
    let gets = totals.commands().find(|command| command.name == "get").map_or(0, |command| command.calls);
    write!(out, "keyspace_hits:{}\r\n", gets.saturating_sub(totals.absent_gets))?;
    write!(out, "keyspace_misses:{}\r\n", totals.absent_gets)?;
    let tracking = shared.tracking.counts();
    write!(out, "tracking_total_keys:{}\r\n", tracking.keys)?;
    write!(out, "tracking_total_items:{}\r\n", tracking.items)?;
    write!(out, "tracking_total_prefixes:{}\r\n", tracking.prefixes)?;
    write!(out, "total_net_input_bytes:{}\r\n", totals.received_bytes)?;
    write!(out, "total_net_output_bytes:{}\r\n", totals.sent_bytes)?;
    if shared.directing.is_some() {
        let counters = shared.worker_metrics.iter().map(|worker| &worker.datagrams);
        for (metric, sum) in udp::figures(counters) {
            write!(out, "{}:{sum}\r\n", metric.name)?;
        }
    }
    let errors: u64 = shared.error_counts.all().values().sum();
    write!(out, "latest_fork_usec:0\r\ntotal_forks:0\r\ntotal_error_replies:{errors}\r\n")
}

pub(super) fn replication(_: &Shared, out: &mut String) -> std::fmt::Result {
    write!(out, "role:master\r\nconnected_slaves:0\r\nmaster_failover_state:no-failover\r\n")?;
    write!(out, "master_repl_offset:0\r\nrepl_backlog_active:0\r\n")
}

pub(super) fn cpu(_: &Shared, out: &mut String) -> std::fmt::Result {
    let (user, system) = process::processor_seconds();
    write!(out, "used_cpu_sys:{system:.6}\r\nused_cpu_user:{user:.6}\r\n")?;
    write!(out, "used_cpu_sys_children:0.000000\r\nused_cpu_user_children:0.000000\r\n")
}

/// The durations of writes include their commits. Requests that were refused are among those that failed.
pub(super) fn commands(shared: &Shared, out: &mut String) -> std::fmt::Result {
    for command in shared.totals().commands() {
        let (calls, us, failed) = (command.calls, command.total_us, command.failed);
        let mean = us as f64 / calls as f64;
        write!(out, "cmdstat_{}:calls={calls},usec={us},usec_per_call={mean:.2},", command.name)?;
        write!(out, "rejected_calls=0,failed_calls={failed}\r\n")?;
    }
    Ok(())
}

pub(super) fn errors(shared: &Shared, out: &mut String) -> std::fmt::Result {
    for (code, count) in shared.error_counts.all() {
        write!(out, "errorstat_{code}:count={count}\r\n")?;
    }
    Ok(())
}

pub(super) fn cluster(_: &Shared, out: &mut String) -> std::fmt::Result {
    write!(out, "cluster_enabled:0\r\n")
}

/// Exact if that is known or quickly counted; otherwise an estimate that says so, because INFO is requested often.
pub(super) fn keyspace(shared: &Shared, out: &mut String) -> std::fmt::Result {
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

/// A number of bytes as Redis writes it for people: with two decimals, in the largest unit that gives at least 1.
fn human(bytes: u64) -> String {
    match bytes {
        ..0x400 => format!("{bytes}B"),
        0x400..0x10_0000 => format!("{:.2}K", bytes as f64 / 1024.0),
        0x10_0000..0x4000_0000 => format!("{:.2}M", bytes as f64 / 1_048_576.0),
        _ => format!("{:.2}G", bytes as f64 / 1_073_741_824.0),
    }
}
