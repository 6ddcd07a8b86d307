//! One client: random operations, each recorded with its answer.

use std::sync::atomic::Ordering;
use std::time::Duration;

use alluvium_io::Clock as _;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::super::Failure;
use super::history::{Answer, Effect, NEVER, Operation, State};
use super::value::{COUNTER, EXPIRING, parse, value};
use super::world::{KINDS, Stop, World};
use crate::{Durability, Error, Keyspace, Metadata};

/// The effect of an operation on a key, given by keyspace and number.
pub(super) type Touch = (usize, usize, Effect);

pub(super) struct Client<'w, 'a> {
    pub(super) world: &'w World<'a>,
    number: usize,
    pub(super) rng: StdRng,
    pub(super) keyspaces: Vec<Keyspace>,
}

impl<'w, 'a> Client<'w, 'a> {
    pub fn new(world: &'w World<'a>, number: usize, seed: u64, keyspaces: Vec<Keyspace>) -> Self {
        Self { world, number, rng: StdRng::seed_from_u64(seed), keyspaces }
    }

    /// Performs operations until the client has done its share, the session ends, or there is a finding.
    pub fn run(&mut self) -> u64 {
        for done in 0..self.world.shape.operations {
            if self.world.has_finding.load(Ordering::Relaxed) {
                return done as u64;
            }
            match self.step() {
                Ok(()) => {}
                Err(Stop::Expected) => return done as u64,
                Err(Stop::Finding(failure)) => self.world.report(failure),
            }
        }
        self.world.shape.operations as u64
    }

    fn step(&mut self) -> Result<(), Stop> {
        let weights = &self.world.shape.weights;
        let mut choice = self.rng.random_range(0..weights.iter().sum::<u32>());
        let kind = (0..KINDS).find(|&kind| {
            let taken = choice < weights[kind];
            choice = choice.saturating_sub(weights[kind]);
            taken
        });
        match kind.expect("the choice is below the sum") {
            0 => self.get(),
            1 => self.put(),
            2 => self.remove(),
            3 => self.batch(),
            4 => self.update(),
            5 => self.increment(),
            6 => self.swap(),
            7 => self.transaction(),
            8 => self.conditional_batch(),
            9 => self.clear(),
            10 => self.drop_keyspace(),
            11 => self.ingest(),
            12 => self.delete_prefix(),
            13 => self.snapshot(),
            14 => self.checkpoint(),
            15 => self.change_plan(),
            16 => self.change_limits(),
            17 => self.persisting("flushing", |client| client.world.db.flush()),
            18 => self.persisting("persisting", |client| client.world.db.persist()),
            19 => self.persisting("compacting", |client| client.world.db.compact()),
            20 => self.iterate(),
            21 => self.multi_get(),
            22 => self.set_clock(),
            23 => self.put_expiring(),
            _ => self.pause(),
        }
    }

    /// A keyspace and one of its keys, often one of a few.
    pub(super) fn place(&mut self) -> (usize, usize) {
        let keyspace = self.rng.random_range(0..self.keyspaces.len());
        (keyspace, self.number_in())
    }

    /// The number of a key without a special purpose.
    fn number_in(&mut self) -> usize {
        self.rng.random_range(EXPIRING + 1..self.world.shape.keys)
    }

    /// Sometimes another number: that of the counter or of the key that expires.
    fn sometimes_special(&mut self, number: usize) -> usize {
        match self.rng.random_range(0..8) {
            0 | 1 => COUNTER,
            2 | 3 => EXPIRING,
            _ => number,
        }
    }

    pub(super) fn key(&self, keyspace: usize, number: usize) -> Vec<u8> {
        self.world.shape.key(keyspace, number)
    }

    /// Performs an operation and records its result. Returns `None` if its keyspace had been dropped or the disk was
    /// full.
    pub(super) fn perform<R>(
        &mut self,
        what: &'static str,
        touches: &[Touch],
        perform: impl FnOnce(&mut Self) -> Result<R, Error>,
        answer: impl Fn(&R, usize) -> Result<Answer, Stop>,
    ) -> Result<Option<R>, Stop> {
        let (world, number_of_client) = (self.world, self.number);
        let call = self.world.history.tick();
        let outcome = perform(self);
        let ret = self.world.history.tick();
        let durable = matches!(self.world.shape.durability, Durability::Process | Durability::Sync)
            || matches!(what, "clear" | "drop" | "ingest");
        let note = |(keyspace, number, effect): Touch, answer: Answer, ret: u64| {
            if answer == Answer::Refused {
                return;
            }
            let operation = Operation { call, ret, effect, answer, durable, client: number_of_client, what };
            world.history.record(world.shape.place(keyspace, number), operation);
        };
        match outcome {
            Ok(result) => {
                for (place, touch) in touches.iter().enumerate() {
                    note(*touch, answer(&result, place)?, ret);
                }
                Ok(Some(result))
            }
            Err(Error::KeyspaceDropped { .. }) => {
                touches.iter().for_each(|touch| note(*touch, Answer::Unknown, ret));
                self.reopen_keyspaces()?;
                Ok(None)
            }
            Err(error) => {
                touches.iter().for_each(|touch| note(*touch, Answer::Unknown, NEVER));
                if self.world.makes_room(&error) {
                    return Ok(None);
                }
                Err(self.world.stop(&error, what))
            }
        }
    }

    /// Records the result of a read that saw the state of one moment.
    pub(super) fn note_read(
        &self,
        what: &'static str,
        (keyspace, number): (usize, usize),
        (call, ret): (u64, u64),
        state: State,
    ) {
        let (effect, answer) = (Effect::Read, Answer::Saw(state));
        let operation = Operation { call, ret, effect, answer, durable: false, client: self.number, what };
        self.world.history.record(self.world.shape.place(keyspace, number), operation);
    }

