//! The content of a database when it was last verified, and what writers recorded since.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use super::journal::{self, Effect, Reader, Record, SharedEffect, WholeKind, encode_outcome};
use super::key::{Key, Outcome};
use super::whole::WholeOp;

/// Number of counters that all writers increment.
pub const COUNTERS: u8 = 3;
/// Number of registers that all writers compare and swap.
pub const REGISTERS: u8 = 2;
/// Number of journals besides those of writers: of operations on whole keyspaces, of upkeep, and of a close.
pub const JOURNALS_BESIDE: usize = 3;
/// An acknowledgement that never arrived.
pub const NEVER: u64 = u64::MAX;

/// The verified state at the beginning of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Base {
    pub session: u64,
    /// The next operation of each writer, followed by the next one on whole keyspaces.
    pub next_op: Vec<u64>,
    /// The content of owned keys, without absent ones.
    pub outcomes: HashMap<Key, Outcome>,
    pub shared: SharedState,
}

/// The content of the keys that all writers change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedState {
    pub counters: Vec<u64>,
    /// How often each register was swapped.
    pub registers: Vec<u64>,
    /// Lists by number.
    pub lists: BTreeMap<u32, Vec<u8>>,
}

/// One operation of a writer.
#[derive(Clone, Debug)]
pub struct Operation {
    pub op: u64,
    pub start: u64,
    /// [`NEVER`] if it was not acknowledged.
    pub ack: u64,
    pub parted: bool,
    pub effects: Vec<Effect>,
    /// For each effect, the operations on its whole keyspace between which it happened.
    pub lives: Vec<(u32, u32)>,
    pub shared: Option<SharedEffect>,
    /// The register's version after the operation.
    pub version: u64,
}

/// A writer's operations since the base, in order.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub operations: Vec<Operation>,
    /// Number of operations that must be present, according to the durability.
    pub durable: usize,
    pub last_op: u64,
}

/// Everything that was recorded in a session.
#[derive(Debug)]
pub struct Notes {
    pub writers: Vec<History>,
    pub whole: Vec<WholeOp>,
    /// Number of entries of `whole` that must be present.
    pub whole_durable: usize,
}

impl Base {
    /// The state of a new database with this many writers.
    pub fn new(writers: u8) -> Self {
        Self {
            session: 0,
            next_op: vec![1; usize::from(writers) + 1],
            outcomes: HashMap::new(),
            shared: SharedState {
                counters: vec![0; COUNTERS.into()],
                registers: vec![0; REGISTERS.into()],
                lists: BTreeMap::new(),
            },
        }
    }

    /// The base that was last saved; `None` if there is none.
    pub fn load(directory: &Path) -> Result<Option<Self>, String> {
        match std::fs::read(directory.join("base")) {
            Ok(bytes) => Self::decode(&mut Reader(&bytes)).ok_or("the base is damaged".to_owned()).map(Some),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("reading the base: {error}")),
        }
    }

    /// Replaces the base in one step.
    pub fn save(&self, directory: &Path) -> std::io::Result<()> {
        let fresh = directory.join("base.fresh");
        std::fs::write(&fresh, self.encode())?;
        std::fs::rename(fresh, directory.join("base"))
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let put = |out: &mut Vec<u8>, number: u64| out.extend_from_slice(&number.to_le_bytes());
        put(&mut out, self.session);
        let numbers = [&self.next_op, &self.shared.counters, &self.shared.registers];
        for list in numbers {
            put(&mut out, list.len() as u64);
            list.iter().for_each(|&number| put(&mut out, number));
        }
        put(&mut out, self.shared.lists.len() as u64);
        for (number, content) in &self.shared.lists {
            put(&mut out, u64::from(*number));
            encode_outcome(&Outcome::Raw(content.clone()), &mut out);
        }
        put(&mut out, self.outcomes.len() as u64);
        for (key, outcome) in &self.outcomes {
            out.push(key.space);
            put(&mut out, u64::from(key.number));
            encode_outcome(outcome, &mut out);
        }
        out
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Self> {
        let session = reader.u64()?;
        let mut numbers = || (0..reader.u64()?).map(|_| reader.u64()).collect::<Option<Vec<_>>>();
        let (next_op, counters, registers) = (numbers()?, numbers()?, numbers()?);
        let mut lists = BTreeMap::new();
        for _ in 0..reader.u64()? {
            let number = reader.u64()? as u32;
            let Outcome::Raw(content) = reader.outcome()? else { return None };
            lists.insert(number, content);
        }
        let mut outcomes = HashMap::new();
        for _ in 0..reader.u64()? {
            let key = Key { space: reader.u8()?, number: reader.u64()? as u32 };
            outcomes.insert(key, reader.outcome()?);
        }
        Some(Self { session, next_op, outcomes, shared: SharedState { counters, registers, lists } })
    }
}

