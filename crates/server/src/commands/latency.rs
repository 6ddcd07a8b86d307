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
