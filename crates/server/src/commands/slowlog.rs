//! `SLOWLOG …`: the latest commands that took long.

use super::{Command, Context, Failure};

const SLOWLOG: Command = Command {
    arity: 2,
    flags: &["admin", "loading", "stale"],
    group: "server",
    since: "2.2.12",
    ..Command::DEFAULT
};

pub(super) const COMMAND: Command = Command {
    name: "slowlog",
    arity: -2,
    group: "server",
    since: "2.2.12",
    complexity: "Depends on subcommand",
    summary: "Inspect the latest commands that took long",
    subcommands: &[
        Command {
            name: "get",
            arity: -2,
            complexity: "O(n) in the number of entries returned",
            summary: "Return top <count> entries from the slowlog (default: 10, -1 mean all)",
            syntax: "[<count>]",
            handler: get,
            ..SLOWLOG
        },
        Command { name: "len", summary: "Return the length of the slowlog", handler: len, ..SLOWLOG },
        Command { name: "reset", summary: "Reset the slowlog", handler: reset, ..SLOWLOG },
    ],
    ..Command::DEFAULT
};

const COUNT_DEFAULT: i64 = 10;

fn get(context: &mut Context<'_>) -> Result<(), Failure> {
    const OUT_OF_RANGE: Failure = Failure::Fixed("ERR count should be greater than or equal to -1");
    let count = match context.arguments.len() {
        2 => COUNT_DEFAULT,
        3 => context.integer(2).map_err(|_| OUT_OF_RANGE)?,
        _ => return Err(Failure::SYNTAX),
    };
    let count = match count {
        ..-1 => return Err(OUT_OF_RANGE),
        -1 => usize::MAX,
        count => count as usize,
    };
    let entries = context.shared.slow_log.newest(count);
    let reply = &mut context.reply;
    reply.array(entries.len());
    for entry in entries {
        reply.array(6);
        reply.integer(entry.number as i64);
        reply.integer(entry.at_s as i64);
        reply.integer(entry.duration_us as i64);
        reply.array(entry.arguments.len());
        entry.arguments.iter().for_each(|argument| reply.bulk(argument));
        reply.bulk(entry.peer.as_bytes());
        reply.bulk(entry.client_name.as_bytes());
    }
    Ok(())
}

fn len(context: &mut Context<'_>) -> Result<(), Failure> {
    context.reply.count(context.shared.slow_log.len());
    Ok(())
}

fn reset(context: &mut Context<'_>) -> Result<(), Failure> {
    context.shared.slow_log.clear();
    context.reply.ok();
    Ok(())
}