impl Notes {
    /// Reads the records since `base`. If `synced`, everything acknowledged must be present.
    pub fn load(directory: &Path, base: &Base, synced: bool) -> Result<Self, String> {
        let writers = base.next_op.len() - 1;
        let mut notes =
            Self { writers: vec![History::default(); writers], whole: Vec::new(), whole_durable: 0 };
        let mut durable = vec![0; writers + 1];
        for writer in 0..writers + JOURNALS_BESIDE {
            let records = journal::read(&journal::path(directory, base.session, writer as u8))?;
            let found = match notes.writers.get_mut(writer) {
                Some(history) => history.take(records, synced)?,
                None if writer == writers => notes.take_whole(records, synced)?,
                None => durable_of(records),
            };
            for ops in found {
                durable.iter_mut().zip(ops).for_each(|(durable, op)| *durable = op.max(*durable));
            }
        }
        for (history, durable) in notes.writers.iter_mut().zip(&durable) {
            let count = history.operations.iter().filter(|operation| operation.op <= *durable).count();
            history.durable = history.durable.max(count);
        }
        let count = notes.whole.iter().filter(|whole| whole.op <= durable[writers]).count();
        notes.whole_durable = notes.whole_durable.max(count);
        Ok(notes)
    }

    fn take_whole(&mut self, records: Vec<Record>, synced: bool) -> Result<Vec<Vec<u64>>, String> {
        let mut durable = Vec::new();
        for record in records {
            match record {
                Record::Whole { op, stamp, space, kind } => {
                    self.whole.push(WholeOp { op, start: stamp, ack: NEVER, space, kind });
                }
                Record::Ack { op, stamp, .. } => match self.whole.last_mut() {
                    Some(last) if last.op == op => last.ack = stamp,
                    _ => return Err(format!("operation {op} on a whole keyspace ended, but never began")),
                },
                Record::Durable { ops } => durable.push(ops),
                Record::Start { .. } | Record::Nothing { .. } => return Err("a foreign record".to_owned()),
            }
        }
        // These operations are durable by definition, except that the items of a small prefix are removed like any
        // others.
        let lasting = |whole: &WholeOp| !matches!(whole.kind, WholeKind::DeletePrefix(_)) || synced;
        let last = self.whole.iter().rposition(|whole| whole.ack != NEVER && lasting(whole));
        self.whole_durable = last.map_or(0, |last| last + 1);
        Ok(durable)
    }
}

/// The records of what is durable.
fn durable_of(records: Vec<Record>) -> Vec<Vec<u64>> {
    let found = records.into_iter().filter_map(|record| match record {
        Record::Durable { ops } => Some(ops),
        _ => None,
    });
    found.collect()
}

impl History {
    fn take(&mut self, records: Vec<Record>, synced: bool) -> Result<Vec<Vec<u64>>, String> {
        let mut durable = Vec::new();
        for record in records {
            match record {
                Record::Start { op, stamp, parted, effects, shared } => {
                    let lives = effects.iter().map(|effect| (effect.born, u32::MAX)).collect();
                    let (start, ack, version) = (stamp, NEVER, 0);
                    self.last_op = op;
                    self.operations.push(Operation {
                        op,
                        start,
                        ack,
                        parted,
                        effects,
                        lives,
                        shared,
                        version,
                    });
                }
                Record::Ack { op, stamp, lives, version } => match self.operations.last_mut() {
                    Some(last) if last.op == op && last.effects.len() == lives.len() => {
                        (last.ack, last.lives, last.version) = (stamp, lives, version);
                    }
                    _ => return Err(format!("operation {op} ended, but never began")),
                },
                Record::Nothing { op } => {
                    if self.operations.last().is_none_or(|last| last.op != op) {
                        return Err(format!("operation {op} had no effect, but never began"));
                    }
                    self.operations.pop();
                }
                Record::Durable { ops } => durable.push(ops),
                Record::Whole { .. } => return Err("a foreign record".to_owned()),
            }
        }
        if synced {
            self.durable = self.operations.iter().filter(|operation| operation.ack != NEVER).count();
        }
        Ok(durable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_reads_back() {
        let mut base = Base::new(3);
        base.session = 7;
        base.next_op[1] = 100;
        base.shared.lists.insert(4, vec![1; 30]);
        base.outcomes.insert(Key { space: 2, number: 9 }, Outcome::value(1, 50));
        base.outcomes.insert(Key { space: 5, number: 0 }, Outcome::Raw(vec![7; 8]));
        assert_eq!(Base::decode(&mut Reader(&base.encode())), Some(base));
    }
}
