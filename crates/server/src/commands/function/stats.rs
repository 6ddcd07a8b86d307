//! `FUNCTION STATS`

use super::{Command, Context, FUNCTION, Failure};

pub(super) const COMMAND: Command = Command {
    name: "stats",
    flags: &["noscript", "allow_busy"],
    summary: "Return the function that is running for the longest time, and the number of libraries and functions",
    handler: stats,
    ..FUNCTION
};

fn stats(context: &mut Context<'_>) -> Result<(), Failure> {
    let set = context.shared.libraries.current();
    let running = context.shared.running.oldest_function();
    let reply = &mut context.reply;
    reply.map(2);
    reply.bulk(b"running_script");
    match running {
        None => reply.null(),
        Some(function) => {
            reply.map(3);
            reply.bulk(b"name");
            reply.bulk(function.name.as_bytes());
            reply.bulk(b"command");
            reply.array(function.command.len());
            function.command.iter().for_each(|argument| reply.bulk(argument));
            reply.bulk(b"duration_ms");
            reply.integer(function.begun.elapsed().as_millis() as i64);
        }
    }
    reply.bulk(b"engines");
    reply.map(1);
    reply.bulk(b"LUA");
    reply.map(2);
    reply.bulk(b"libraries_count");
    reply.integer(set.all().len() as i64);
    reply.bulk(b"functions_count");
    reply.integer(set.functions_len() as i64);
    Ok(())
}
