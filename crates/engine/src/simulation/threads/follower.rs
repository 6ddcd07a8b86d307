//! [`Follower`]: reads the log over the whole life of a database, while clients write to it, and keeps a copy.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::super::Failure;
use super::history::{Answer, Effect, State};
use super::value::{EXPIRING, FIRST_NUMBER, number_of, parse};
use super::world::{Stop, World, name, states};
use crate::{Durability, Error, LogChange, LogPosition, LogRecords, Snapshot};

/// See the module.
#[derive(Debug)]
pub(super) struct Follower {
    /// From where the log is read; `None` before the first copy.
    position: Option<LogPosition>,
    reader: Option<LogRecords>,
    /// The copy, by place.
    copy: Vec<State>,
    /// By keyspace: the position of the snapshot from which it was copied. Changes before it are in the copy.
    copied: Vec<LogPosition>,
    /// What the session's log said, by place and in its order.
    seen: Vec<(usize, State)>,
    rng: StdRng,
}

impl Follower {
    pub fn new(places: usize, keyspaces: usize, seed: u64) -> Self {
        Self {
            position: None,
            reader: None,
            copy: vec![None; places],
            copied: vec![LogPosition::default(); keyspaces],
            seen: Vec::new(),
            rng: StdRng::seed_from_u64(seed),
        }
    }

    /// Begins a session: catches up with what the opening found, which must be what `found` says.
    pub fn begin(&mut self, world: &World<'_>, found: &[State]) -> Result<(), Stop> {
        (self.reader, self.seen) = (None, Vec::new());
        self.follow(world)?;
        self.compare(world, found, "after an opening")
    }

