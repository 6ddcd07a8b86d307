//! State shared by the clients of a session.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use alluvium_io::{Clock as _, SimulatedClock, SimulatedStorage};
use rand::RngExt;
use rand::rngs::StdRng;

use super::super::Failure;
use super::super::disks::is_wrong;
use super::super::plans::random_chained;
use super::super::shape::{random_levels, semi_sorted_levels};
use super::history::{History, State};
use super::value::{FIRST_NUMBER, key, number_of, parse};
use crate::{Db, Durability, Error, Keyspace, KeyspaceOptions, LevelsPlan, Plan};
use alluvium_base::PrefixRule;

/// Kinds of operations of clients.
pub(super) const KINDS: usize = 25;

/// Maximum number of operations of each kind that never return, in one session.
const UNANSWERED_MAX: u32 = 8;

/// Weights of the kinds of operation of clients.
pub(super) const WEIGHTS: [u32; KINDS] =
    [30, 30, 8, 10, 10, 12, 8, 10, 6, 3, 1, 4, 3, 4, 1, 2, 2, 4, 2, 3, 3, 4, 2, 6, 4];

// Kinds that others name, by their position there.
pub(super) const GET: usize = 0;
pub(super) const PUT: usize = 1;
pub(super) const REMOVE: usize = 2;
pub(super) const UPDATE: usize = 4;
pub(super) const INCREMENT: usize = 5;
pub(super) const SWAP: usize = 6;
const DROP_KEYSPACE: usize = 10;
pub(super) const INGEST: usize = 11;
pub(super) const SNAPSHOT: usize = 13;
pub(super) const CHECKPOINT: usize = 14;
pub(super) const CHANGE_PLAN: usize = 15;
pub(super) const FLUSH: usize = 17;
pub(super) const PERSIST: usize = 18;
pub(super) const COMPACT: usize = 19;
pub(super) const ITERATE: usize = 20;

/// Minimum number of keys of a keyspace, some of which have a special purpose.
pub(super) const KEYS_MIN: usize = 5;

/// Kinds that change one whole keyspace.
const PARTING: std::ops::Range<usize> = 9..13;

/// Properties that are constant over the life of one simulated database.
#[derive(Debug)]
pub(super) struct Shape {
    /// Plans of hashed keyspaces, the initial one first; then those of semi-sorted ones.
    pub plans: Vec<Plan>,
    pub semi_sorted_plans: Vec<Plan>,
    /// Whether each keyspace is semi-sorted.
    pub keyspaces: Vec<bool>,
    pub keys: usize,
    pub clients: usize,
    pub operations: usize,
    pub durability: Durability,
    pub inline_bytes_max: usize,
    pub blob_file_bytes: u64,
    pub table_sizes: (u64, u64),
    pub segment_bytes: u64,
    pub weights: [u32; KINDS],
    /// Bytes of converted log that are kept.
    pub log_retention_bytes: u64,
    /// Whether keyspaces are cleared, dropped or filled one at a time, so that twins in two keyspaces would differ.
    pub twins_part: bool,
}

