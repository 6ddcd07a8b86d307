//! A thread that writes the keys that it owns, and knows their exact content.

use std::collections::BTreeSet;
use std::sync::Arc;

use alluvium::Error;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::board::Cell;
use super::context::{Context, Stop};
use super::journal::{Effect, Journal, Record, SharedEffect};
use super::key::{
    BESIDE, FLEETING, GROUPS, Key, MIXED, OWN, Outcome, Role, SHARED, Seen, Times, keys_of, value_bytes,
};
use super::whole::{Lived, explain};

/// A writer.
#[derive(Debug)]
pub struct Writer {
    pub id: u8,
    pub context: Arc<Context>,
    pub journal: Journal,
    pub rng: StdRng,
    pub next_op: u64,
    /// The highest count that each shared counter returned to it.
    pub counted: [i64; super::ledger::COUNTERS as usize],
}

/// The effects of an operation that is about to run.
#[derive(Debug, Default)]
pub struct Planned {
    pub effects: Vec<(Key, Outcome)>,
    pub parted: bool,
    pub shared: Option<SharedEffect>,
    /// Whether everything is durable when it ends.
    pub persists: bool,
}

/// The results of an operation.
#[derive(Debug, Default)]
pub struct Done {
    /// The former content of the first key, if the operation read it.
    pub seen: Option<Option<Vec<u8>>>,
    /// The register's version after the operation.
    pub version: u64,
}

impl Planned {
    pub fn of(effects: Vec<(Key, Outcome)>) -> Self {
        Self { effects, ..Self::default() }
    }
}

impl Writer {
    pub fn new(id: u8, context: Arc<Context>, journal: Journal, next_op: u64, seed: u64) -> Self {
        let rng = StdRng::seed_from_u64(seed);
        Self { id, context, journal, rng, next_op, counted: [0; super::ledger::COUNTERS as usize] }
    }

    /// Works until the session is over or a resource ran out.
    pub fn run(mut self) {
        while !self.context.board.is_over() {
            if self.step().is_err() {
                break;
            }
        }
        self.flush();
    }

    fn flush(&mut self) {
        let outcome = self.journal.flush();
        outcome.unwrap_or_else(|error| self.context.fail(&format!("writing a journal: {error}")));
    }

    fn step(&mut self) -> Result<(), Stop> {
        match self.rng.random_range(0..1000) {
            0..260 => self.insert(),
            260..350 => self.remove(),
            350..450 if self.context.has("batch") => self.write_batch(),
            450..500 if self.context.has("condition") => self.write_conditional_batch(),
            500..560 if self.context.has("increment") => self.increment_own(),
            560..600 if self.context.has("append") => self.append_own(),
            600..640 if self.context.has("swap") => self.swap_own(),
            640..730 if self.context.has("update") => self.update(),
            730..780 if self.context.has("transaction") => self.transact(),
            780..840 if self.context.has("increment") => self.increment_shared(),
            840..870 if self.context.has("swap") => self.swap_shared(),
            870..890 if self.context.has("append") => self.append_shared(),
            992.. => self.change_whole(),
            _ => self.read(),
        }
    }

    /// One of its keys, of any keyspace.
    pub fn any_key(&mut self) -> Key {
        match self.rng.random_range(0..10) {
            0..5 => self.own_key(Role::Value),
            5..7 => self.key_among(MIXED),
            7..9 => self.key_among(GROUPS),
            _ => self.key_among(FLEETING),
        }
    }

    fn key_among(&mut self, space: u8) -> Key {
        let writers = u32::from(self.context.board.writers);
        let number = self.rng.random_range(0..keys_of(space, writers as u8) / writers);
        Key { space, number: number * writers + u32::from(self.id) }
    }

    /// A key of its own keyspace.
    pub fn own_key(&mut self, role: Role) -> Key {
        let space = OWN + self.id;
        loop {
            let number = self.rng.random_range(0..keys_of(space, self.context.board.writers));
            let key = Key { space, number };
            if key.role() == role {
                return key;
            }
        }
    }

    /// Up to `count` different keys.
    pub fn different_keys(&mut self, count: usize) -> Vec<Key> {
        let keys: BTreeSet<Key> = (0..count).map(|_| self.any_key()).collect();
        keys.into_iter().collect()
    }

    pub fn bytes_of(&self, key: Key) -> Vec<u8> {
        key.bytes(self.context.board.writers)
    }

    /// The value that the next operation stores.
    pub fn fresh_value(&self, key: Key) -> Vec<u8> {
        value_bytes(key, self.id, self.next_op)
    }

    pub fn fresh(&self) -> Outcome {
        Outcome::value(self.id, self.next_op)
    }

    /// The content of one of its keys, which is exact if no other thread changes the key.
    pub fn lived(&self, key: Key) -> Lived {
        self.context.board.cell(key).lived.clone()
    }

    /// Both of its twins, which one operation writes together.
    pub fn twins(&self) -> Vec<(Key, Outcome)> {
        let outcome = Outcome::Raw(self.next_op.to_le_bytes().to_vec());
        [SHARED, BESIDE].map(|space| (Key { space, number: u32::from(self.id) }, outcome.clone())).to_vec()
    }

