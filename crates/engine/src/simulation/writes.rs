//! Writes in the simulation: the model contains each of them, whether acknowledged or not.

use std::io::Read;

use alluvium_base::checksum::checksum64;
use rand::RngExt;

use super::Failure;
use super::faults::Stop;
use super::model::{Name, Step, Value};
use super::session::Session;
use crate::blob::StoredKey;
use crate::{Db, Durability, Error, Keyspace, Metadata, Update};

impl Session<'_> {
    /// Records that a write was acknowledged.
    fn acknowledged(&mut self) {
        match self.durability {
            Durability::Sync => self.model.set_durable(),
            Durability::Process => self.model.keep(),
            Durability::Buffered | Durability::Interval(_) => {}
        }
    }

    /// Performs one step of a user. The model contains it, whether acknowledged or not.
    pub(super) fn write(
        &mut self,
        step: Step,
        doing: &str,
        perform: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Stop> {
        self.model.apply(step);
        match perform() {
            Ok(()) => {
                self.acknowledged();
                Ok(())
            }
            Err(error) => Err(self.stop(&error, doing)),
        }
    }

    pub(super) fn insert(&mut self, keyspaces: &[Keyspace]) -> Result<(), Stop> {
        let (name, value) = (self.name(), self.expiring_value());
        let step = Step::Write(vec![(name.clone(), Some(value.clone()))]);
        let metadata = Metadata { expires_at_ms: value.expires_at_ms, flags: 0 };
        self.write(step, "inserting", || keyspaces[name.0].insert_with(&name.1, &value.bytes, metadata))
    }

    /// Inserts from a stream, which ends early one time in four.
    pub(super) fn insert_stream(&mut self, keyspaces: &[Keyspace]) -> Result<(), Stop> {
        let (name, value) = (self.name(), self.value());
        let keyspace = &keyspaces[name.0];
        if self.rng.random_range(0..4) == 0 {
            return match keyspace.insert_reader(&name.1, value.len() + 1, &value[..], Metadata::default()) {
                Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::UnexpectedEof => Ok(()),
                Err(error) => Err(self.stop(&error, "inserting from a stream")),
                Ok(()) => Err(Failure { reason: "a stream that ended early was stored".to_owned() }.into()),
            };
        }
        let step = Step::Write(vec![(name.clone(), Some(lasting(&value)))]);
        self.write(step, "inserting from a stream", || {
            keyspace.insert_reader(&name.1, value.len(), &value[..], Metadata::default())
        })
    }

    /// Reads a value as a stream.
    pub(super) fn check_stream(&mut self, keyspaces: &[Keyspace]) -> Result<(), Stop> {
        let name = self.name();
        let expected = self.model.get(&name).cloned();
        let reader = keyspaces[name.0].get_reader(&name.1);
        let reader = reader.map_err(|error| self.stop(&error, "getting a stream"))?;
        let found = reader.map(|mut reader| {
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes).map(|_| bytes)
        });
        let found = found.transpose().map_err(|source| match source.downcast::<Error>() {
            Ok(error) => self.stop(&error, "reading a stream"),
            Err(source) => {
                self.stop(&Error::Io { context: "reading".to_owned(), source }, "reading a stream")
            }
        })?;
        self.compare(&name, expected, found, "stream")
    }

    pub(super) fn remove(&mut self, keyspaces: &[Keyspace]) -> Result<(), Stop> {
        let name = self.name();
        self.write(Step::Write(vec![(name.clone(), None)]), "removing", || keyspaces[name.0].remove(&name.1))
    }

    pub(super) fn update(&mut self, keyspaces: &[Keyspace]) -> Result<(), Stop> {
        let (name, value) = (self.name(), self.value());
        let expected = self.model.get(&name).cloned();
        let mut before = None;
        let step = Step::Write(vec![(name.clone(), Some(lasting(&value)))]);
        self.write(step, "updating", || {
            before = keyspaces[name.0].update(&name.1, |_| Update::Insert(value.clone()))?;
            Ok(())
        })?;
        self.compare(&name, expected, before, "update")
    }

    pub(super) fn compare_and_swap(&mut self, keyspaces: &[Keyspace]) -> Result<(), Stop> {
        let (name, value) = (self.name(), self.value());
        let current = self.model.get(&name).cloned();
        let expected = if self.rng.random() { current.clone() } else { Some(self.value()) };
        let matches = expected == current;
        let writes = if matches { vec![(name.clone(), Some(lasting(&value)))] } else { Vec::new() };
        let mut swapped = None;
        self.write(Step::Write(writes), "swapping", || {
            swapped = Some(keyspaces[name.0].compare_and_swap(&name.1, expected.as_deref(), Some(&value))?);
            Ok(())
        })?;
        if swapped != Some(matches) {
            return Err(
                Failure { reason: format!("compare_and_swap said {swapped:?}, not {matches}") }.into()
            );
        }
        Ok(())
    }

    pub(super) fn batch(&mut self, db: &Db, keyspaces: &[Keyspace]) -> Result<(), Stop> {
        let mut batch = db.batch();
        let mut writes = Vec::new();
        for _ in 0..self.rng.random_range(1..12) {
            let name = self.name();
            let value = if self.rng.random_range(0..4) == 0 { None } else { Some(self.value()) };
            match &value {
                Some(value) => batch.insert(&keyspaces[name.0], name.1.clone(), value.clone()),
                None => batch.remove(&keyspaces[name.0], name.1.clone()),
            }
            writes.push((name, value.as_deref().map(lasting)));
        }
        self.write(Step::Write(writes), "committing a batch", || batch.commit())
    }

    /// Computes values of some keys from those of others, and removes the targets of absent ones.
    pub(super) fn transaction(&mut self, db: &Db, keyspaces: &[Keyspace]) -> Result<(), Stop> {
        let pairs: Vec<_> = (0..self.rng.random_range(1..4)).map(|_| (self.name(), self.name())).collect();
        let mut writes: Vec<(Name, Option<Value>)> = Vec::new();
        for (from, to) in &pairs {
            let written = writes.iter().rev().find(|(name, _)| name == from);
            let value = match written {
                Some((_, value)) => value.as_ref().map(|value| &value.bytes),
                None => self.model.get(from),
            };
            let value = value.map(|bytes| lasting(&derived(bytes)));
            writes.push((to.clone(), value));
        }
        self.write(Step::Write(writes), "committing a transaction", || {
            db.transaction(|transaction| {
                for (from, to) in &pairs {
                    match transaction.get(&keyspaces[from.0], &from.1)? {
                        Some(value) => transaction.insert(&keyspaces[to.0], to.1.clone(), derived(&value)),
                        None => transaction.remove(&keyspaces[to.0], to.1.clone()),
                    }
                }
                Ok(())
            })
        })
    }

    /// Ingests items, few or many in relation to those present. They become visible in the order of the leading bits of
    /// their hashes; with equal bits in the order in which they arrived, or at once.
    pub(super) fn ingest(&mut self, keyspaces: &[Keyspace]) -> Result<(), Stop> {
        let number = self.rng.random_range(0..keyspaces.len());
        let keyspace = &keyspaces[number];
        let count = *[3, 30, 300].get(self.rng.random_range(0..3)).expect("in range");
        let items: Vec<(Name, Value)> =
            (0..count).map(|_| (self.name_in(Some(number)), self.expiring_value())).collect();
        let mut ingest = keyspace.ingest().map_err(|error| self.stop(&error, "starting an ingest"))?;
        for ((_, key), value) in &items {
            let metadata = Metadata { expires_at_ms: value.expires_at_ms, flags: 0 };
            let pushed = ingest.insert_with(key, &value.bytes, metadata);
            pushed.map_err(|error| self.stop(&error, "adding to an ingest"))?;
        }
        let mut steps = items;
        let bits = ingest.part_bits();
        let hasher = keyspace.shared.hasher;
        let place = |key: &[u8]| hasher.hash(&StoredKey::of(key)).0.checked_shr(128 - bits).unwrap_or(0);
        steps.sort_by_key(|((_, key), _)| place(key));
        for (name, value) in steps {
            self.model.apply(Step::Write(vec![(name, Some(value))]));
        }
        match ingest.finish() {
            Ok(_) => {
                self.model.set_durable();
                Ok(())
            }
            Err(error) => Err(self.stop(&error, "ingesting")),
        }
    }

    /// Empties a keyspace, or drops it and creates another with its name.
    pub(super) fn clear(&mut self, db: &Db, keyspaces: &mut [Keyspace]) -> Result<(), Stop> {
        let number = self.rng.random_range(0..keyspaces.len());
        let (keyspace, options) = (&mut keyspaces[number], self.shape.options(number));
        if self.rng.random() {
            self.write(Step::Clear(number), "clearing", || keyspace.clear())?;
        } else {
            self.write(Step::Clear(number), "dropping a keyspace", || {
                let name = keyspace.name().to_owned();
                let dropped = db.drop_keyspace(&name)?;
                assert!(dropped && matches!(keyspace.get("key"), Err(Error::KeyspaceDropped { .. })));
                *keyspace = db.keyspace_with(&name, &options)?;
                Ok(())
            })?;
        }
        self.model.set_durable();
        Ok(())
    }
}

/// A value that identifies the value from which it was made.
fn derived(bytes: &[u8]) -> [u8; 8] {
    checksum64(bytes, 0).to_le_bytes()
}

/// A value that never expires.
pub(super) fn lasting(bytes: &[u8]) -> Value {
    Value { bytes: bytes.to_vec(), expires_at_ms: None }
}
