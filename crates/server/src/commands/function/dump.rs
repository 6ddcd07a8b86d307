//! `FUNCTION DUMP`

use alluvium_protocol::dump;

use super::{Command, Context, FUNCTION, Failure};

pub(super) const COMMAND: Command = Command {
    name: "dump",
    complexity: "O(n) in the number of libraries",
    summary: "Return a serialized payload of all libraries, for FUNCTION RESTORE here or by Redis",
    handler: answer,
    ..FUNCTION
};

fn answer(context: &mut Context<'_>) -> Result<(), Failure> {
    let set = context.shared.libraries.current();
    let payload = dump::encode_libraries(set.all().map(|library| &library.source[..]));
    context.reply.bulk(&payload);
    Ok(())
}
