//! `ACL GENPASS [bits]`

use std::fs::File;
use std::io::Read;

use super::{Command, Context, Failure, OPEN};

pub(super) const COMMAND: Command = Command {
    name: "genpass",
    arity: -2,
    summary: "Generate a secure 256-bit user password. The optional `bits` argument can be used to specify a different \
              size",
    syntax: "[<bits>]",
    handler: generate,
    ..OPEN
};

const BITS_DEFAULT: i64 = 256;
const BITS_MAX: i64 = 4096;

fn generate(context: &mut Context<'_>) -> Result<(), Failure> {
    let bits = match context.arguments.len() {
        2 => BITS_DEFAULT,
        3 => context.integer(2)?,
        _ => return Err(Failure::SYNTAX),
    };
    if !(1..=BITS_MAX).contains(&bits) {
        return Err(Failure::Fixed(
            "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096",
        ));
    }
    let digits = bits.unsigned_abs().div_ceil(4) as usize;
    let mut bytes = vec![0; digits.div_ceil(2)];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .map_err(|error| Failure::Text(format!("ERR cannot read random bytes: {error}")))?;
    let mut text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    text.truncate(digits);
    context.reply.bulk(text.as_bytes());
    Ok(())
}