impl Shape {
    pub fn random(rng: &mut StdRng) -> Self {
        let mut weights = WEIGHTS;
        for weight in &mut weights[1..] {
            match rng.random_range(0..6) {
                0 | 1 => *weight = 0,
                2 => *weight *= 4,
                _ => {}
            }
        }
        if rng.random_range(0..4) == 0 {
            // Then twins are in two keyspaces.
            weights[PARTING].fill(0);
        }
        let LevelsPlan { mut sharding, mut log, levels } = LevelsPlan::silt();
        sharding.log_entries_per_shard = 64;
        sharding.items_per_shard = rng.random_range(50..400);
        sharding.shards_max = 1 << rng.random_range(0..3);
        log.segment_bytes_max = 64 << 10;
        let named = Plan::NAMES.iter().filter_map(|name| LevelsPlan::try_from(Plan::named(name).ok()?).ok());
        let mut all: Vec<_> =
            named.filter(|plan| plan.check_executable().is_ok()).map(|plan| plan.levels).collect();
        all.extend((0..3).map(|_| random_levels(rng, levels[0])));
        let plan = |levels| Plan::Levels(LevelsPlan { sharding, log, levels });
        let mut plans: Vec<Plan> = all.into_iter().map(plan).collect();
        let own = LevelsPlan { sharding, log, levels: levels.clone() };
        plans.extend((0..3).map(|_| random_chained(rng, &own)));
        let first = rng.random_range(0..plans.len());
        plans.swap(0, first);
        let semi_sorted_plans = (0..3).map(|_| plan(semi_sorted_levels(rng))).collect();
        let keyspaces: Vec<bool> = (0..rng.random_range(1..4)).map(|_| rng.random_range(0..3) == 0).collect();
        let durability = match rng.random_range(0..8) {
            0 => Durability::Buffered,
            1 | 2 => Durability::Process,
            3 => Durability::Interval(std::time::Duration::from_millis(rng.random_range(1..50))),
            _ => Durability::Sync,
        };
        Self {
            plans,
            semi_sorted_plans,
            keyspaces,
            keys: rng.random_range(KEYS_MIN..11),
            clients: rng.random_range(2..5),
            operations: rng.random_range(10..60),
            durability,
            inline_bytes_max: [40, 100, 2039][rng.random_range(0..3)],
            blob_file_bytes: rng.random_range(4 << 10..24 << 10),
            table_sizes: [(4 << 10, 8 << 10), (30 << 10, 90 << 10), (1 << 20, 32 << 20)]
                [rng.random_range(0..3)],
            segment_bytes: [12 << 10, 20 << 10, 64 << 10][rng.random_range(0..3)],
            log_retention_bytes: 0,
            twins_part: weights[PARTING].iter().any(|&weight| weight > 0),
            weights,
        }
    }

    /// Prepares for a follower of the log, which has no record of keyspaces that are dropped.
    pub fn be_followed(&mut self, seed: u64) {
        self.weights[DROP_KEYSPACE] = 0;
        self.log_retention_bytes = [0, 0, 20_000, 1 << 30][(seed / 4 % 4) as usize];
    }

    pub fn options(&self, keyspace: usize) -> KeyspaceOptions {
        if !self.keyspaces[keyspace] {
            return KeyspaceOptions::default();
        }
        KeyspaceOptions::semi_sorted(PrefixRule::Delimiter { byte: b'/' })
            .with_plan(self.semi_sorted_plans[0].clone())
    }

    /// The key of this number of a keyspace.
    pub fn key(&self, keyspace: usize, number: usize) -> Vec<u8> {
        key(number, self.keyspaces[keyspace])
    }

    /// The position of a key in the history.
    pub fn place(&self, keyspace: usize, number: usize) -> usize {
        keyspace * self.keys + number
    }

    /// Number of keys of all keyspaces.
    pub fn places(&self) -> usize {
        self.keyspaces.len() * self.keys
    }

    /// The keyspace of the second twin of a key in `keyspace`.
    pub fn twin_of(&self, keyspace: usize) -> usize {
        if self.twins_part { keyspace } else { (keyspace + 1) % self.keyspaces.len() }
    }
}

/// Why a client ends or is interrupted.
#[derive(Debug)]
pub(super) enum Stop {
    /// The storage crashed or an injected fault was returned.
    Expected,
    Finding(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Finding(failure)
    }
}

/// One opening of the database.
#[derive(Debug)]
pub(super) struct World<'a> {
    pub shape: &'a Shape,
    pub db: Db,
    pub storage: SimulatedStorage,
    pub clock: SimulatedClock,
    pub history: History,
    /// Whether faults were injected that may cause errors.
    pub has_faults: bool,
    /// Whether a table was damaged, so that corruption is not a finding.
    pub has_damage: bool,
    /// Number of values that may expire, and of errors because the disk was full.
    pub expiring: AtomicU32,
    pub times_full: AtomicU32,
    /// The latest time on the wall clock that any client saw, in milliseconds since 1970.
    pub latest_ms: AtomicU64,
    /// The number of the next write, over all sessions.
    pub next_number: &'a AtomicI64,
    pub has_finding: AtomicBool,
    pub finding: Mutex<Option<Failure>>,
}

