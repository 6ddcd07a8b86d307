//! `HELLO [protover [AUTH username password] [SETNAME clientname]]`

use alluvium_protocol::{Version, integer};

use super::auth::authenticate;
use super::client::checked_name;
use super::{Command, Context, Failure, REDIS_VERSION};

pub(super) const COMMAND: Command = Command {
    name: "hello",
    arity: -1,
    flags: &["noscript", "loading", "stale", "fast", "no_auth", "allow_busy"],
    group: "connection",
    since: "6.0.0",
    summary: "Handshake with the server",
    syntax: "[protover [AUTH username password] [SETNAME clientname]]",
    handler: hello,
    ..Command::DEFAULT
};

fn hello(context: &mut Context<'_>) -> Result<(), Failure> {
    let arguments = context.arguments;
    let mut version = context.session.version;
    if let Some(text) = arguments.get(1) {
        version = match integer::parse(text) {
            None => {
                return Err(Failure::Fixed("ERR Protocol version is not an integer or out of range"));
            }
            Some(2) => Version::Resp2,
            Some(3) => Version::Resp3,
            Some(_) => return Err(Failure::Fixed("NOPROTO unsupported protocol version")),
        };
    }
    let mut name = None;
    let mut at = 2;
    while let Some(option) = arguments.get(at) {
        if context.is_word(at, "auth") && at + 2 < arguments.len() {
            authenticate(context, &arguments[at + 1], &arguments[at + 2])?;
            at += 3;
        } else if context.is_word(at, "setname") && at + 1 < arguments.len() {
            name = Some(checked_name(&arguments[at + 1])?);
            at += 2;
        } else {
            let option = String::from_utf8_lossy(option);
            return Err(Failure::Text(format!("ERR Syntax error in HELLO option '{option}'")));
        }
    }
    if !context.session.is_authenticated {
        return Err(Failure::Fixed(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH \
             <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the \
             same time",
        ));
    }
    if let Some(name) = name {
        context.session.client.labels().name = name;
    }
    context.session.version = version;
    context.reply.set_version(version);
    describe(context);
    Ok(())
}

/// `server` says `redis`, because clients compare it.
fn describe(context: &mut Context<'_>) {
    let reply = &mut context.reply;
    reply.map(7);
    reply.bulk(b"server");
    reply.bulk(b"redis");
    reply.bulk(b"version");
    reply.bulk(REDIS_VERSION.as_bytes());
    reply.bulk(b"proto");
    reply.integer(if context.session.version == Version::Resp3 { 3 } else { 2 });
    reply.bulk(b"id");
    reply.integer(context.session.id as i64);
    reply.bulk(b"mode");
    reply.bulk(b"standalone");
    reply.bulk(b"role");
    reply.bulk(b"master");
    reply.bulk(b"modules");
    reply.array(0);
}