    pub(super) fn reopen_keyspaces(&mut self) -> Result<(), Stop> {
        for number in 0..self.keyspaces.len() {
            let opened = self.world.open_keyspace(number);
            self.keyspaces[number] = opened.map_err(|error| self.world.stop(&error, "opening a keyspace"))?;
        }
        Ok(())
    }

    fn get(&mut self) -> Result<(), Stop> {
        let (keyspace, number) = self.place();
        let number = self.sometimes_special(number);
        let key = self.key(keyspace, number);
        self.perform(
            "get",
            &[(keyspace, number, Effect::Read)],
            |client| client.keyspaces[keyspace].get(&key),
            |found, _| saw(found.as_deref()),
        )?;
        Ok(())
    }

    fn multi_get(&mut self) -> Result<(), Stop> {
        let keyspace = self.rng.random_range(0..self.keyspaces.len());
        let numbers: Vec<usize> = (0..self.world.shape.keys).collect();
        let keys: Vec<Vec<u8>> = numbers.iter().map(|&number| self.key(keyspace, number)).collect();
        let touches: Vec<Touch> = numbers.iter().map(|&number| (keyspace, number, Effect::Read)).collect();
        self.perform(
            "multi_get",
            &touches,
            |client| client.keyspaces[keyspace].multi_get(&keys),
            |found, place| saw(found[place].as_deref()),
        )?;
        Ok(())
    }

    fn put(&mut self) -> Result<(), Stop> {
        let ((keyspace, number), new) = (self.place(), self.world.number());
        let key = self.key(keyspace, number);
        let as_stream = self.rng.random_range(0..5) == 0;
        self.perform(
            "put",
            &[(keyspace, number, Effect::Set(Some(new)))],
            |client| {
                let (keyspace, value) = (&client.keyspaces[keyspace], value(new));
                match as_stream {
                    true => keyspace.insert_reader(&key, value.len(), &value[..], Default::default()),
                    false => keyspace.insert(&key, &value),
                }
            },
            |(), _| Ok(Answer::Done),
        )?;
        Ok(())
    }

    /// Stores a value that expires at once, soon, or when the clock is set.
    fn put_expiring(&mut self) -> Result<(), Stop> {
        if !self.world.takes_expiry() {
            return Ok(());
        }
        let (keyspace, new) = (self.rng.random_range(0..self.keyspaces.len()), self.world.number());
        let key = self.key(keyspace, EXPIRING);
        let after_ms = [0, 50, 1_000, 1_800_000][self.rng.random_range(0..4)];
        let expires_at_ms = Some(self.world.clock.unix().as_millis() as u64 + after_ms);
        let metadata = Metadata { expires_at_ms, ..Metadata::default() };
        self.world.history.may_expire(self.world.shape.place(keyspace, EXPIRING), new, self.number);
        self.perform(
            "put of what expires",
            &[(keyspace, EXPIRING, Effect::Set(Some(new)))],
            |client| client.keyspaces[keyspace].insert_with(&key, value(new), metadata),
            |(), _| Ok(Answer::Done),
        )?;
        Ok(())
    }

    fn remove(&mut self) -> Result<(), Stop> {
        let (keyspace, number) = self.place();
        let number = self.sometimes_special(number);
        let key = self.key(keyspace, number);
        self.perform(
            "remove",
            &[(keyspace, number, Effect::Set(None))],
            |client| client.keyspaces[keyspace].remove(&key),
            |(), _| Ok(Answer::Done),
        )?;
        Ok(())
    }

    /// Performs an operation that makes everything before it durable.
    fn persisting(
        &mut self,
        doing: &'static str,
        perform: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Stop> {
        let call = self.world.history.tick();
        if self.perform(doing, &[], perform, |(), _| Ok(Answer::Done))?.is_some() {
            self.world.history.persisted(call, doing);
        }
        Ok(())
    }

    fn change_plan(&mut self) -> Result<(), Stop> {
        let shape = self.world.shape;
        let keyspace = self.rng.random_range(0..self.keyspaces.len());
        let plans = if shape.keyspaces[keyspace] { &shape.semi_sorted_plans } else { &shape.plans };
        let plan = plans[self.rng.random_range(0..plans.len())].clone();
        let of_database = !shape.keyspaces[keyspace] && self.rng.random();
        self.perform(
            "changing a plan",
            &[],
            |client| match of_database {
                true => client.world.db.change_plan(plan),
                false => client.keyspaces[keyspace].change_plan(&plan),
            },
            |(), _| Ok(Answer::Done),
        )?;
        Ok(())
    }

    fn change_limits(&mut self) -> Result<(), Stop> {
        let db = &self.world.db;
        db.set_index_bytes_max([0, 2_000, 1 << 30][self.rng.random_range(0..3)]);
        db.set_merge_bytes_max([500, 20_000, 1 << 30][self.rng.random_range(0..3)]);
        Ok(())
    }

    fn set_clock(&mut self) -> Result<(), Stop> {
        let seconds = self.rng.random_range(0..7_200);
        let now = self.world.note_time();
        self.world
            .clock
            .set_unix((now + Duration::from_secs(seconds)).saturating_sub(Duration::from_secs(3_600)));
        Ok(())
    }

    pub(super) fn pause(&mut self) -> Result<(), Stop> {
        alluvium_io::sync::thread::sleep(Duration::from_micros(self.rng.random_range(0..30_000)));
        Ok(())
    }
}

/// The answer that a read gives about its key.
pub(super) fn saw(found: Option<&[u8]>) -> Result<Answer, Stop> {
    match parse(found) {
        Ok(state) => Ok(Answer::Saw(state)),
        Err(reason) => Err(Failure { reason: format!("a read found {reason}") }.into()),
    }
}
