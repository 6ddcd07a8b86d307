//! A writer's operations on the keys that it owns.

use alluvium::{Condition, Error, Metadata, Update};

use super::context::Stop;
use super::key::{FLEETING, Key, OWN, Outcome, PREFIXES, Role, Seen, all_keys, is_semi_sorted, prefix_name};
use super::writer::{Done, Planned, Writer};
use rand::RngExt;

/// Minimum bytes of a value that may be written as a stream.
const STREAM_BYTES_MIN: usize = 50_000;
/// Bytes at which one of its own lists starts again.
const LIST_BYTES_MAX: usize = 3_000;

impl Writer {
    pub fn insert(&mut self) -> Result<(), Stop> {
        let key = self.any_key();
        let (bytes, value) = (self.bytes_of(key), self.fresh_value(key));
        let expires_at_ms = match self.rng.random_range(0..20) {
            _ if !self.context.has("expiry") => 0,
            0 => self.context.board.watch.now_ms() + self.rng.random_range(0..300),
            1 => self.context.board.watch.now_ms() + 3_600_000,
            _ => 0,
        };
        let outcome = Outcome::Value { writer: self.id, op: self.next_op, expires_at_ms };
        let metadata = Metadata { flags: 0, expires_at_ms: (expires_at_ms > 0).then_some(expires_at_ms) };
        let streams = value.len() >= STREAM_BYTES_MIN && self.rng.random();
        self.perform(Planned::of(vec![(key, outcome)]), "inserting", |context| {
            let space = context.space(key.space);
            match streams {
                true => space.insert_reader(bytes, value.len(), &value[..], metadata)?,
                false => space.insert_with(bytes, value, metadata)?,
            }
            Ok(Some(Done::default()))
        })
    }

    pub fn remove(&mut self) -> Result<(), Stop> {
        let key = match self.rng.random_range(0..30) {
            0 => self.own_key(Role::Counter),
            1 => self.own_key(Role::List),
            _ => self.any_key(),
        };
        let bytes = self.bytes_of(key);
        self.perform(Planned::of(vec![(key, Outcome::Absent)]), "removing", |context| {
            context.space(key.space).remove(bytes)?;
            Ok(Some(Done::default()))
        })
    }

    /// Writes to several keyspaces, including its twins in half of the cases.
    fn batch_effects(&mut self) -> Vec<(Key, Outcome)> {
        let count = self.rng.random_range(1..12);
        let keys = self.different_keys(count);
        let mut effects = Vec::new();
        for key in keys {
            let outcome = if self.rng.random_range(0..4) == 0 { Outcome::Absent } else { self.fresh() };
            effects.push((key, outcome));
        }
        if self.rng.random() {
            effects.extend(self.twins());
        }
        effects
    }

    /// The bytes of keys and values to write.
    fn encoded(&self, effects: &[(Key, Outcome)]) -> Vec<(Key, Vec<u8>, Option<Vec<u8>>)> {
        let value = |key, outcome: &Outcome| match outcome {
            Outcome::Absent => None,
            Outcome::Raw(bytes) => Some(bytes.clone()),
            Outcome::Value { .. } => Some(self.fresh_value(key)),
        };
        effects.iter().map(|(key, outcome)| (*key, self.bytes_of(*key), value(*key, outcome))).collect()
    }

    pub fn write_batch(&mut self) -> Result<(), Stop> {
        let effects = self.batch_effects();
        let writes = self.encoded(&effects);
        self.perform(Planned::of(effects), "writing a batch", |context| {
            let mut batch = context.db.batch();
            for (key, bytes, value) in writes {
                let space = context.space(key.space);
                match value {
                    Some(value) => batch.insert(&space, bytes, value),
                    None => batch.remove(&space, bytes),
                }
            }
            batch.commit()?;
            Ok(Some(Done::default()))
        })
    }

