//! Seeded simulation of several clients and all background threads at once: production code under the scheduler of
//! [`alluvium_io::sync::simulation`], over a storage that crashes, tears and fails.
//!
//! Each client records its operations and their answers. After a session, some order of each key's operations must
//! explain all answers (`check`), and the state after the next opening must be an end of such an order: nothing that
//! was acknowledged as durable is lost, nothing that was removed is back. Values that are written together must be seen
//! together. A seed replays exactly, including the schedule.

mod allowed;
mod bugs;
mod check;
mod client;
mod damage;
mod follower;
mod history;
mod open;
mod reads;
#[cfg(test)]
mod tests;
mod value;
mod world;
mod writes;

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use alluvium_io::sync::{simulation, thread};
use alluvium_io::{Clock as _, FaultPlan, SimulatedClock, SimulatedStorage};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

pub use bugs::PLANTED_BUGS;

use super::{Failure, Options, Summary, fail};
use crate::environment::PlantedBugs;
use crate::{Db, Durability, Error};
use allowed::Allowed;
use client::Client;
use damage::Damage;
use follower::Follower;
use history::{History, State};
use open::open;
use world::{Shape, Stop, World};

/// The number of a client that does not exist.
const NEVER_A_CLIENT: usize = usize::MAX;
/// Number of steps after which an execution counts as endless.
const STEPS_MAX: u64 = 3_000_000;

/// Counts of a threaded simulation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadsSummary {
    /// The same counts as for the simulation of one thread.
    pub summary: Summary,
    /// Steps of the scheduler.
    pub steps: u64,
    /// A hash of all its decisions.
    pub trace: u64,
}

/// Runs the threaded simulation of this seed. Panics of the engine are failures.
pub fn run(seed: u64, options: &Options) -> Result<ThreadsSummary, Failure> {
    let planted_bugs = bugs::plant(options.planted_bug.as_deref())?;
    let schedule = simulation::Options { seed: seed ^ 0x7468_7265_6164_7321, steps_max: STEPS_MAX };
    let outcome = simulation::run(schedule, move || life(seed, planted_bugs));
    let outcome = outcome.map_err(|failure| Failure { reason: failure.reason })?;
    let summary = outcome.result?;
    Ok(ThreadsSummary { summary, steps: outcome.steps, trace: outcome.trace })
}

/// A database from its creation on, over several sessions.
fn life(seed: u64, planted_bugs: PlantedBugs) -> Result<Summary, Failure> {
    let mut rng = StdRng::seed_from_u64(seed ^ 0x006c_6966_6500);
    let mut shape = Shape::random(&mut rng);
    if let Some(race) = planted_bugs.race {
        if !bugs::may_show(race, &shape) {
            return Ok(Summary::default());
        }
        bugs::focus(race, &mut shape);
    }
    // One of four has a follower; the others do what they did without.
    let mut follower = seed.is_multiple_of(4).then(|| {
        shape.be_followed(seed);
        Follower::new(shape.places(), shape.keyspaces.len(), seed)
    });
    let mut storage = SimulatedStorage::new(rng.random());
    let clock = SimulatedClock::default();
    let next_number = AtomicI64::new(0);
    let mut latest_ms = 0;
    let mut summary = Summary::default();
    // The possible values of each key at the next opening; exactly one after its value was read.
    let mut allowed = Allowed::first(shape.places());
    for session in 0..rng.random_range(1..4) {
        let mut session = Session {
            shape: &shape,
            storage: storage.clone(),
            clock: clock.clone(),
            planted_bugs,
            next_number: &next_number,
            rng: &mut rng,
            summary: &mut summary,
            follower: follower.as_mut(),
            has_faults: session > 0 && seed.is_multiple_of(2),
            damage: None,
            latest_ms: &mut latest_ms,
        };
        session.run(&mut allowed)?;
        summary.reopenings += 1;
        storage = storage.reopen();
    }
    let rng = &mut rng;
    let (planted_bugs, summary_ref) = (planted_bugs, &mut summary);
    let mut last = Session {
        shape: &shape,
        storage,
        clock,
        planted_bugs,
        next_number: &next_number,
        rng,
        summary: summary_ref,
        follower: follower.as_mut(),
        has_faults: false,
        damage: None,
        latest_ms: &mut latest_ms,
    };
    last.final_check(&mut allowed)?;
    summary.storage_operations = 0;
    Ok(summary)
}

