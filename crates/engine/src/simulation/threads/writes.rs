//! Writes of clients that depend on present values, or that change several keys.

use rand::RngExt;

use super::super::Failure;
use super::client::{Client, Touch, saw};
use super::history::{Answer, Effect};
use super::value::{COUNTER, PREFIXES, TWINS, parse, prefix, value};
use super::world::{Stop, name};
use crate::{Condition, Error, Update};

impl Client<'_, '_> {
    /// Writes the twins, with the same value, and sometimes other keys.
    pub(super) fn batch(&mut self) -> Result<(), Stop> {
        let ((keyspace, number), new) = (self.place(), self.world.number());
        let state = (self.rng.random_range(0..5) > 0).then_some(new);
        let mut touches: Vec<Touch> = self.twins(keyspace).map(|(k, n)| (k, n, Effect::Set(state))).to_vec();
        if self.rng.random() {
            touches.push((keyspace, number, Effect::Set(Some(self.world.number()))));
        }
        let writes = touches.clone();
        self.perform(
            "batch",
            &touches,
            |client| {
                let mut batch = client.world.db.batch();
                for (keyspace, number, effect) in writes {
                    let key = client.key(keyspace, number);
                    match effect {
                        Effect::Set(Some(new)) => batch.insert(&client.keyspaces[keyspace], key, value(new)),
                        _ => batch.remove(&client.keyspaces[keyspace], key),
                    }
                }
                batch.commit()
            },
            |(), _| Ok(Answer::Done),
        )?;
        Ok(())
    }

    /// Two keys that always have the same value.
    pub(super) fn twins(&self, keyspace: usize) -> [(usize, usize); 2] {
        [(keyspace, TWINS[0]), (self.world.shape.twin_of(keyspace), TWINS[1])]
    }

    pub(super) fn update(&mut self) -> Result<(), Stop> {
        let ((keyspace, number), new) = (self.place(), self.world.number());
        let key = self.key(keyspace, number);
        self.perform(
            "update",
            &[(keyspace, number, Effect::Set(Some(new)))],
            |client| client.keyspaces[keyspace].update(&key, |_| Update::Insert(value(new))),
            |before, _| saw(before.as_deref()),
        )?;
        Ok(())
    }

    pub(super) fn increment(&mut self) -> Result<(), Stop> {
        let keyspace = self.rng.random_range(0..self.keyspaces.len());
        let by = 1 + self.rng.random_range(0..1_000);
        let key = self.key(keyspace, COUNTER);
        self.perform(
            "increment",
            &[(keyspace, COUNTER, Effect::Add(by))],
            |client| client.keyspaces[keyspace].increment(&key, by),
            |sum, _| Ok(Answer::Sum(*sum)),
        )?;
        Ok(())
    }

    /// Reads a value, and replaces it if it is unchanged.
    pub(super) fn swap(&mut self) -> Result<(), Stop> {
        let ((keyspace, number), new) = (self.place(), self.world.number());
        let key = self.key(keyspace, number);
        let touch = (keyspace, number, Effect::Read);
        let read = |client: &mut Self| client.keyspaces[keyspace].get(&key);
        let Some(found) = self.perform("get", &[touch], read, |found, _| saw(found.as_deref()))? else {
            return Ok(());
        };
        let expected = parse(found.as_deref()).map_err(|reason| Failure { reason })?;
        let effect = Effect::Swap { expected, new: Some(new) };
        self.perform(
            "compare_and_swap",
            &[(keyspace, number, effect)],
            |client| client.keyspaces[keyspace].compare_and_swap(&key, found.as_deref(), Some(&value(new))),
            |swapped, _| Ok(Answer::Swapped(*swapped)),
        )?;
        Ok(())
    }

    /// Reads both twins, which must be equal, and gives both another value; or moves a value from one key to another.
    pub(super) fn transaction(&mut self) -> Result<(), Stop> {
        let ((keyspace, from), (_, to), new) = (self.place(), self.place(), self.world.number());
        let places = if self.rng.random() || from == to {
            self.twins(keyspace)
        } else {
            [(keyspace, from), (keyspace, to)]
        };
        let touches = places.map(|(keyspace, number)| (keyspace, number, Effect::Set(Some(new))));
        let found = self.perform(
            "transaction",
            &touches,
            |client| {
                client.world.db.transaction(|transaction| {
                    let mut found = Vec::new();
                    for (keyspace, number) in places {
                        let key = client.world.shape.key(keyspace, number);
                        found.push(transaction.get(&client.keyspaces[keyspace], &key)?);
                        transaction.insert(&client.keyspaces[keyspace], key, value(new));
                    }
                    Ok(found)
                })
            },
            |found, place| saw(found[place].as_deref()),
        )?;
        match found {
            Some(found) if places[0].1 == TWINS[0] && found[0] != found[1] => {
                let reason = format!(
                    "a transaction saw {:?} and {:?} of two keys that are always written together",
                    parse(found[0].as_deref()),
                    parse(found[1].as_deref())
                );
                Err(Failure { reason }.into())
            }
            _ => Ok(()),
        }
    }

