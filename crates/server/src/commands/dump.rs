//! `DUMP key`

use alluvium_protocol::dump;

use super::{Command, Context, Failure, members};
use crate::store::Kind;

pub(super) const COMMAND: Command = Command {
    name: "dump",
    arity: 2,
    flags: &["readonly"],
    keys: (1, 1, 1),
    since: "2.6.0",
    complexity: "O(n) in the length of the value",
    summary: "Return a serialized version of the value of a key, for RESTORE here or by Redis",
    syntax: "key",
    handler: dump,
    ..Command::DEFAULT
};

fn dump(context: &mut Context<'_>) -> Result<(), Failure> {
    let key = &context.arguments[1];
    let (mut kind, mut payload) = (None, None);
    context.store().get_any(key, &mut |found| {
        kind = Some(found.kind);
        payload = found.string().map(dump::encode_string);
    })?;
    match kind {
        Some(kind @ (Kind::Hash | Kind::Set)) => {
            // It may have gone since, or have become another: that is an error of the type, as for other commands.
            let members = members::collect(context, key, kind)?;
            let pairs = members.iter().map(|(member, value)| (&member[..], &value[..]));
            payload = (!members.is_empty()).then(|| match kind {
                Kind::Hash => dump::encode_hash(pairs),
                _ => dump::encode_set(pairs.map(|(member, _)| member)),
            });
        }
        Some(Kind::Unknown) => return Err(Failure::Fixed("ERR items of this type cannot be dumped")),
        Some(Kind::String) | None => {}
    }
    context.reply.optional_bulk(payload.as_deref());
    Ok(())
}
