//! `LATENCY …`: what took longer than `latency-monitor-threshold`.

use std::fmt::Write as _;

use super::{Command, Context, Failure};

const LATENCY: Command = Command {
    flags: &["admin", "noscript", "loading", "stale"],
    group: "server",
    since: "2.8.13",
    ..Command::DEFAULT
};

pub(super) const COMMAND: Command = Command {
    name: "latency",
    arity: -2,
    group: "server",
    since: "2.8.13",
    complexity: "Depends on subcommand",
    summary: "Inspect what took long",
    subcommands: &[
        Command {
            name: "doctor",
            arity: 2,
            summary: "Return a human readable latency analysis report",
            handler: doctor,
            ..LATENCY
        },
        Command {
            name: "histogram",
            arity: -2,
            since: "7.0.0",
            complexity: "O(n) in the number of commands",
            summary: "Return the numbers of calls of commands, by default of all, that took up to some microseconds",
            syntax: "[<command> ...]",
            handler: histogram,
            ..LATENCY
        },
        Command {
            name: "history",
            arity: 3,
            summary: "Return time-latency samples for the <event> class",
            syntax: "<event>",
            handler: history,
            ..LATENCY
        },
        Command {
            name: "latest",
            arity: 2,
            summary: "Return the latest latency samples for all events",
            handler: latest,
            ..LATENCY
        },
        Command {
            name: "reset",
            arity: -2,
            summary: "Reset latency data of one or more <event> classes, by default of all",
            syntax: "[<event> ...]",
            handler: reset,
            ..LATENCY
        },
    ],
    ..Command::DEFAULT
};

fn doctor(context: &mut Context<'_>) -> Result<(), Failure> {
    let events = context.shared.latency_events.all();
    let mut text = String::new();
    if context.shared.latency_events.threshold_ms() == 0 {
        text.push_str(
            "Latency monitoring is disabled. \"CONFIG SET latency-monitor-threshold <milliseconds>\" enables it.\n",
        );
    }
    if events.is_empty() {
        text.push_str("No latency spike was observed.\n");
    }
    for (name, event) in events {
        let sum: u64 = event.samples.iter().map(|sample| sample.ms).sum();
        let mean = sum / event.samples.len().max(1) as u64;
        let _ = writeln!(
            text,
            "{name}: {} latency spikes (average {mean}ms). Worst all time event {}ms.",
            event.samples.len(),
            event.max_ms
        );
    }
    context.reply.verbatim_text(&text);
    Ok(())
}

/// The calls of subcommands are counted for the command. Unknown names are passed over, as in Redis.
fn histogram(context: &mut Context<'_>) -> Result<(), Failure> {
    let asked = context.arguments.from(2);
    let totals = context.shared.totals();
    let is_asked = |name: &str| {
        asked.is_empty() || asked.iter().any(|asked| asked.eq_ignore_ascii_case(name.as_bytes()))
    };
    let commands: Vec<_> = totals.commands().filter(|command| is_asked(command.name)).collect();
    context.reply.map(commands.len());
    for command in commands {
        context.reply.bulk(command.name.as_bytes());
        context.reply.map(2);
        context.reply.bulk(b"calls");
        context.reply.integer(command.calls as i64);
        context.reply.bulk(b"histogram_usec");
        context.reply.map(command.at_most_us.len());
        for (us, calls) in command.at_most_us {
            context.reply.integer(us as i64);
            context.reply.integer(calls as i64);
        }
    }
    Ok(())
}

fn history(context: &mut Context<'_>) -> Result<(), Failure> {
    let event = context.shared.latency_events.get(&context.arguments[2]).unwrap_or_default();
    context.reply.array(event.samples.len());
    for sample in event.samples {
        context.reply.array(2);
        context.reply.integer(sample.at_s as i64);
        context.reply.integer(sample.ms as i64);
    }
    Ok(())
}

fn latest(context: &mut Context<'_>) -> Result<(), Failure> {
    let events = context.shared.latency_events.all();
    let reply = &mut context.reply;
    reply.array(events.len());
    for (name, event) in events {
        let last = event.samples.back().map_or((0, 0), |sample| (sample.at_s, sample.ms));
        reply.array(4);
        reply.bulk(name.as_bytes());
        reply.integer(last.0 as i64);
        reply.integer(last.1 as i64);
        reply.integer(event.max_ms as i64);
    }
    Ok(())
}

fn reset(context: &mut Context<'_>) -> Result<(), Failure> {
    let named = context.arguments.from(2);
    let names: Vec<&[u8]> = named.iter().collect();
    let forgotten = context.shared.latency_events.forget((!names.is_empty()).then_some(&names[..]));
    context.reply.count(forgotten);
    Ok(())
}
