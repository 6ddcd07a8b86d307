//! `CLIENT KILL address`, or
//! `CLIENT KILL [ID id] [TYPE type] [USER name] [ADDR address] [LADDR address] [SKIPME yes|no]`

use std::sync::Arc;

use super::{ADMIN_FLAGS, CONNECTION, ClientType};
use crate::acl::User;
use crate::client::{Client, Ends};
use crate::commands::{Command, Context, Failure};
use crate::socket::Endpoint;

pub(super) const COMMAND: Command = Command {
    name: "kill",
    arity: -3,
    flags: ADMIN_FLAGS,
    since: "2.4.0",
    complexity: "O(n) in the number of connections",
    summary: "Kill connections",
    syntax: "<ip:port>|<option> ...",
    handler: kill,
    ..CONNECTION
};

/// Which connections end: those that match all that is given.
#[derive(Default)]
struct Filter<'a> {
    id: Option<u64>,
    kind: Option<ClientType>,
    peer: Option<&'a [u8]>,
    address: Option<&'a [u8]>,
    user: Option<Arc<User>>,
    skips_this: bool,
}

impl<'a> Filter<'a> {
    fn parse(context: &Context<'a>) -> Result<Self, Failure> {
        let arguments = context.arguments;
        if arguments.len() == 3 {
            return Ok(Self { peer: arguments.get(2), ..Self::default() });
        }
        let mut filter = Self { skips_this: true, ..Self::default() };
        let mut at = 2;
        while at < arguments.len() {
            let value = arguments.get(at + 1).ok_or(Failure::SYNTAX)?;
            if context.is_word(at, "id") {
                let id = context.integer(at + 1).ok().and_then(|id| u64::try_from(id).ok());
                let id = id.filter(|id| *id > 0);
                filter.id = Some(id.ok_or(Failure::Fixed("ERR client-id should be greater than 0"))?);
            } else if context.is_word(at, "type") {
                filter.kind = Some(ClientType::parse(context, at + 1)?);
            } else if context.is_word(at, "addr") {
                filter.peer = Some(value);
            } else if context.is_word(at, "laddr") {
                filter.address = Some(value);
            } else if context.is_word(at, "user") {
                let user = context.shared.users.get(value).ok_or_else(|| {
                    Failure::Text(format!("ERR No such user '{}'", String::from_utf8_lossy(value)))
                })?;
                filter.user = Some(user);
            } else if context.is_word(at, "skipme") {
                filter.skips_this = match () {
                    () if context.is_word(at + 1, "yes") => true,
                    () if context.is_word(at + 1, "no") => false,
                    () => return Err(Failure::SYNTAX),
                };
            } else {
                return Err(Failure::SYNTAX);
            }
            at += 2;
        }
        Ok(filter)
    }

    fn matches(&self, client: &Client, context: &Context<'_>) -> bool {
        let is = |text: Option<&[u8]>, end: fn(&Ends) -> &Endpoint| {
            text.is_none_or(|text| {
                client.ends.as_ref().is_some_and(|ends| end(ends).to_string().as_bytes() == text)
            })
        };
        !(self.skips_this && client.id == context.session.id)
            && self.id.is_none_or(|id| client.id == id)
            && self.kind.is_none_or(|kind| kind.includes(client))
            && self
                .user
                .as_ref()
                .is_none_or(|user| client.is_authenticated() && Arc::ptr_eq(&client.user(), user))
            && is(self.peer, |ends| &ends.peer)
            && is(self.address, |ends| &ends.local)
    }
}

/// This connection ends after its reply, the others at once.
fn kill(context: &mut Context<'_>) -> Result<(), Failure> {
    let filter = Filter::parse(context)?;
    let this = context.session.id;
    let connected = &context.shared.connected;
    let all = connected.all();
    let matching: Vec<u64> =
        all.iter().filter(|client| filter.matches(client, context)).map(|client| client.id).collect();
    connected.kill(matching.iter().copied().filter(|id| *id != this));
    if matching.contains(&this) {
        context.session.closing = true;
    }
    match (context.arguments.len(), matching.len()) {
        (3, 0) => return Err(Failure::Fixed("ERR No such client")),
        (3, _) => context.reply.ok(),
        (_, killed) => context.reply.count(killed),
    }
    Ok(())
}
