//! `MEMORY …`: where memory goes.

use super::{Command, Context, Failure};
use crate::data;

const MEMORY: Command = Command { arity: 2, group: "server", since: "4.0.0", ..Command::DEFAULT };

pub(super) const COMMAND: Command = Command {
    name: "memory",
    arity: -2,
    group: "server",
    since: "4.0.0",
    complexity: "Depends on subcommand",
    summary: "Inspect the memory of the server",
    subcommands: &[
        Command { name: "doctor", summary: "Return memory problems reports", handler: doctor, ..MEMORY },
        Command {
            name: "malloc-stats",
            summary: "Return internal statistics report from the memory allocator",
            handler: malloc_stats,
            ..MEMORY
        },
        Command {
            name: "purge",
            summary: "Attempt to purge dirty pages for reclamation by the allocator, which happens by itself",
            handler: purge,
            ..MEMORY
        },
        Command {
            name: "stats",
            summary: "Return information about the memory usage of the server",
            handler: stats,
            ..MEMORY
        },
        Command {
            name: "usage",
            arity: -3,
            flags: &["readonly"],
            keys: (2, 2, 1),
            complexity: "O(n) in the length of the value or the number of members",
            summary: "Return bytes used by <key> and its value, most of them on the device",
            syntax: "<key> [SAMPLES <count>]",
            handler: usage,
            ..MEMORY
        },
    ],
    ..Command::DEFAULT
};

/// Bytes that an item takes beside its key and value: its header, its share of an index and of a filter.
const ITEM_OVERHEAD_BYTES: usize = 16;

fn doctor(context: &mut Context<'_>) -> Result<(), Failure> {
    let (used, limit) = (context.shared.store.memory_bytes(), context.shared.store.memory_bytes_max());
    let clients = &context.shared.memory;
    let text = if !clients.has_room() {
        format!(
            "Clients hold {} bytes, more than half of the {} that they may have together. CLIENT LIST shows who.\n",
            clients.used(),
            clients.bytes_max()
        )
    } else if limit > 0 && used > limit {
        format!("The store holds {used} bytes of memory, more than the {limit} that it may have.\n")
    } else {
        format!("No memory problem was found. The store holds {used} bytes of memory.\n")
    };
    context.reply.verbatim_text(&text);
    Ok(())
}

fn malloc_stats(context: &mut Context<'_>) -> Result<(), Failure> {
    context.reply.bulk(b"Stats not supported for the current allocator");
    Ok(())
}

fn purge(context: &mut Context<'_>) -> Result<(), Failure> {
    context.reply.ok();
    Ok(())
}

/// The members of Redis that mean something here.
fn stats(context: &mut Context<'_>) -> Result<(), Failure> {
    let used = context.shared.store.memory_bytes();
    let keys = context.store().approximate_len();
    let clients = &context.shared.memory;
    let members = [
        ("peak.allocated", used),
        ("total.allocated", used),
        ("startup.allocated", 0),
        ("replication.backlog", 0),
        ("clients.slaves", 0),
        ("clients.normal", clients.used() as u64),
        ("clients.limit", clients.bytes_max() as u64),
        ("clients.waiting", clients.waiting() as u64),
        ("clients.evicted", clients.closed()),
        ("cluster.links", 0),
        ("aof.buffer", 0),
        ("lua.caches", 0),
        ("functions.caches", 0),
        ("overhead.total", used),
        ("keys.count", keys),
        ("keys.bytes-per-key", used.checked_div(keys).unwrap_or(0)),
        ("dataset.bytes", 0),
    ];
    context.reply.map(members.len());
    for (name, number) in members {
        context.reply.bulk(name.as_bytes());
        context.reply.integer(i64::try_from(number).unwrap_or(i64::MAX));
    }
    Ok(())
}

fn usage(context: &mut Context<'_>) -> Result<(), Failure> {
    let mut at = 3;
    while at < context.arguments.len() {
        if !context.is_word(at, "samples")
            || at + 1 == context.arguments.len()
            || context.integer(at + 1)? < 0
        {
            return Err(Failure::SYNTAX);
        }
        at += 2;
    }
    let key = &context.arguments[2];
    let mut found = None;
    context.store().get_any(key, &mut |item| {
        let bytes = key.len() + item.value.len() + ITEM_OVERHEAD_BYTES;
        found = Some((bytes, data::id_of(item.kind, item.value)));
    })?;
    let mut bytes = found.map(|(bytes, _)| bytes);
    if let Some((own, Some(id))) = found {
        let mut members = 0;
        context.store().members(id, false, &mut |member, value| {
            members += member.len() + value.len() + ITEM_OVERHEAD_BYTES;
        })?;
        bytes = Some(own + members);
    }
    match bytes {
        Some(bytes) => context.reply.count(bytes),
        None => context.reply.null(),
    }
    Ok(())
}