impl World<'_> {
    /// The number of a new write.
    pub fn number(&self) -> i64 {
        FIRST_NUMBER + self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    pub fn open_keyspace(&self, number: usize) -> Result<Keyspace, Error> {
        self.db.keyspace_with(&name(number), &self.shape.options(number))
    }

    /// Opens all keyspaces and reads all keys.
    pub fn look(&self) -> Result<(Vec<Keyspace>, Vec<State>), Stop> {
        let mut keyspaces = Vec::new();
        let mut found = Vec::new();
        for number in 0..self.shape.keyspaces.len() {
            let keyspace = self.open_keyspace(number);
            let keyspace = keyspace.map_err(|error| self.stop(&error, "opening a keyspace"))?;
            let items: Result<Vec<_>, Error> = keyspace.iter().collect();
            let doing = format!("reading {}", name(number));
            found.extend(states(self.shape.keys, items.map_err(|error| self.stop(&error, &doing))?)?);
            keyspaces.push(keyspace);
        }
        Ok((keyspaces, found))
    }

    /// The consequence of an error that is not one of an operation's answers.
    pub fn stop(&self, error: &Error, doing: &str) -> Stop {
        let is_expected = self.has_faults && (self.has_damage || !is_wrong(error));
        if self.storage.is_crashed() || is_expected {
            return Stop::Expected;
        }
        Stop::Finding(Failure { reason: format!("{doing}: {error}") })
    }

    /// Makes room if the disk was full, so that the client can continue. Returns `false` for other errors, and if there
    /// were too many: the checker has a bound on operations without an answer.
    pub fn makes_room(&self, error: &Error) -> bool {
        let is_full =
            self.has_faults && matches!(error, Error::DiskFull { .. }) && !self.storage.is_crashed();
        if !is_full || self.times_full.fetch_add(1, Ordering::Relaxed) >= UNANSWERED_MAX {
            return false;
        }
        self.storage.set_quota(None);
        alluvium_io::sync::thread::sleep(Duration::from_millis(100));
        true
    }

    /// Whether the checker has room for another value that may expire.
    pub fn takes_expiry(&self) -> bool {
        self.expiring.fetch_add(1, Ordering::Relaxed) < UNANSWERED_MAX
    }

    /// Returns the time on the wall clock, and records it.
    pub fn note_time(&self) -> Duration {
        let now = self.clock.unix();
        self.latest_ms.fetch_max(now.as_millis() as u64, Ordering::Relaxed);
        now
    }

    /// Records the first finding, and makes all clients end.
    pub fn report(&self, failure: Failure) {
        self.finding.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
        self.has_finding.store(true, Ordering::Relaxed);
    }
}

/// The name of the keyspace of this number.
pub(super) fn name(number: usize) -> String {
    format!("keyspace-{number}")
}

/// The states of a keyspace's keys according to an iteration of it.
pub(super) fn states(
    keys: usize,
    items: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
) -> Result<Vec<State>, Failure> {
    let mut states = vec![None; keys];
    for (key, value) in items {
        let shown = String::from_utf8_lossy(&key).into_owned();
        let number = number_of(&key).filter(|&number| number < keys);
        let Some(number) = number else {
            return Err(Failure { reason: format!("iteration found a key that was never written: {shown}") });
        };
        let state =
            parse(Some(&value)).map_err(|reason| Failure { reason: format!("key {shown} has {reason}") })?;
        if states[number].replace(state.expect("a value")).is_some() {
            return Err(Failure { reason: format!("iteration found key {shown} twice") });
        }
    }
    Ok(states)
}
