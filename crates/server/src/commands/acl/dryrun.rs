//! `ACL DRYRUN username command [arg ...]`

use super::request::request;
use super::{ACL, Command, Context, Failure};
use crate::acl::Denial;
use crate::commands::dispatch::resolve_name;

pub(super) const COMMAND: Command = Command {
    name: "dryrun",
    arity: -4,
    since: "7.0.0",
    summary: "Return whether the user can execute the given command without executing the command",
    syntax: "<username> <command> [<arg> ...]",
    handler: dry_run,
    ..ACL
};

fn dry_run(context: &mut Context<'_>) -> Result<(), Failure> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let arguments = context.arguments.from(3);
    let name = &context.arguments[2];
    let user = context.shared.users.get(name);
    let user = user.ok_or_else(|| Failure::Text(format!("ERR User '{}' not found", text(name))))?;
    let command = resolve_name(arguments)
        .ok_or_else(|| Failure::Text(format!("ERR Command '{}' not found", text(&arguments[0]))))?;
    let request = request(command, arguments);
    if !command.accepts(arguments.len()) {
        return Err(Failure::arity(request.name));
    }
    let refusal = match user.check(&request) {
        Ok(()) => {
            context.reply.ok();
            return Ok(());
        }
        Err(Denial::Command) => format!("run the '{}' command", request.name),
        Err(Denial::Key(position)) => format!("access the '{}' key", text(&arguments[position])),
        Err(Denial::Channel(position)) => format!("access the '{}' channel", text(&arguments[position])),
    };
    context.reply.bulk(format!("This user has no permissions to {refusal}").as_bytes());
    Ok(())
}
