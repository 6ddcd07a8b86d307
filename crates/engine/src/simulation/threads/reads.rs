//! Reads of many items at once: iteration, snapshots and checkpoints.

use std::sync::Arc;

use alluvium_io::SimulatedStorage;
use rand::RngExt;

use super::super::Failure;
use super::client::{Client, Touch};
use super::history::{Answer, Effect, State};
use super::open::open;
use super::value::{EXPIRING, PREFIXES, TWINS};
use super::world::{Stop, name, states};
use crate::{Error, Snapshot};

impl Client<'_, '_> {
    fn all_reads(&self) -> Vec<Touch> {
        let shape = self.world.shape;
        let places = (0..shape.places()).map(|place| (place / shape.keys, place % shape.keys));
        places.map(|(keyspace, number)| (keyspace, number, Effect::Read)).collect()
    }

    pub(super) fn iterate(&mut self) -> Result<(), Stop> {
        let keyspace = self.rng.random_range(0..self.keyspaces.len());
        let keys = self.world.shape.keys;
        let touches: Vec<Touch> = (0..keys).map(|number| (keyspace, number, Effect::Read)).collect();
        let by_prefix = self.world.shape.keyspaces[keyspace] && self.rng.random();
        // Twins in one keyspace have one prefix, whose scan sees batches as a whole.
        let sees_batches = by_prefix && self.world.shape.twin_of(keyspace) == keyspace;
        let mut finding = None;
        let read = |client: &mut Self| -> Result<Vec<State>, Error> {
            let keyspace = &client.keyspaces[keyspace];
            let mut items = Vec::new();
            if by_prefix {
                for number in 1..=PREFIXES {
                    for item in keyspace.scan_prefix(super::value::prefix(number))? {
                        items.push(item?);
                    }
                }
            } else {
                for item in keyspace.iter() {
                    items.push(item?);
                }
            }
            let found = states(keys, items).unwrap_or_else(|failure| {
                finding = Some(failure);
                vec![None; keys]
            });
            let [one, other] = TWINS.map(|number| found[number]);
            if sees_batches && one != other {
                let reason =
                    format!("a scan of a prefix found {one:?} and {other:?} of keys written together");
                finding = Some(Failure { reason });
            }
            Ok(found)
        };
        let doing = if by_prefix { "scan of prefixes" } else { "iteration" };
        let outcome = self.perform(doing, &touches, read, |found, place| Ok(Answer::Saw(found[place])));
        match finding {
            Some(failure) => Err(failure.into()),
            None => outcome.map(drop),
        }
    }

    /// Takes a snapshot and reads it. All values must be those of one moment while it was taken.
    pub(super) fn snapshot(&mut self) -> Result<(), Stop> {
        let touches = self.all_reads();
        let world = self.world;
        // The moment is that of taking it; its content is read afterwards.
        let begin = world.history.tick();
        let snapshot = world.db.snapshot().map_err(|error| world.stop(&error, "taking a snapshot"))?;
        let end = world.history.tick();
        if self.rng.random() {
            self.pause()?;
        }
        let mut found: Vec<State> = Vec::new();
        for number in 0..world.shape.keyspaces.len() {
            found.extend(self.read_snapshot(&snapshot, number)?);
        }
        for (place, (keyspace, number, _)) in touches.into_iter().enumerate() {
            self.note_read("snapshot", (keyspace, number), (begin, end), found[place]);
        }
        self.check_twins("a snapshot", &found)
    }

    fn read_snapshot(&mut self, snapshot: &Snapshot, number: usize) -> Result<Vec<State>, Stop> {
        let keys = self.world.shape.keys;
        let Some(keyspace) = snapshot.keyspace(&name(number)) else { return Ok(vec![None; keys]) };
        if self.rng.random() {
            let items: Result<Vec<_>, Error> = keyspace.iter().collect();
            let items = items.map_err(|error| self.world.stop(&error, "iterating over a snapshot"))?;
            return Ok(states(keys, items)?);
        }
        let mut found = Vec::new();
        for key in 0..keys {
            let value = keyspace.get(self.key(number, key));
            let value = value.map_err(|error| self.world.stop(&error, "getting from a snapshot"))?;
            let state = super::value::parse(value.as_deref());
            found.push(state.map_err(|reason| Failure { reason: format!("a snapshot holds {reason}") })?);
        }
        Ok(found)
    }

    /// Checks that keys which are always written together have equal values in a state of one moment.
    fn check_twins(&self, what: &str, found: &[State]) -> Result<(), Stop> {
        let shape = self.world.shape;
        for keyspace in 0..shape.keyspaces.len() {
            let [one, other] =
                self.twins(keyspace).map(|(keyspace, number)| found[shape.place(keyspace, number)]);
            if one != other {
                let reason = format!(
                    "{what} holds {one:?} and {other:?} of two keys that are always written together"
                );
                return Err(Failure { reason }.into());
            }
        }
        Ok(())
    }

    /// Makes a checkpoint, cuts its power, opens it, and reads it.
    pub(super) fn checkpoint(&mut self) -> Result<(), Stop> {
        let world = self.world;
        let copy = SimulatedStorage::new(self.rng.random());
        let begin = world.history.tick();
        let made = world.db.checkpoint_into(Arc::new(copy.clone()));
        made.map_err(|error| world.stop(&error, "making a checkpoint"))?;
        let end = world.history.tick();
        copy.crash();
        let failure = |error: Error| Failure { reason: format!("opening a checkpoint: {error}") };
        let copied =
            open(world.shape, &copy.reopen(), &world.clock, 0, Default::default(), false).map_err(failure)?;
        let mut found = Vec::new();
        let names = copied.keyspace_names();
        for number in 0..world.shape.keyspaces.len() {
            if !names.contains(&name(number)) {
                found.extend(vec![None; world.shape.keys]);
                continue;
            }
            let keyspace =
                copied.keyspace_with(&name(number), &world.shape.options(number)).map_err(failure)?;
            let items: Result<Vec<_>, Error> = keyspace.iter().collect();
            found.extend(states(world.shape.keys, items.map_err(failure)?)?);
        }
        let problems = copied.verify().map_err(failure)?.problems;
        if !problems.is_empty() {
            return Err(Failure { reason: format!("verify finds in a checkpoint: {problems:?}") }.into());
        }
        for (place, (keyspace, number, _)) in self.all_reads().into_iter().enumerate() {
            // Whether a value has expired depends on when the checkpoint was opened.
            if number != EXPIRING {
                self.note_read("checkpoint", (keyspace, number), (begin, end), found[place]);
            }
        }
        self.check_twins("a checkpoint", &found)
    }
}