    /// A batch with a condition on one of its own keys, which holds or not.
    pub fn write_conditional_batch(&mut self) -> Result<(), Stop> {
        let guarded = self.own_key(Role::Value);
        let lived = self.lived(guarded).outcome;
        if matches!(lived, Outcome::Value { expires_at_ms, .. } if expires_at_ms > 0) {
            return self.read_key(guarded);
        }
        let (guarded_bytes, stored) = (self.bytes_of(guarded), self.stored(guarded, &lived));
        let holds = self.rng.random_range(0..3) > 0;
        let condition = match (&stored, self.rng.random_range(0..3)) {
            (Some(value), 0) if holds => Condition::Value(value.clone()),
            (Some(_), 0) => Condition::Value(vec![7; 30]),
            (_, 1) => {
                let space = self.context.space(guarded.space);
                let version = space.get_with_version(&guarded_bytes);
                let found = version.map_err(|error| self.context.excuse("reading a version", &error))?;
                let value = found.item.as_ref().map(|(value, _)| &value[..]);
                self.learn(guarded, value, self.moment(guarded), "reading a version");
                let other = alluvium::ItemVersion::from_bytes([3; 32]);
                Condition::Unchanged(if holds { found.version } else { other })
            }
            (stored, _) if stored.is_some() == holds => Condition::Present,
            _ => Condition::Absent,
        };
        let effects = self.batch_effects();
        let writes = self.encoded(&effects);
        self.perform(Planned::of(effects), "writing a conditional batch", |context| {
            let mut batch = context.db.batch();
            batch.require(&context.space(guarded.space), guarded_bytes, condition.clone());
            for (key, bytes, value) in writes {
                let space = context.space(key.space);
                match value {
                    Some(value) => batch.insert(&space, bytes, value),
                    None => batch.remove(&space, bytes),
                }
            }
            match batch.commit() {
                Ok(()) if holds => Ok(Some(Done::default())),
                Err(Error::ConditionFailed(_)) if !holds => Ok(None),
                Ok(()) => context.fail(&format!("{guarded}: {condition:?} held, and it is {lived:?}")),
                Err(Error::ConditionFailed(failed)) => {
                    context.fail(&format!("{guarded}: {failed}, and it is {lived:?}"))
                }
                Err(error) => Err(error),
            }
        })
    }

    fn stored(&self, key: Key, outcome: &Outcome) -> Option<Vec<u8>> {
        match outcome {
            Outcome::Absent => None,
            Outcome::Raw(bytes) => Some(bytes.clone()),
            Outcome::Value { writer, op, .. } => Some(super::key::value_bytes(key, *writer, *op)),
        }
    }

    pub fn increment_own(&mut self) -> Result<(), Stop> {
        let key = self.own_key(Role::Counter);
        let bytes = self.bytes_of(key);
        let before = match self.lived(key).outcome {
            Outcome::Raw(bytes) => i64::from_le_bytes(bytes.try_into().unwrap_or_default()),
            _ => 0,
        };
        let by = self.rng.random_range(1..100);
        let outcome = Outcome::Raw((before + by).to_le_bytes().to_vec());
        self.perform(Planned::of(vec![(key, outcome)]), "incrementing", |context| {
            let sum = context.space(key.space).increment(bytes, by)?;
            if sum != before + by {
                context.fail(&format!("{key}: {before} and {by} made {sum}"));
            }
            Ok(Some(Done::default()))
        })
    }

    pub fn append_own(&mut self) -> Result<(), Stop> {
        let key = self.own_key(Role::List);
        let bytes = self.bytes_of(key);
        let mut list = match self.lived(key).outcome {
            Outcome::Raw(bytes) => bytes,
            _ => Vec::new(),
        };
        if list.len() > LIST_BYTES_MAX {
            return self.perform(Planned::of(vec![(key, Outcome::Absent)]), "removing a list", |context| {
                context.space(key.space).remove(bytes)?;
                Ok(Some(Done::default()))
            });
        }
        let more = self.next_op.to_be_bytes();
        list.extend_from_slice(&more);
        let len = list.len();
        self.perform(Planned::of(vec![(key, Outcome::Raw(list))]), "appending", |context| {
            let found = context.space(key.space).append(bytes, more)?;
            if found != len {
                context.fail(&format!("{key}: appending made {found} bytes, not {len}"));
            }
            Ok(Some(Done::default()))
        })
    }

