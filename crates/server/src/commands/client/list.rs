//! `CLIENT LIST [TYPE normal|master|replica|pubsub] [ID id ...]`

use std::sync::Arc;

use super::{ADMIN_FLAGS, CONNECTION, ClientType, show_this};
use crate::client::Client;
use crate::commands::{Command, Context, Failure, full_name};

pub(super) const COMMAND: Command = Command {
    name: "list",
    arity: -2,
    flags: ADMIN_FLAGS,
    since: "2.4.0",
    complexity: "O(n) in the number of connections",
    summary: "Return information about client connections",
    syntax: "[TYPE (NORMAL|MASTER|REPLICA|PUBSUB)] [ID <clientid> [<clientid> ...]]",
    handler: list,
    ..CONNECTION
};

fn list(context: &mut Context<'_>) -> Result<(), Failure> {
    let connected = &context.shared.connected;
    let clients: Vec<Arc<Client>> = match context.arguments.len() {
        2 => connected.all(),
        4 if context.is_word(2, "type") => {
            let kind = ClientType::parse(context, 3)?;
            connected.all().into_iter().filter(|client| kind.includes(client)).collect()
        }
        4.. if context.is_word(2, "id") => {
            let mut clients = Vec::new();
            for at in 3..context.arguments.len() {
                let id = context.integer(at).map_err(|_| Failure::Fixed("ERR Invalid client ID"))?;
                clients.extend(u64::try_from(id).ok().and_then(|id| connected.get(id)));
            }
            clients
        }
        _ => return Err(Failure::SYNTAX),
    };
    show_this(context);
    let mut text = String::new();
    for client in clients {
        text.push_str(&client.line(full_name));
        text.push('\n');
    }
    context.reply.verbatim_text(&text);
    Ok(())
}
