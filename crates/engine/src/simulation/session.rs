//! One opening of the simulated database: operations until it is closed, killed, crashed or fails.

use std::sync::Arc;
use std::time::Duration;

use alluvium_io::{Clock as _, FaultPlan, SimulatedClock};
use rand::rngs::StdRng;
use rand::{Rng, RngExt};

use super::disks::Disks;
use super::faults::Stop;
use super::model::{Contents, Model, Name, Value};
use super::reads::{get_each, read_all};
use super::rows::with_rows;
use super::shape::{Shape, prefixed_key};
use super::{Failure, Summary, fail};
use crate::environment::PlantedBugs;
use crate::{Db, Durability, Environment, Error, Keyspace, Snapshot};

pub(super) struct Session<'a> {
    pub(super) rng: &'a mut StdRng,
    pub(super) model: &'a mut Model,
    pub(super) summary: &'a mut Summary,
    pub(super) shape: &'a Shape,
    pub(super) storage: Disks,
    planted_bugs: PlantedBugs,
    clock: SimulatedClock,
    pub(super) durability: Durability,
    pub(super) faults: FaultPlan,
    /// Snapshots taken, with their expected contents.
    pub(super) snapshots: Vec<(Snapshot, Contents)>,
}

impl<'a> Session<'a> {
    pub fn new(
        rng: &'a mut StdRng,
        model: &'a mut Model,
        summary: &'a mut Summary,
        shape: &'a Shape,
        storage: Disks,
        clock: SimulatedClock,
        planted_bugs: PlantedBugs,
    ) -> Self {
        let durability = match rng.random_range(0..6) {
            0 => Durability::Buffered,
            1 => Durability::Process,
            _ => Durability::Sync,
        };
        let faults = FaultPlan::default();
        let snapshots = Vec::new();
        Self { rng, model, summary, shape, storage, clock, planted_bugs, durability, faults, snapshots }
    }

    /// Opens the database, checks it against the model, uses it, and ends in one of several ways.
    pub fn run(&mut self, number: u64) -> Result<(), Failure> {
        if number > 0 || self.rng.random_range(0..4) == 0 {
            self.faults = self.random_faults();
            self.storage.set_faults(self.faults.clone());
        }
        let (db, mut keyspaces) = match self.open() {
            Ok(opened) => opened,
            Err(error) => return self.expect_injected(&error, "opening"),
        };
        let found = match read_all(&keyspaces) {
            Ok(found) => found,
            Err(error) => return self.expect_injected(&error, "reading everything"),
        };
        self.model.settle(&found)?;
        let steps = self.rng.random_range(1..600);
        for _ in 0..steps {
            match self.step(&db, &mut keyspaces) {
                Ok(()) => self.summary.operations += 1,
                Err(Stop::Expected) => break,
                Err(Stop::Full) if self.resume(&db, &mut keyspaces)? => {}
                Err(Stop::Full) => {
                    self.go_down();
                    break;
                }
                Err(Stop::Finding(failure)) => return Err(failure),
            }
        }
        self.end(db, keyspaces)
    }

    /// Opens without faults and checks everything.
    pub fn final_check(&mut self) -> Result<(), Failure> {
        let describe = |error: Error| Failure { reason: format!("at the last opening: {error}") };
        let (db, keyspaces) = self.open().map_err(describe)?;
        self.model.settle(&read_all(&keyspaces).map_err(describe)?)?;
        self.check_some(&keyspaces, 200).map_err(|stop| match stop {
            Stop::Finding(failure) => failure,
            Stop::Expected | Stop::Full => {
                Failure { reason: "an error without an injected fault".to_owned() }
            }
        })?;
        db.compact().map_err(describe)?;
        if db.is_changing_plan() {
            return fail("a compaction did not end a change of plan");
        }
        let problems = db.verify().map_err(describe)?.problems;
        if !problems.is_empty() {
            return fail(format!("verify finds {problems:?}"));
        }
        if read_all(&keyspaces).map_err(describe)? != self.model.contents() {
            return fail("compaction changed the contents");
        }
        Ok(())
    }

    fn open(&mut self) -> Result<(Db, Vec<Keyspace>), Error> {
        self.open_in(&self.storage.clone())
    }