    pub fn swap_own(&mut self) -> Result<(), Stop> {
        let key = self.own_key(Role::Value);
        let lived = self.lived(key).outcome;
        if matches!(lived, Outcome::Value { expires_at_ms, .. } if expires_at_ms > 0) {
            return self.read_key(key);
        }
        let (bytes, stored, fresh) = (self.bytes_of(key), self.stored(key, &lived), self.fresh_value(key));
        let is_right = self.rng.random_range(0..3) > 0;
        let expected = if is_right { stored } else { Some(vec![9; 40]) };
        let new = self.rng.random_range(0..5) > 0;
        let outcome = if new { self.fresh() } else { Outcome::Absent };
        self.perform(Planned::of(vec![(key, outcome)]), "swapping", |context| {
            let new = new.then_some(&fresh[..]);
            let swapped = context.space(key.space).compare_and_swap(bytes, expected.as_deref(), new)?;
            if swapped != is_right {
                context.fail(&format!("{key}: swapped {swapped}, and it was {lived:?}"));
            }
            Ok(swapped.then(Done::default))
        })
    }

    /// Replaces a value by another, and learns the former one.
    pub fn update(&mut self) -> Result<(), Stop> {
        let key = self.any_key();
        let (bytes, fresh) = (self.bytes_of(key), self.fresh_value(key));
        let outcome = self.fresh();
        self.perform(Planned::of(vec![(key, outcome)]), "updating", |context| {
            let update = |_: Option<&[u8]>| Update::Insert(fresh.clone());
            let seen = context.space(key.space).update(bytes, update)?;
            Ok(Some(Done { seen: Some(seen), version: 0 }))
        })
    }

    pub fn read(&mut self) -> Result<(), Stop> {
        let key = self.any_key();
        self.read_key(key)
    }

    pub fn read_key(&mut self, key: Key) -> Result<(), Stop> {
        let bytes = self.bytes_of(key);
        let moment = self.moment(key);
        match self.context.space(key.space).get(bytes) {
            Ok(value) => self.learn(key, value.as_deref(), moment, "getting"),
            Err(Error::KeyspaceDropped { .. }) => {
                let context = &self.context;
                context.reopen(FLEETING).map_err(|error| context.excuse("creating a keyspace", &error))?;
            }
            Err(error) => return Err(self.context.excuse("getting", &error)),
        }
        Ok(())
    }

    /// Clears its own keyspace, ingests into it or deletes one of its prefixes.
    pub fn change_whole(&mut self) -> Result<(), Stop> {
        let space = OWN + self.id;
        let writers = self.context.board.writers;
        let keys = move || all_keys(space, writers);
        match self.rng.random_range(0..10) {
            0..2 if self.context.has("own-clear") => {
                let effects = keys().map(|key| (key, Outcome::Absent)).collect();
                let planned = Planned { effects, persists: true, ..Planned::default() };
                self.perform(planned, "clearing", |context| {
                    context.space(space).clear()?;
                    Ok(Some(Done::default()))
                })
            }
            2..5 if is_semi_sorted(space) && self.context.has("own-delete-prefix") => {
                let prefix = self.rng.random_range(0..PREFIXES);
                let of_prefix = keys().filter(|key| key.prefix(writers) == prefix);
                let effects = of_prefix.map(|key| (key, Outcome::Absent)).collect();
                self.perform(Planned::of(effects), "deleting a prefix", |context| {
                    context.space(space).delete_prefix(prefix_name(prefix))?;
                    Ok(Some(Done::default()))
                })
            }
            5.. if self.context.has("own-ingest") => {
                let divisor = [1, 2, 30][self.rng.random_range(0..3)];
                let fresh = self.fresh();
                let taken = keys().filter(|key| key.number % divisor == 0 && key.role() == Role::Value);
                let effects: Vec<_> = taken.map(|key| (key, fresh.clone())).collect();
                let items = self.encoded(&effects);
                let planned = Planned { effects, parted: true, persists: true, ..Planned::default() };
                self.perform(planned, "ingesting", |context| {
                    let mut ingest = context.space(space).ingest()?;
                    for (_, bytes, value) in items {
                        ingest.insert(bytes, value.unwrap_or_default())?;
                    }
                    ingest.finish()?;
                    Ok(Some(Done::default()))
                })
            }
            _ => Ok(()),
        }
    }
}

/// Whether a transaction's read of one of its own keys is right.
pub fn is_as_known(key: Key, value: Option<&[u8]>, known: &Outcome) -> bool {
    let times = super::key::Times { earliest: 0, latest: u64::MAX };
    Seen::of(key, value).is_ok_and(|seen| known.allows(&seen, times))
}