struct Session<'a> {
    shape: &'a Shape,
    storage: SimulatedStorage,
    clock: SimulatedClock,
    planted_bugs: PlantedBugs,
    next_number: &'a AtomicI64,
    rng: &'a mut StdRng,
    summary: &'a mut Summary,
    follower: Option<&'a mut Follower>,
    has_faults: bool,
    damage: Option<Damage>,
    /// The latest time on the wall clock so far. Values that had expired by then must not reappear in a later session.
    latest_ms: &'a mut u64,
}

impl<'a> Session<'a> {
    /// Opens the database, checks its content, runs the clients, checks their histories, and ends it in one of several
    /// ways.
    fn run(&mut self, allowed: &mut Allowed) -> Result<(), Failure> {
        self.keep_time();
        if self.has_faults && self.rng.random_range(0..5) == 0 {
            self.damage = Damage::random(&self.storage, self.rng);
        } else if self.has_faults {
            let faults = self.random_faults();
            self.storage.set_faults(faults);
        }
        let opened = open(self.shape, &self.storage, &self.clock, self.rng.random(), self.planted_bugs, true);
        let db = match opened {
            Ok(db) => db,
            Err(error) => return self.end_early(&error, "opening", allowed),
        };
        let world = self.world(db);
        let (keyspaces, first) = match world.look() {
            Ok(found) => found,
            Err(Stop::Finding(failure)) => return Err(failure),
            Err(Stop::Expected) => {
                drop(world);
                return self.crashed(allowed);
            }
        };
        allowed.settle(self.shape, first.clone())?;
        self.check_twins(&first)?;
        for keyspace in 0..self.shape.keyspaces.len() {
            let place = self.shape.place(keyspace, value::EXPIRING);
            // It may have been given an expiry in an earlier session.
            first[place]
                .into_iter()
                .for_each(|number| world.history.may_expire(place, number, NEVER_A_CLIENT));
        }
        if let Some(Err(stop)) = self.follower.as_mut().map(|follower| follower.begin(&world, &first)) {
            return match stop {
                Stop::Finding(failure) => Err(failure),
                Stop::Expected => {
                    drop((keyspaces, world));
                    allowed.expire(self.shape);
                    self.crashed(allowed)
                }
            };
        }
        let is_over = AtomicBool::new(false);
        let seeds: Vec<u64> = (0..self.shape.clients).map(|_| self.rng.random()).collect();
        let operations: u64 = thread::scope(|scope| {
            let client = |(number, &seed): (usize, &u64)| {
                let mut client = Client::new(&world, number, seed, keyspaces.clone());
                scope.spawn(move || client.run())
            };
            let clients: Vec<_> = seeds.iter().enumerate().map(client).collect();
            let follower = self.follower.as_mut();
            let follower = follower.map(|follower| scope.spawn(|| follower.run(&world, &is_over)));
            let done = clients.into_iter().map(|client| client.join().unwrap_or(0)).sum();
            is_over.store(true, Ordering::Relaxed);
            follower.map(|follower| follower.join());
            done
        });
        if let Some(Err(Stop::Finding(failure))) = self.follower.as_mut().map(|follower| follower.end(&world))
        {
            world.report(failure);
        }
        self.summary.operations += operations;
        drop(keyspaces);
        world.note_time();
        *self.latest_ms = world.latest_ms.load(Ordering::Relaxed);
        if let Some(failure) = world.finding.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(failure);
        }
        self.end(world, first, allowed)
    }

    fn world(&self, db: Db) -> World<'a> {
        World {
            shape: self.shape,
            db,
            storage: self.storage.clone(),
            clock: self.clock.clone(),
            history: History::new(self.shape.places()),
            has_faults: self.has_faults,
            has_damage: self.damage.is_some(),
            expiring: 0.into(),
            times_full: 0.into(),
            latest_ms: (*self.latest_ms).into(),
            next_number: self.next_number,
            has_finding: false.into(),
            finding: Mutex::default(),
        }
    }

    /// Sets the clock to the latest time so far, if it was set back.
    fn keep_time(&mut self) {
        self.clock.set_unix(self.clock.unix().max(Duration::from_millis(*self.latest_ms)));
    }

    fn end(&mut self, world: World<'_>, first: Vec<State>, allowed: &mut Allowed) -> Result<(), Failure> {
        let keeps_order = self.shape.durability == Durability::Sync;
        let World { db, history, .. } = world;
        let has_ended = match self.rng.random_range(0..4) {
            _ if self.storage.is_crashed() => false,
            0 | 1 => {
                self.storage.crash();
                false
            }
            2 => {
                self.storage.kill();
                false
            }
            _ => match db.clone().close() {
                Ok(()) => true,
                Err(error) if !self.has_faults || self.is_finding(&error) => {
                    return fail(format!("closing: {error}"));
                }
                Err(_) => false,
            },
        };
        drop(db);
        self.storage.crash();
        let is_kept = self.shape.durability == Durability::Process && self.storage.is_killed();
        self.mend();
        self.summary.crashes += u64::from(!has_ended);
        let (mut ends, mut after_kill) = (Vec::new(), Vec::new());
        for (place, &first) in first.iter().enumerate() {
            let (keyspace, number) = (place / self.shape.keys, place % self.shape.keys);
            let operations = history.of(place);
            let wrong = |reason| Failure { reason: format!("key {number} of keyspace {keyspace}: {reason}") };
            ends.push(check::check(first, &operations, keeps_order).map_err(wrong)?);
            if is_kept {
                after_kill.push(check::check(first, &operations, true).map_err(wrong)?);
            }
        }
        let persisted = history.last_persisted().map(|persisted| (history, first, persisted));
        let after_kill = is_kept.then_some(after_kill);
        *allowed = Allowed { ends, after_kill, has_crashed: !has_ended, persisted };
        Ok(())
    }

    fn end_early(&mut self, error: &Error, doing: &str, allowed: &mut Allowed) -> Result<(), Failure> {
        if !self.storage.is_crashed() && (!self.has_faults || self.is_finding(error)) {
            return fail(format!("{doing}: {error}"));
        }
        self.crashed(allowed)
    }

    fn crashed(&mut self, allowed: &mut Allowed) -> Result<(), Failure> {
        if !self.storage.is_killed() {
            allowed.after_kill = None;
        }
        self.storage.crash();
        self.mend();
        self.summary.errors += 1;
        Ok(())
    }

    /// Whether the error cannot be explained by a fault.
    fn is_finding(&self, error: &Error) -> bool {
        self.damage.is_none() && super::disks::is_wrong(error)
    }

    fn mend(&mut self) {
        if let Some(damage) = self.damage.take() {
            damage.mend(&self.storage.reopen());
        }
    }

    fn random_faults(&mut self) -> FaultPlan {
        let rng = &mut *self.rng;
        let soon = |rng: &mut StdRng| {
            let scale = [30u64, 300, 3000][rng.random_range(0..3)];
            Some(rng.random_range(0..scale))
        };
        let mut faults = FaultPlan::default();
        match rng.random_range(0..11) {
            0..=3 => faults.crash_before_operation = soon(rng),
            4 => faults.kill_before_operation = soon(rng),
            5 => faults.fail_read = soon(rng),
            6 => faults.fail_write = soon(rng),
            7 => faults.fail_sync = soon(rng),
            8 => faults.fail_opens = soon(rng).map(|first| first..first + rng.random_range(1..20)),
            _ => faults.quota_bytes = Some(self.storage.used_bytes() + rng.random_range(0..60_000)),
        }
        faults
    }

    fn check_twins(&self, found: &[State]) -> Result<(), Failure> {
        let shape = self.shape;
        for keyspace in 0..shape.keyspaces.len() {
            let one = found[shape.place(keyspace, value::TWINS[0])];
            let other = found[shape.place(shape.twin_of(keyspace), value::TWINS[1])];
            if one != other {
                return fail(format!(
                    "after an opening two keys that are always written together have {one:?} and {other:?}"
                ));
            }
        }
        Ok(())
    }

    /// Opens without faults and checks everything, before and after a compaction.
    fn final_check(&mut self, allowed: &mut Allowed) -> Result<(), Failure> {
        let describe = |error: Error| Failure { reason: format!("at the last opening: {error}") };
        self.keep_time();
        let db = open(self.shape, &self.storage, &self.clock, self.rng.random(), self.planted_bugs, false);
        let db = db.map_err(describe)?;
        let world = self.world(db);
        let look = |world: &World<'_>| match world.look() {
            Ok((_, found)) => Ok(found),
            Err(Stop::Finding(failure)) => Err(failure),
            Err(Stop::Expected) => fail("an error without an injected fault"),
        };
        let before = look(&world)?;
        allowed.settle(self.shape, before.clone())?;
        self.check_twins(&before)?;
        world.db.compact().map_err(describe)?;
        let problems = world.db.verify().map_err(describe)?.problems;
        if !problems.is_empty() {
            return fail(format!("verify finds {problems:?}"));
        }
        let mut after = look(&world)?;
        for place in (value::EXPIRING..after.len()).step_by(self.shape.keys) {
            // A value may have expired meanwhile.
            after[place] = after[place].or(before[place]);
        }
        if after != before {
            return fail("compaction changed the contents");
        }
        Ok(())
    }
}
