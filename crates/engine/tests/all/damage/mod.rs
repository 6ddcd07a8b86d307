//! A small closed database with all kinds of content, to be damaged in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use alluvium::{Db, Environment, Error, Keyspace, LevelsPlan, Metadata, Plan, VerifyReport};
use alluvium_io::{Clock as _, SimulatedClock, SimulatedStorage};
use alluvium_model::{Filter, Growth, Index, LevelSpec, TableLayout};

/// Files by name.
pub type Contents = BTreeMap<String, Vec<u8>>;
/// Keyspace and key.
pub type Name = (String, Vec<u8>);

pub const KEYSPACES: [&str; 3] = ["fruit", "birds", "empty"];
const KEYS: u32 = 120;
/// So small that blob files are needed, and stay small.
const INLINE_BYTES_MAX: usize = 200;

/// The database and its content.
pub struct Sample {
    pub contents: Contents,
    pub items: BTreeMap<Name, Vec<u8>>,
    /// All values that a key ever had.
    pub history: BTreeMap<Name, BTreeSet<Vec<u8>>>,
    pub plan: Plan,
    clock: SimulatedClock,
}

pub fn key(number: u32) -> Vec<u8> {
    format!("key-{number}").into_bytes()
}

/// Small enough that every kind of file exists and none is large.
pub fn plan() -> Plan {
    let LevelsPlan { mut sharding, mut log, levels } = LevelsPlan::silt();
    sharding.log_entries_per_shard = 100;
    sharding.items_per_shard = 200;
    sharding.shards_max = 2;
    log.segment_bytes_max = 64 << 10;
    Plan::Levels(LevelsPlan { sharding, log, levels })
}

/// The same with tables in buckets, some with filters of their own and some with filters for several tables.
pub fn plan_in_buckets() -> Plan {
    let Plan::Levels(LevelsPlan { sharding, log, .. }) = plan() else { unreachable!() };
    let bucketed = |runs_max, filter| LevelSpec {
        growth: Growth::Tiering { runs_max, share: Growth::ANY_SHARE },
        table: TableLayout::Bucketed,
        filter,
        index: Index::Implicit,
    };
    let bloom = |on_flash| Filter::BloomCluster { on_flash };
    let levels = [(2, Filter::Static { bits: 9 }), (3, bloom(false)), (9, bloom(true))];
    let levels = levels.map(|(runs_max, filter)| bucketed(runs_max, filter));
    Plan::Levels(LevelsPlan { sharding, log, levels: levels.to_vec() })
}

/// The same with filters each of which names one of several tables.
pub fn plan_of_named_runs() -> Plan {
    let Plan::Levels(LevelsPlan { sharding, log, .. }) = plan() else { unreachable!() };
    let tiering = |runs_max| LevelSpec {
        growth: Growth::Tiering { runs_max, share: Growth::ANY_SHARE },
        table: TableLayout::Sorted,
        filter: Filter::MultiLevelCuckoo { tag_bits: 12 },
        index: Index::Fences,
    };
    Plan::Levels(LevelsPlan { sharding, log, levels: vec![tiering(3), tiering(3), tiering(8)] })
}

pub fn environment(storage: SimulatedStorage, clock: &SimulatedClock) -> Environment {
    Environment { clock: Arc::new(clock.clone()), random_seed: 11, ..Environment::over(Arc::new(storage)) }
}

impl Sample {
    /// A sorted run, hash runs of two ages, and a log; each contains values, values that replace older ones,
    /// tombstones, items with flags, and expired ones.
    pub fn new() -> Self {
        Self::of(plan())
    }

    /// The same under another plan.
    pub fn of(plan: Plan) -> Self {
        Self::made(plan, false)
    }

    /// The same for a process that was killed after it had been idle for a moment: the log and a blob file have no
    /// known end.
    pub fn killed() -> Self {
        Self::made(plan(), true)
    }

    fn made(plan: Plan, is_killed: bool) -> Self {
        let clock = SimulatedClock::default();
        let storage = SimulatedStorage::new(1);
        let mut sample =
            Self { contents: Contents::new(), items: BTreeMap::new(), history: BTreeMap::new(), plan, clock };
        let db = Db::builder("sample")
            .plan(sample.plan.clone())
            .background(false)
            .inline_bytes_max(INLINE_BYTES_MAX)
            .environment(environment(storage.clone(), &sample.clock))
            .open()
            .unwrap();
        let keyspaces: Vec<Keyspace> = KEYSPACES.iter().map(|name| db.keyspace(name).unwrap()).collect();
        for round in 0..4u32 {
            for number in (0..KEYS).filter(|number| number % 4 >= round) {
                for keyspace in &keyspaces[..2] {
                    sample.write(keyspace, round, number);
                }
            }
            match round {
                0 => db.compact().unwrap(),
                1 | 2 => db.flush().unwrap(),
                _ => {}
            }
        }
        sample.clock.advance(Duration::from_secs(10));
        drop(keyspaces);
        if is_killed {
            db.wait_idle().unwrap();
            sample.contents = storage.contents();
            storage.kill();
        } else {
            db.close().unwrap();
            sample.contents = storage.contents();
        }
        sample
    }

