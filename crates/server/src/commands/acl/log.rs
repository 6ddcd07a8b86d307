//! `ACL LOG [count|RESET]`

use super::{ACL, Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "log",
    arity: -2,
    complexity: "O(n) in the number of entries shown",
    summary: "Show the ACL log entries",
    syntax: "[<count>|RESET]",
    handler: log,
    ..ACL
};

const COUNT_DEFAULT: usize = 10;

fn log(context: &mut Context<'_>) -> Result<(), Failure> {
    let log = &context.shared.acl_log;
    let count = match context.arguments.len() {
        2 => COUNT_DEFAULT,
        3 if context.is_word(2, "reset") => {
            log.clear();
            context.reply.ok();
            return Ok(());
        }
        3 => usize::try_from(context.integer(2)?).unwrap_or(0),
        _ => return Err(Failure::SYNTAX),
    };
    let entries = log.latest(count);
    let reply = &mut context.reply;
    reply.array(entries.len());
    for entry in entries {
        reply.map(7);
        reply.bulk(b"count");
        reply.integer(i64::try_from(entry.count).unwrap_or(i64::MAX));
        for (title, text) in [
            ("reason", entry.reason.name().as_bytes()),
            ("context", entry.place.name().as_bytes()),
            ("object", &entry.object),
            ("username", &entry.user),
            ("age-seconds", format!("{:.3}", entry.at.elapsed().as_secs_f64()).as_bytes()),
            ("client-info", entry.client.as_bytes()),
        ] {
            reply.bulk(title.as_bytes());
            reply.bulk(text);
        }
    }
    Ok(())
}