    /// Runs the planned operation between two journal entries, and learns the keys' new content. `action` returns
    /// `None` if it changed nothing.
    pub fn perform(
        &mut self,
        planned: Planned,
        what: &str,
        action: impl FnOnce(&Context) -> alluvium::Result<Option<Done>>,
    ) -> Result<(), Stop> {
        let context = self.context.clone();
        let board = &context.board;
        let Planned { effects, parted, shared, persists } = planned;
        let op = self.next_op;
        self.next_op += 1;
        let noted: Vec<Effect> = effects
            .iter()
            .map(|(key, outcome)| {
                let born = board.lives_of(*key).ended();
                let mut cell = board.cell(*key);
                cell.started = op;
                if outcome.may_be_absent() {
                    cell.started_absent = op;
                }
                Effect { key: *key, outcome: outcome.clone(), born }
            })
            .collect();
        let born: Vec<u32> = noted.iter().map(|effect| effect.born).collect();
        let mut durable = board.all_ended();
        let earliest = board.watch.earliest();
        let start = Record::Start { op, stamp: board.stamp(), parted, effects: noted, shared };
        let noted = self.journal.note(&start);
        noted.unwrap_or_else(|error| context.fail(&format!("writing a journal: {error}")));
        let done = match action(&context) {
            Ok(done) => done,
            Err(Error::KeyspaceDropped { .. }) => {
                self.forget(&effects, op);
                context.reopen(FLEETING).map_err(|error| context.excuse("creating a keyspace", &error))?;
                return Ok(());
            }
            Err(error) => return Err(context.excuse(&format!("writer {}: {what}", self.id), &error)),
        };
        let Some(Done { seen, version }) = done else {
            self.forget(&effects, op);
            return Ok(());
        };
        let mut lives: Vec<(u32, u32)> =
            effects.iter().zip(born).map(|((key, _), born)| (born, board.lives_of(*key).started())).collect();
        if let Some(seen) = seen {
            let times =
                Times { earliest: earliest.min(board.watch.earliest()), latest: board.watch.latest() };
            let found = self.locate(effects[0].0, seen.as_deref(), lives[0], times, what);
            lives[0] = (found[0].0, found[found.len() - 1].0);
        }
        for ((key, outcome), &(low, high)) in effects.into_iter().zip(&lives) {
            let lived = Lived { outcome, low, high };
            let mut cell = board.cell(key);
            *cell = Cell { lived, ended: op, ..cell.clone() };
        }
        self.journal.defer(&Record::Ack { op, stamp: board.stamp(), lives, version });
        if persists {
            durable[usize::from(self.id)] = op;
            self.journal.defer(&Record::Durable { ops: durable });
        }
        board.end(self.id, op);
        Ok(())
    }

    /// Records that an operation left everything unchanged. The journal entry comes first: a thread that sees that the
    /// operation has ended may record that it is durable.
    fn forget(&mut self, effects: &[(Key, Outcome)], op: u64) {
        let noted = self.journal.note(&Record::Nothing { op });
        noted.unwrap_or_else(|error| self.context.fail(&format!("writing a journal: {error}")));
        effects.iter().for_each(|(key, _)| self.context.board.cell(*key).ended = op);
        self.context.board.end(self.id, op);
    }

    /// The lives in which a read of one of its keys may have seen this; fails if there are none.
    fn locate(
        &self,
        key: Key,
        value: Option<&[u8]>,
        lives: (u32, u32),
        times: Times,
        what: &str,
    ) -> Vec<(u32, Outcome)> {
        let board = &self.context.board;
        let lived = self.lived(key);
        let fail = |reason: &str| -> ! {
            let op = self.next_op;
            self.context.fail(&format!("writer {} before operation {op}: {what}: {reason}", self.id))
        };
        let seen = Seen::of(key, value).unwrap_or_else(|reason| fail(&reason));
        let found =
            board.lives_of(key).with(|ops| explain(ops, (key, board.writers), &lived, &seen, lives, times));
        if found.is_empty() {
            let whole =
                board.lives_of(key).with(|ops| format!("{:?}", ops.iter().rev().take(4).collect::<Vec<_>>()));
            fail(&format!(
                "{key}: found {seen:?}, expected {lived:?} in lives {lives:?}, {times:?}, whole {whole}"
            ));
        }
        found
    }

    /// Checks what was read for one of its keys since `low` and `earliest`, and learns from it.
    pub fn learn(&self, key: Key, value: Option<&[u8]>, (low, earliest): (u32, u64), what: &str) {
        let board = &self.context.board;
        let high = board.lives_of(key).started();
        let times = Times { earliest: earliest.min(board.watch.earliest()), latest: board.watch.latest() };
        let found = self.locate(key, value, (low, high), times, what);
        let (first, outcome) = &found[0];
        if found.iter().all(|(_, other)| other == outcome) {
            let (low, high) = (*first, found[found.len() - 1].0);
            board.cell(key).lived = Lived { outcome: outcome.clone(), low, high };
        }
    }

    /// The arguments of [`Writer::learn`] that must be taken before the reading.
    pub fn moment(&self, key: Key) -> (u32, u64) {
        (self.context.board.lives_of(key).ended(), self.context.board.watch.earliest())
    }
}
