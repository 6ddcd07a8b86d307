//! `RANDOMKEY`

use std::hash::{BuildHasher, RandomState};

use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "randomkey",
    arity: 1,
    flags: &["readonly"],
    summary: "Return a random key",
    handler: randomkey,
    ..Command::DEFAULT
};

/// Keys among which one is chosen.
const CANDIDATES: usize = 16;

/// Chooses among the keys that follow a random position in the order of key hashes. The first of them is not equally
/// likely for all keys, since the gaps between hashes differ; over sixteen keys in a row the gaps even out.
fn randomkey(context: &mut Context<'_>) -> Result<(), Failure> {
    let mut start = random();
    loop {
        let mut candidates: Vec<Box<[u8]>> = Vec::new();
        let next = context.store().scan(start, CANDIDATES, &mut |key| candidates.push(key.into()))?;
        if !candidates.is_empty() {
            let chosen = (random() % candidates.len() as u64) as usize;
            context.reply.bulk(&candidates[chosen]);
            return Ok(());
        }
        // Behind the last key is the first one. A page may be empty though keys follow.
        if next == 0 && start == 0 {
            context.reply.null();
            return Ok(());
        }
        start = next;
    }
}

fn random() -> u64 {
    RandomState::new().hash_one(0)
}