    fn write(&mut self, keyspace: &Keyspace, round: u32, number: u32) {
        let name = (keyspace.name().to_owned(), key(number));
        if (number + round).is_multiple_of(11) {
            keyspace.remove(&name.1).unwrap();
            self.items.remove(&name);
            return;
        }
        // Some are stored in blob files.
        let len = number % 40 + if number % 17 == 5 { INLINE_BYTES_MAX as u32 } else { 0 };
        let value = format!("value {round} of {number} {}", "x".repeat(len as usize)).into_bytes();
        let expires = (number + round).is_multiple_of(13);
        let expires_at_ms = expires.then(|| self.clock.unix().as_millis() as u64 + 5_000);
        keyspace.insert_with(&name.1, &value, Metadata { flags: number % 3, expires_at_ms }).unwrap();
        self.history.entry(name.clone()).or_default().insert(value.clone());
        if expires {
            self.items.remove(&name);
        } else {
            self.items.insert(name, value);
        }
    }

    pub fn environment(&self, contents: &Contents) -> Environment {
        environment(SimulatedStorage::from_contents(2, contents), &self.clock)
    }

    pub fn environment_over(&self, storage: SimulatedStorage) -> Environment {
        environment(storage, &self.clock)
    }

    pub fn open(&self, contents: &Contents) -> Result<Db, Error> {
        self.open_in(self.environment(contents))
    }

    pub fn open_in(&self, environment: Environment) -> Result<Db, Error> {
        let builder = Db::builder("sample").plan(self.plan.clone()).create(false).background(false);
        builder.inline_bytes_max(INLINE_BYTES_MAX).environment(environment).open()
    }

    /// Opens the database of these files and reads everything in every way: what is found is right, or an error names a
    /// damaged file. Returns whether anything was detected.
    pub fn check(&self, contents: &Contents, what: &str) -> Verdict {
        let db = match self.open(contents) {
            Ok(db) => db,
            Err(error) => return Verdict::of(&error, what),
        };
        let mut verdict = Verdict::Unnoticed;
        assert_eq!(db.keyspace_names(), KEYSPACES, "{what}");
        for name in KEYSPACES {
            let keyspace = match db.keyspace(name) {
                Ok(keyspace) => keyspace,
                Err(error) => {
                    verdict = Verdict::of(&error, what);
                    continue;
                }
            };
            for number in 0..KEYS {
                let name = (name.to_owned(), key(number));
                match keyspace.get(&name.1) {
                    Ok(found) => assert_eq!(found.as_ref(), self.items.get(&name), "{what}: {name:?}"),
                    Err(error) => verdict = Verdict::of(&error, what),
                }
            }
            let found: Result<BTreeMap<_, _>, _> = keyspace.iter().collect();
            match found {
                Ok(found) => {
                    let found: BTreeMap<Name, Vec<u8>> =
                        found.into_iter().map(|(key, value)| ((name.to_owned(), key), value)).collect();
                    let expected = self.items.iter().filter(|item| item.0.0 == name);
                    assert!(found.iter().eq(expected), "{what}: iteration of {name}");
                }
                Err(error) => verdict = Verdict::of(&error, what),
            }
        }
        match db.verify() {
            Ok(VerifyReport { problems, .. }) if problems.is_empty() => {}
            Ok(_) => verdict = Verdict::Noticed,
            Err(error) => verdict = Verdict::of(&error, what),
        }
        verdict
    }

    /// The whole content of a database after a repair: each value is one that its key had.
    pub fn read_repaired(&self, contents: &Contents, what: &str) -> BTreeMap<Name, Vec<u8>> {
        let db = self.open(contents).unwrap_or_else(|error| panic!("{what}: after repair: {error}"));
        let report = db.verify().unwrap();
        assert!(report.problems.is_empty(), "{what}: after repair: {:?}", report.problems);
        let mut found = BTreeMap::new();
        for keyspace in db.keyspace_names() {
            for item in db.keyspace(&keyspace).unwrap().iter() {
                let (key, value) = item.unwrap();
                let name = (keyspace.clone(), key);
                let known = self.history.get(&name).is_some_and(|values| values.contains(&value));
                assert!(known || keyspace.starts_with("keyspace-"), "{what}: {name:?} was invented");
                found.insert(name, value);
            }
        }
        found
    }

    /// Number of items that differ from the expected ones.
    pub fn differences(&self, found: &BTreeMap<Name, Vec<u8>>) -> usize {
        let missing = self.items.iter().filter(|(name, value)| found.get(*name) != Some(value)).count();
        missing + found.keys().filter(|name| !self.items.contains_key(*name)).count()
    }
}

/// The result of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All values are right.
    Unnoticed,
    /// Some operation returned a typed error.
    Noticed,
}

impl Verdict {
    pub fn of(error: &Error, what: &str) -> Self {
        match error {
            Error::Corruption(corruption) | Error::Damaged { corruption, .. } => {
                assert!(!corruption.file.is_empty(), "{what}: {error}")
            }
            Error::MissingFile { .. } | Error::NotADatabase { .. } => {}
            Error::NewerFormat { .. } | Error::OlderFormat { .. } => {}
            other => panic!("{what}: an error of the wrong kind: {other}"),
        }
        Self::Noticed
    }
}