    /// Opens the database on the disks.
    pub(super) fn open_in(&mut self, disks: &Disks) -> Result<(Db, Vec<Keyspace>), Error> {
        let environment = Environment {
            storage: Arc::new(disks.first.clone()),
            clock: Arc::new(self.clock.clone()),
            random_seed: self.rng.random(),
            planted_bugs: self.planted_bugs,
        };
        let (blob_file_bytes, aligned_bytes, garbage_bytes) = self.shape.blob_sizes;
        let builder = Db::builder("simulated")
            .plan(self.shape.plans.to_open_with(self.rng).unwrap_or_else(|| self.shape.plan.clone()))
            .durability(self.durability)
            .background(false)
            .inline_bytes_max(self.shape.inline_bytes_max)
            .blob_sizes(blob_file_bytes, aligned_bytes, garbage_bytes)
            .garbage_bytes_min(self.shape.garbage_bytes_min)
            .directory_log_factor(self.shape.directory_log_factor)
            .ingest_sort_bytes_max(4 << 10)
            .table_sizes(self.shape.table_sizes.0, self.shape.table_sizes.1)
            .environment(environment);
        let db = with_rows(disks.give(builder), self.shape.keys).open()?;
        if let Some(memory) = self.shape.memory {
            db.set_index_bytes_max(memory.index_bytes);
            db.set_merge_bytes_max(memory.merge_bytes);
        }
        if self.rng.random_range(0..4) == 0 {
            // Background threads may come first: the tables of keyspaces are not open then.
            for _ in 0..self.rng.random_range(1..6) {
                db.run_background_job()?;
            }
        }
        let open = |number| db.keyspace_with(&format!("keyspace-{number}"), &self.shape.options(number));
        let keyspaces = (0..self.shape.keyspaces).map(open).collect::<Result<_, _>>()?;
        Ok((db, keyspaces))
    }

    /// Performs one random operation and checks its result.
    fn step(&mut self, db: &Db, keyspaces: &mut [Keyspace]) -> Result<(), Stop> {
        let total: u32 = self.shape.weights.iter().sum();
        let mut choice = self.rng.random_range(0..total);
        let operation = self.shape.weights.iter().position(|&weight| {
            let taken = choice < weight;
            choice = choice.saturating_sub(if taken { 0 } else { weight });
            taken
        });
        let operation = operation.expect("the choice is below the sum");
        match operation {
            0 => self.insert(keyspaces),
            1 => self.remove(keyspaces),
            2 => self.update(keyspaces),
            3 => self.batch(db, keyspaces),
            4 => self.check_some(keyspaces, 1),
            5 => self.check_some(keyspaces, 20),
            6 => self.check_scan(keyspaces),
            7 => self.quietly("flushing", true, || db.flush()),
            8 => self.quietly("persisting", true, || db.persist()),
            9 => self.quietly("compacting", true, || db.compact()),
            10 => self.clear(db, keyspaces),
            11 => self.quietly("working in the background", false, || db.run_background_job().map(drop)),
            12 => self.compare_and_swap(keyspaces),
            13 => self.pass_time(),
            14 => self.take_snapshot(db),
            15 => self.check_snapshot(),
            16 => self.checkpoint(db),
            17 => self.transaction(db, keyspaces),
            18 => self.insert_stream(keyspaces),
            19 => self.check_stream(keyspaces),
            20 => self.ingest(keyspaces),
            21 => self.accumulate(keyspaces),
            22 => self.conditional_batch(db, keyspaces),
            23 => self.quietly("idling", false, || db.wait_idle()),
            24 => self.check_prefix(keyspaces),
            25 => self.delete_prefix(keyspaces),
            _ => self.change_plan(db, keyspaces),
        }
    }

    pub(super) fn name(&mut self) -> Name {
        self.name_in(None)
    }

    /// A name in this keyspace, or in any.
    pub(super) fn name_in(&mut self, wanted: Option<usize>) -> Name {
        let any = self.rng.random_range(0..self.shape.keyspaces);
        let keyspace = wanted.unwrap_or(any);
        let keys = self.shape.keys;
        // A quarter of all operations use a few keys.
        let number = match self.rng.random_range(0..4) {
            0 => self.rng.random_range(0..keys.min(3)),
            _ => self.rng.random_range(0..keys),
        };
        if self.shape.prefix_rules[keyspace].is_some() {
            return (keyspace, prefixed_key(number));
        }
        let mut key = format!("key-{number}").into_bytes();
        if self.shape.long_keys && number % 3 == 0 {
            key.resize(1020 + number as usize * 7, b'.');
        }
        (keyspace, key)
    }

