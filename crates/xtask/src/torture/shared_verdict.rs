//! Checks that the keys that all writers change have the content that the included operations give them.

use std::collections::BTreeSet;

use super::journal::SharedEffect;
use super::ledger::{Base, NEVER, Notes};
use super::verdict::{Included, Observation};

/// Bytes of an entry of a list: its writer and its operation.
pub const ENTRY: usize = 9;

/// The entry of a writer's operation in a list.
pub fn entry(writer: u8, op: u64) -> [u8; ENTRY] {
    let mut entry = [writer; ENTRY];
    entry[1..].copy_from_slice(&op.to_le_bytes());
    entry
}

/// Checks counters, registers and lists.
pub fn check(notes: &Notes, base: &Base, seen: &Observation, included: &[Included]) -> Result<(), String> {
    for (number, (&before, &found)) in base.shared.counters.iter().zip(&seen.counters).enumerate() {
        let (low, high) = count(notes, included, SharedEffect::Increment(number as u8));
        within(&format!("counter {number}"), before, found, low, high)?;
    }
    let mut swaps = BTreeSet::new();
    for (number, (&before, &found)) in base.shared.registers.iter().zip(&seen.registers).enumerate() {
        let effect = SharedEffect::Swap(number as u8);
        let (low, high) = count(notes, included, effect);
        within(&format!("register {number}"), before, found, low, high)?;
        let operations = notes.writers.iter().flat_map(|history| &history.operations);
        for operation in operations.filter(|one| one.shared == Some(effect) && one.ack != NEVER) {
            if !swaps.insert((number, operation.version)) {
                let version = operation.version;
                return Err(format!("register {number}: two writers swapped it to {version}"));
            }
        }
    }
    for (&list, content) in &seen.lists {
        let before = base.shared.lists.get(&list).map(Vec::as_slice).unwrap_or_default();
        check_list(notes, included, list, before, content)?;
    }
    Ok(())
}

fn within(what: &str, before: u64, found: u64, low: u64, high: u64) -> Result<(), String> {
    match found.checked_sub(before) {
        Some(more) if (low..=high).contains(&more) => Ok(()),
        _ => Err(format!("{what}: it was {before}, {low} to {high} times more are there, and it is {found}")),
    }
}

/// The minimum and maximum number of included operations with this effect.
fn count(notes: &Notes, included: &[Included], effect: SharedEffect) -> (u64, u64) {
    let mut counts = (0, 0);
    for (history, included) in notes.writers.iter().zip(included) {
        let count = |end: usize| {
            history.operations[..end].iter().filter(|operation| operation.shared == Some(effect)).count()
                as u64
        };
        counts = (counts.0 + count(included.low), counts.1 + count(included.high));
    }
    counts
}

fn check_list(
    notes: &Notes,
    included: &[Included],
    list: u32,
    before: &[u8],
    content: &[u8],
) -> Result<(), String> {
    let Some(added) = content.strip_prefix(before).filter(|added| added.len().is_multiple_of(ENTRY)) else {
        let (before, len) = (before.len(), content.len());
        return Err(format!("list {list}: its {len} bytes don't begin with the {before} that it had"));
    };
    for (writer, (history, included)) in notes.writers.iter().zip(included).enumerate() {
        let expected = history.operations.iter().enumerate();
        let mut expected = expected.filter(|(_, one)| one.shared == Some(SharedEffect::Append(list)));
        let mut found = 0;
        for found_entry in added.chunks_exact(ENTRY).filter(|entry| usize::from(entry[0]) == writer) {
            match expected.next() {
                Some((number, one)) if entry(writer as u8, one.op) == found_entry => found = number + 1,
                next => {
                    let next = next.map(|(_, one)| one.op);
                    return Err(format!(
                        "list {list}: writer {writer}'s next is of operation {next:?}, and {found_entry:?} is there"
                    ));
                }
            }
        }
        if found > included.high {
            return Err(format!(
                "list {list}: writer {writer}'s operation {found} is present, and earlier ones are not"
            ));
        }
        if let Some((number, one)) = expected.next()
            && number < included.low
        {
            return Err(format!("list {list}: writer {writer}'s entry of operation {} is lost", one.op));
        }
    }
    Ok(())
}