    /// Writes one key if another key, or the same one, is unchanged.
    pub(super) fn conditional_batch(&mut self) -> Result<(), Stop> {
        let ((keyspace, guarded), (other, written), new) = (self.place(), self.place(), self.world.number());
        let key = self.key(keyspace, guarded);
        let touch = (keyspace, guarded, Effect::Read);
        let read = |client: &mut Self| client.keyspaces[keyspace].get(&key);
        let Some(found) = self.perform("get", &[touch], read, |found, _| saw(found.as_deref()))? else {
            return Ok(());
        };
        let state = parse(found.as_deref()).map_err(|reason| Failure { reason })?;
        let condition = match &found {
            None => Condition::Absent,
            Some(_) if self.rng.random_range(0..4) == 0 => Condition::Present,
            Some(found) => Condition::Value(found.clone()),
        };
        let is_presence = condition == Condition::Present;
        let is_same = (keyspace, guarded) == (other, written);
        let call = |client: &mut Self| {
            let mut batch = client.world.db.batch();
            batch.require(&client.keyspaces[keyspace], key.clone(), condition);
            batch.insert(&client.keyspaces[other], client.key(other, written), value(new));
            match batch.commit() {
                Ok(()) => Ok(true),
                Err(Error::ConditionFailed(_)) => Ok(false),
                Err(error) => Err(error),
            }
        };
        if is_same && !is_presence {
            // One key: the condition and the write are at one moment.
            let touch = (keyspace, guarded, Effect::Swap { expected: state, new: Some(new) });
            self.perform("conditional batch", &[touch], call, |&done, _| Ok(Answer::Swapped(done)))?;
            return Ok(());
        }
        let touches = [touch, (other, written, Effect::Set(Some(new)))];
        self.perform("conditional batch", &touches, call, |&done, place| {
            Ok(match (place, done) {
                (0, true) if is_presence => Answer::Present(true),
                (0, false) if is_presence => Answer::Present(false),
                (0, true) => Answer::Saw(state),
                (0, false) => Answer::Missed(state),
                (_, true) => Answer::Done,
                (_, false) => Answer::Refused,
            })
        })?;
        Ok(())
    }

    /// All keys of a keyspace that satisfy `is_meant`, with the effect of becoming absent.
    fn emptied(&self, keyspace: usize, is_meant: impl Fn(usize) -> bool) -> Vec<Touch> {
        let numbers = (0..self.world.shape.keys).filter(|&number| is_meant(number));
        numbers.map(|number| (keyspace, number, Effect::Set(None))).collect()
    }

    pub(super) fn clear(&mut self) -> Result<(), Stop> {
        let keyspace = self.rng.random_range(0..self.keyspaces.len());
        let touches = self.emptied(keyspace, |_| true);
        let call = self.world.history.tick();
        let clear = |client: &mut Self| client.keyspaces[keyspace].clear();
        if self.perform("clear", &touches, clear, |(), _| Ok(Answer::Done))?.is_some() {
            self.world.history.persisted(call, "clear");
        }
        Ok(())
    }

    /// Drops a keyspace and creates another with its name.
    pub(super) fn drop_keyspace(&mut self) -> Result<(), Stop> {
        let keyspace = self.rng.random_range(0..self.keyspaces.len());
        let touches = self.emptied(keyspace, |_| true);
        let drop_it = |client: &mut Self| client.world.db.drop_keyspace(&name(keyspace));
        let answer = |dropped: &bool| if *dropped { Answer::Done } else { Answer::Unknown };
        self.perform("drop", &touches, drop_it, |dropped, _| Ok(answer(dropped)))?;
        self.reopen_keyspaces()
    }

    pub(super) fn delete_prefix(&mut self) -> Result<(), Stop> {
        let keyspace = self.rng.random_range(0..self.keyspaces.len());
        if !self.world.shape.keyspaces[keyspace] {
            return Ok(());
        }
        let chosen = prefix(self.rng.random_range(1..=PREFIXES));
        let touches = self.emptied(keyspace, |number| prefix(number) == chosen);
        let delete = |client: &mut Self| client.keyspaces[keyspace].delete_prefix(&chosen);
        self.perform("delete_prefix", &touches, delete, |(), _| Ok(Answer::Done))?;
        Ok(())
    }

    /// Ingests some keys, except twins.
    pub(super) fn ingest(&mut self) -> Result<(), Stop> {
        let keyspace = self.rng.random_range(0..self.keyspaces.len());
        let mut touches: Vec<Touch> = Vec::new();
        for number in COUNTER..self.world.shape.keys {
            if self.rng.random_range(0..3) > 0 {
                let new =
                    if number == COUNTER { self.rng.random_range(0..1_000) } else { self.world.number() };
                touches.push((keyspace, number, Effect::Set(Some(new))));
            }
        }
        let world = self.world;
        let mut ingest = match self.keyspaces[keyspace].ingest() {
            Ok(ingest) => ingest,
            Err(Error::KeyspaceDropped { .. }) => return self.reopen_keyspaces(),
            Err(error) => return Err(world.stop(&error, "starting an ingest")),
        };
        for &(keyspace, number, effect) in &touches {
            let Effect::Set(Some(new)) = effect else { unreachable!("made above") };
            let pushed = ingest.insert(self.key(keyspace, number), value(new));
            pushed.map_err(|error| world.stop(&error, "adding to an ingest"))?;
        }
        let call = world.history.tick();
        let is_done =
            self.perform("ingest", &touches, |_| ingest.finish(), |_, _| Ok(Answer::Done))?.is_some();
        // An ingest without items does nothing.
        if is_done && !touches.is_empty() {
            world.history.persisted(call, "ingest");
        }
        Ok(())
    }
}