    /// Follows the log until there are no more clients.
    pub fn run(&mut self, world: &World<'_>, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Relaxed) && !world.has_finding.load(Ordering::Relaxed) {
            match self.follow(world) {
                Ok(()) => {}
                Err(Stop::Expected) => return,
                Err(Stop::Finding(failure)) => return world.report(failure),
            }
            if self.rng.random_range(0..3) == 0 {
                self.reader = None;
            }
            alluvium_io::sync::thread::sleep(Duration::from_micros(self.rng.random_range(0..3_000)));
        }
    }

    /// Ends a session without faults: the copy must be what the database has.
    pub fn end(&mut self, world: &World<'_>) -> Result<(), Stop> {
        if world.has_faults || world.storage.is_crashed() {
            return Ok(());
        }
        let stop = |error: Error| world.stop(&error, "comparing with a follower");
        world.db.persist().map_err(stop)?;
        self.follow(world)?;
        self.check_order(world)?;
        let found = snapshot_states(world, &world.db.snapshot().map_err(stop)?)?;
        self.compare(world, &found, "at the end of a session")
    }

    /// Reads the log to its end.
    fn follow(&mut self, world: &World<'_>) -> Result<(), Stop> {
        loop {
            if self.reader.is_none() {
                let Some(position) = self.position else {
                    self.copy_all(world)?;
                    continue;
                };
                match world.db.log_records(position) {
                    Ok(reader) => self.reader = Some(reader),
                    Err(Error::LogPositionGone { .. }) if !world.shape.keeps_log() => {
                        self.position = None;
                        continue;
                    }
                    Err(error) => return Err(world.stop(&error, "reading the log from a position")),
                }
            }
            // A reader holds the log: from here on no position is gone.
            match self.reader.as_mut().and_then(Iterator::next) {
                None => return Ok(()),
                Some(Err(error)) => return Err(world.stop(&error, "following the log")),
                Some(Ok(record)) => {
                    if self.position.is_some_and(|position| record.next <= position) {
                        return Err(finding(format!("the log was read back to {}", record.next)));
                    }
                    for change in record.changes {
                        self.apply(world, record.next, change)?;
                    }
                    // Only now: a copy that a crash interrupts must begin again in the next session.
                    self.position = Some(record.next);
                }
            }
        }
    }

    fn apply(&mut self, world: &World<'_>, next: LogPosition, change: LogChange) -> Result<(), Stop> {
        let (keyspace, key, value) = match change {
            LogChange::Put { keyspace, key, value, .. } => (keyspace, key, Some(value)),
            LogChange::Remove { keyspace, key } => (keyspace, key, None),
            LogChange::Unlogged { keyspace } => {
                let number = self.number_of_keyspace(&keyspace)?;
                return if next <= self.copied[number] { Ok(()) } else { self.copy_keyspace(world, number) };
            }
            LogChange::RemoveLong { .. } => return Err(finding("the log removed a long key".to_owned())),
        };
        let number = self.number_of_keyspace(&keyspace)?;
        let state = parse(value.as_deref()).map_err(|reason| finding(format!("the log has {reason}")))?;
        let key = number_of(&key).filter(|&key| key < world.shape.keys);
        let key = key.ok_or_else(|| finding("the log has a key that was never written".to_owned()))?;
        let place = world.shape.place(number, key);
        self.seen.push((place, state));
        if next > self.copied[number] {
            self.copy[place] = state;
        }
        Ok(())
    }

    fn number_of_keyspace(&self, keyspace: &str) -> Result<usize, Stop> {
        let found = (0..self.copied.len()).find(|&number| name(number) == keyspace);
        found.ok_or_else(|| finding(format!("the log has a change of {keyspace}")))
    }

    /// Copies everything, and continues behind it.
    fn copy_all(&mut self, world: &World<'_>) -> Result<(), Stop> {
        let snapshot = world.db.snapshot();
        let snapshot = snapshot.map_err(|error| world.stop(&error, "copying a snapshot"))?;
        self.copy = durable_states(world, &snapshot)?;
        for (number, copied) in self.copied.iter_mut().enumerate() {
            let keyspace = snapshot.keyspace(&name(number));
            *copied = keyspace.map_or(snapshot.log_position(), |keyspace| keyspace.log_position());
        }
        self.position = Some(snapshot.log_position());
        Ok(())
    }

    fn copy_keyspace(&mut self, world: &World<'_>, number: usize) -> Result<(), Stop> {
        let snapshot = world.db.snapshot();
        let snapshot = snapshot.map_err(|error| world.stop(&error, "copying a keyspace"))?;
        let found = durable_states(world, &snapshot)?;
        let places = world.shape.place(number, 0)..world.shape.place(number + 1, 0);
        self.copy[places.clone()].copy_from_slice(&found[places]);
        let keyspace = snapshot.keyspace(&name(number));
        self.copied[number] = keyspace.map_or(snapshot.log_position(), |keyspace| keyspace.log_position());
        Ok(())
    }

    fn compare(&self, world: &World<'_>, found: &[State], when: &str) -> Result<(), Stop> {
        let keys = world.shape.keys;
        let differs = |place: &usize| place % keys != EXPIRING && self.copy[*place] != found[*place];
        match (0..found.len()).find(differs) {
            None => Ok(()),
            Some(place) => Err(finding(format!(
                "{when} a copy that follows the log has {:?} for key {} of keyspace {}, the database {:?}",
                self.copy[place],
                place % keys,
                place / keys,
                found[place],
            ))),
        }
    }

    /// Checks that a write that began after another had returned follows it in the log.
    fn check_order(&self, world: &World<'_>) -> Result<(), Stop> {
        for place in 0..self.copy.len() {
            let first = |state: State| self.seen.iter().position(|&seen| seen == (place, state));
            let operations = world.history.of(place);
            let sets = operations.iter().filter(|operation| operation.answer == Answer::Done);
            let sets: Vec<_> = sets
                .filter_map(|operation| match operation.effect {
                    Effect::Set(Some(number)) if number >= FIRST_NUMBER => {
                        Some((operation, first(Some(number))?))
                    }
                    _ => None,
                })
                .collect();
            for (one, seen_one) in &sets {
                let later = sets.iter().find(|(later, seen)| later.call > one.ret && seen < seen_one);
                if let Some((later, _)) = later {
                    return Err(finding(format!("the log has {:?} before {:?}", later.effect, one.effect)));
                }
            }
        }
        Ok(())
    }
}

impl super::world::Shape {
    /// Whether all log is kept that a follower has seen: then no position is ever gone.
    fn keeps_log(&self) -> bool {
        let is_durable = !matches!(self.durability, Durability::Buffered | Durability::Process);
        self.log_retention_bytes > 1 << 20 && is_durable
    }
}

/// What the snapshot has, which no crash takes any more when this returns: unlike the log, a snapshot shows changes
/// that are not durable yet (decision 0054).
fn durable_states(world: &World<'_>, snapshot: &Snapshot) -> Result<Vec<State>, Stop> {
    let found = snapshot_states(world, snapshot)?;
    world.db.persist().map_err(|error| world.stop(&error, "making a copied snapshot durable"))?;
    Ok(found)
}

fn snapshot_states(world: &World<'_>, snapshot: &Snapshot) -> Result<Vec<State>, Stop> {
    let mut found = Vec::new();
    for number in 0..world.shape.keyspaces.len() {
        let items = snapshot.keyspace(&name(number)).map(|keyspace| keyspace.iter().collect());
        let items: Result<Vec<_>, Error> = items.unwrap_or_else(|| Ok(Vec::new()));
        let items = items.map_err(|error| world.stop(&error, "copying a keyspace"))?;
        found.extend(states(world.shape.keys, items)?);
    }
    Ok(found)
}

fn finding(reason: String) -> Stop {
    Stop::Finding(Failure { reason })
}
