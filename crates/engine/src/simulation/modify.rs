//! Writes in the simulation that depend on present values: numbers, appended bytes, and batches with conditions.

use rand::RngExt;

use super::Failure;
use super::faults::Stop;
use super::model::{Name, Step, Value};
use super::session::Session;
use super::writes::lasting;
use crate::{Condition, Db, Error, Keyspace};

impl Session<'_> {
    /// Increments a value, number or not, or appends to it.
    pub(super) fn accumulate(&mut self, keyspaces: &[Keyspace]) -> Result<(), Stop> {
        let name = self.name();
        if self.rng.random() { self.increment(keyspaces, name) } else { self.append(keyspaces, name) }
    }

    fn increment(&mut self, keyspaces: &[Keyspace], name: Name) -> Result<(), Stop> {
        let by = self.rng.random_range(-9..10);
        let before = self.model.item(&name).cloned().unwrap_or_else(|| lasting(&[0; 8]));
        let number = before.bytes.as_slice().try_into().ok().map(i64::from_le_bytes);
        let Some(sum) = number.and_then(|number| number.checked_add(by)) else {
            return match keyspaces[name.0].increment(&name.1, by) {
                Err(Error::NotANumber { .. } | Error::NumberOverflow { .. }) => Ok(()),
                Err(error) => Err(self.stop(&error, "incrementing what is no number")),
                Ok(sum) => Err(Failure { reason: format!("what is no number became {sum}") }.into()),
            };
        };
        let value = Value { bytes: sum.to_le_bytes().to_vec(), ..before };
        let mut answer = None;
        self.write(Step::Write(vec![(name.clone(), Some(value))]), "incrementing", || {
            answer = Some(keyspaces[name.0].increment(&name.1, by)?);
            Ok(())
        })?;
        if answer == Some(sum) {
            return Ok(());
        }
        Err(Failure { reason: format!("an increment answered {answer:?}, not {sum}") }.into())
    }

    fn append(&mut self, keyspaces: &[Keyspace], name: Name) -> Result<(), Stop> {
        let mut value = self.model.item(&name).cloned().unwrap_or_else(|| lasting(&[]));
        let mut bytes = self.value();
        // So that values to which bytes are appended repeatedly do not grow forever.
        bytes.truncate(self.shape.value_bytes_max.saturating_sub(value.bytes.len()));
        value.bytes.extend_from_slice(&bytes);
        let len = value.bytes.len();
        let mut answer = None;
        self.write(Step::Write(vec![(name.clone(), Some(value))]), "appending", || {
            answer = Some(keyspaces[name.0].append(&name.1, &bytes)?);
            Ok(())
        })?;
        if answer == Some(len) {
            return Ok(());
        }
        Err(Failure { reason: format!("an append answered {answer:?}, not {len}") }.into())
    }

    /// Commits a batch with conditions, some of which may fail. The first failed one must be reported, and nothing
    /// written.
    pub(super) fn conditional_batch(&mut self, db: &Db, keyspaces: &[Keyspace]) -> Result<(), Stop> {
        let mut batch = db.batch();
        let mut failing = None;
        for number in 0..self.rng.random_range(1..4) {
            let name = self.name();
            let keyspace = &keyspaces[name.0];
            let present = self.model.get(&name).cloned();
            let (condition, holds) = match self.rng.random_range(0..4) {
                0 => (Condition::Absent, present.is_none()),
                1 => (Condition::Present, present.is_some()),
                2 => {
                    let other = self.value();
                    let value = present.clone().filter(|_| self.rng.random_range(0..4) > 0).unwrap_or(other);
                    (Condition::Value(value.clone()), present.as_ref() == Some(&value))
                }
                _ => {
                    let read = keyspace.get_with_version(&name.1);
                    let version = read.map_err(|error| self.stop(&error, "getting a version"))?.version;
                    (Condition::Unchanged(version), true)
                }
            };
            if !holds && failing.is_none() {
                failing = Some(number);
            }
            batch.require(keyspace, name.1, condition);
        }
        let mut writes = Vec::new();
        for _ in 0..self.rng.random_range(0..4) {
            let (name, value) = (self.name(), self.value());
            batch.insert(&keyspaces[name.0], name.1.clone(), value.clone());
            writes.push((name, Some(lasting(&value))));
        }
        let Some(failing) = failing else {
            return self.write(Step::Write(writes), "committing with conditions", || batch.commit());
        };
        match batch.commit() {
            Err(Error::ConditionFailed(failed)) if failed.number == failing => Ok(()),
            Err(Error::ConditionFailed(failed)) => {
                let reason = format!("condition {} failed, not {failing}", failed.number);
                Err(Failure { reason }.into())
            }
            Err(error) => Err(self.stop(&error, "committing with a condition that fails")),
            Ok(()) => Err(Failure { reason: "a batch was written against a condition".to_owned() }.into()),
        }
    }
}