    pub(super) fn value(&mut self) -> Vec<u8> {
        let len = self.rng.random_range(0..=self.shape.value_bytes_max);
        let mut value = vec![0; len];
        self.rng.fill_bytes(&mut value);
        value
    }

    /// A value that expires soon with a probability of one in five.
    pub(super) fn expiring_value(&mut self) -> Value {
        let mut bytes = self.value();
        let mut expires_at_ms = None;
        if self.shape.expires && self.rng.random_range(0..5) == 0 {
            let expiry = self.now_ms() + self.rng.random_range(1..2_000);
            bytes.extend_from_slice(&expiry.to_le_bytes());
            expires_at_ms = Some(expiry);
        }
        Value { bytes, expires_at_ms }
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.clock.unix().as_millis() as u64
    }

    /// Advances the clock.
    fn pass_time(&mut self) -> Result<(), Stop> {
        self.clock.advance(Duration::from_millis(self.rng.random_range(0..500)));
        self.model.expire(self.now_ms());
        Ok(())
    }

    /// Performs an operation that changes no item. With `durable` everything so far must survive from then on.
    pub(super) fn quietly(
        &mut self,
        doing: &str,
        durable: bool,
        perform: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Stop> {
        match perform() {
            Ok(()) => {
                if durable {
                    self.model.set_durable();
                }
                Ok(())
            }
            Err(error) => Err(self.stop(&error, doing)),
        }
    }

    /// Reads some keys, one by one and together.
    fn check_some(&mut self, keyspaces: &[Keyspace], count: usize) -> Result<(), Stop> {
        let names: Vec<Name> = (0..count).map(|_| self.name()).collect();
        for (number, keyspace) in keyspaces.iter().enumerate() {
            let keys: Vec<&[u8]> =
                names.iter().filter(|name| name.0 == number).map(|name| &name.1[..]).collect();
            let found = match keys[..] {
                [key] => keyspace.get(key).map(|value| vec![value]),
                _ if keys.len().is_multiple_of(2) => get_each(keyspace, &keys),
                _ => keyspace.multi_get(&keys),
            };
            let found = found.map_err(|error| self.stop(&error, "getting"))?;
            for (key, found) in keys.into_iter().zip(found) {
                let name = (number, key.to_vec());
                let expected = self.model.get(&name).cloned();
                self.compare(&name, expected, found, "get")?;
            }
        }
        Ok(())
    }

    fn check_scan(&mut self, keyspaces: &[Keyspace]) -> Result<(), Stop> {
        let found = read_all(keyspaces).map_err(|error| self.stop(&error, "iterating"))?;
        let expected = self.model.contents();
        if found != expected {
            let reason = format!("iteration found {} items, not {}", found.len(), expected.len());
            return Err(Failure { reason }.into());
        }
        Ok(())
    }

    pub(super) fn compare(
        &self,
        name: &Name,
        expected: Option<Vec<u8>>,
        found: Option<Vec<u8>>,
        by: &str,
    ) -> Result<(), Stop> {
        if expected == found {
            return Ok(());
        }
        let show = |value: &Option<Vec<u8>>| value.as_ref().map(|value| value.len());
        let reason = format!(
            "{by} of key {:?} of keyspace {}: expected {:?} bytes, found {:?}",
            String::from_utf8_lossy(&name.1),
            name.0,
            show(&expected),
            show(&found)
        );
        Err(Failure { reason }.into())
    }

    /// Cuts the power, unless the process has died, which is then all that happens.
    pub(super) fn go_down(&mut self) {
        if self.storage.is_killed() {
            self.storage.kill();
        } else {
            self.storage.crash();
            self.model.cut_power();
        }
    }

    /// Closes the database, kills it, or cuts the power.
    fn end(&mut self, db: Db, keyspaces: Vec<Keyspace>) -> Result<(), Failure> {
        self.snapshots.clear();
        if self.storage.is_crashed() {
            self.go_down();
            return Ok(());
        }
        match self.rng.random_range(0..3) {
            0 => {
                self.go_down();
                self.summary.crashes += 1;
            }
            1 => self.storage.kill(),
            _ => {
                drop(keyspaces);
                match db.close() {
                    Ok(()) => self.model.set_durable(),
                    Err(error) => return self.expect_injected(&error, "closing"),
                }
                // What is stored after a clean close must survive a crash right after it.
                self.storage.crash();
            }
        }
        Ok(())
    }
}
