//! What SkimpyStash's figures of its traces share: requests like those of the traces, answered by a database.
//!
//! The traces are not public. These are made from what the paper states of them (Table 1): the bytes of an item, gets
//! by sets, whether items are updated, and that keys are asked for before they are set. How popular keys are and how
//! often one is updated is not stated. Here it is Zipf's law, and four sets a key on average.
//!
//! All sets of a trace are done, but only some of its gets, spread over the trace: a get of a long chain takes as long
//! as a hundred sets. Rates are those of the whole mix. One thread asks, and waits for each answer. The log that is in
//! memory here takes some percent of the items, in the paper two or three pages; gets that it answers read nothing.

use std::path::Path;
use std::time::{Duration, Instant};

use alluvium::{Db, Durability, Keyspace};
use alluvium_bench::BenchError;
use alluvium_bench::cache::requests;
use alluvium_bench::random::{Random, mix};
use alluvium_bench::store::bytes_written;
use alluvium_model::{ChainedDirectory, ChainedSpec, Plan};

use super::Scale;

/// Keys for a slot, on average.
pub const LENGTHS: [u32; 6] = [1, 2, 4, 8, 16, 32];
/// Share of garbage from which on a log is collected that is not collected: fewer keys are updated so often.
pub const NEVER: f64 = 0.9;

const SKEW: f64 = 0.99;
/// Sets of a key in the trace with updates, on average.
const SETS_PER_KEY: u64 = 4;
/// Items of a store by sets: those of Xbox are twenty times larger, and each is set several times.
const STORED_PER_XBOX_SET: u64 = 16;
const STORED_PER_DEDUP_SET: u64 = 10;
/// Gets that are measured of chains of one key. Longer ones take longer, so there are fewer.
const GETS_MAX: f64 = 24_000.0;
const GETS_MIN: u64 = 400;

/// A trace of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trace {
    /// State of players: gets and updates of the same keys (§3.1).
    Xbox,
    /// Hashes of chunks, each set once, if a get did not find it (§3.2).
    Dedup,
}

/// What a trace took.
#[derive(Clone, Copy, Debug)]
pub struct Replayed {
    /// Microseconds of a get, on average, and of a set, collection of garbage included.
    pub get_us: f64,
    pub set_us: f64,
    pub reads_per_get: f64,
    /// Bytes of memory that find an item.
    pub bytes_per_item: f64,
    /// Bytes written for each byte that was set.
    pub written_per_byte: f64,
    /// Gets by sets.
    gets_per_set: f64,
}

impl Replayed {
    /// Operations per second of the trace's mix.
    pub fn ops_per_s(&self) -> f64 {
        let operations_us = self.gets_per_set * self.get_us + self.set_us;
        (1.0 + self.gets_per_set) * 1e6 / operations_us.max(1e-3)
    }
}

impl Trace {
    pub fn name(self) -> &'static str {
        match self {
            Self::Xbox => "xbox",
            Self::Dedup => "dedup",
        }
    }

    fn key_bytes(self) -> usize {
        match self {
            Self::Xbox => 92,
            Self::Dedup => 20,
        }
    }

    fn value_bytes(self) -> usize {
        match self {
            Self::Xbox => 1200,
            Self::Dedup => 44,
        }
    }

    fn gets_per_set(self) -> f64 {
        match self {
            Self::Xbox => 7.5,
            Self::Dedup => 2.2,
        }
    }

    fn sets(self, scale: &Scale) -> u64 {
        let sets = match self {
            Self::Xbox => scale.stored_items_max / STORED_PER_XBOX_SET,
            Self::Dedup => scale.stored_items_max / STORED_PER_DEDUP_SET,
        };
        sets.max(1000)
    }

    /// Different keys.
    fn keys(self, scale: &Scale) -> u64 {
        match self {
            Self::Xbox => self.sets(scale) / SETS_PER_KEY,
            Self::Dedup => self.sets(scale),
        }
    }
}

/// Chains of this length in the base or the enhanced design, whose log is collected at this share of garbage.
pub fn chains(length: u32, is_enhanced: bool, garbage_share_max: f64) -> ChainedSpec {
    let directory = if is_enhanced { ChainedDirectory::default() } else { ChainedDirectory::Base };
    ChainedSpec { directory, garbage_share_max, ..ChainedSpec::of_length(f64::from(length)) }
}

/// Executes a trace on an empty database of this plan, which is removed afterwards. Every answer is checked.
pub fn replay(scale: &Scale, id: &str, trace: Trace, plan: &Plan) -> Result<Replayed, BenchError> {
    let directory = scale.directories.create(&scale.directory, id)?;
    let outcome = replay_in(directory.path(), scale, trace, plan);
    // The remains of a database that failed are of no use.
    let removed = directory.remove();
    let outcome = outcome?;
    removed?;
    Ok(outcome)
}

fn replay_in(directory: &Path, scale: &Scale, trace: Trace, plan: &Plan) -> Result<Replayed, BenchError> {
    let keys = trace.keys(scale);
    let builder = Db::builder(directory).plan(plan.clone()).expected_items(keys);
    let db = builder.row_cache_bytes_max(0).durability(Durability::Buffered).open()?;
    let mut player = Player::new(db.keyspace("items")?, trace, keys, scale.seed);
    let gets = gets_of(plan, trace.sets(scale));
    let start = Instant::now();
    match trace {
        Trace::Xbox => player.update(trace.sets(scale), gets)?,
        Trace::Dedup => player.deduplicate(trace.sets(scale), gets)?,
    }
    let made = start.elapsed();
    db.wait_idle()?;
    // What is collected later belongs to the sets.
    let set_time = player.set_time + start.elapsed().saturating_sub(made);
    let stats = db.stats();
    let item_bytes = (trace.key_bytes() + trace.value_bytes()) as f64;
    let (sets, gets) = (trace.sets(scale) as f64, player.gets.max(1) as f64);
    let replayed = Replayed {
        get_us: player.get_time.as_secs_f64() * 1e6 / gets,
        set_us: set_time.as_secs_f64() * 1e6 / sets,
        reads_per_get: stats.traffic.page_reads as f64 / gets,
        bytes_per_item: stats.memory.finding() as f64 / keys as f64,
        written_per_byte: bytes_written(&stats) as f64 / (sets * item_bytes),
        gets_per_set: trace.gets_per_set(),
    };
    drop(player);
    db.close()?;
    Ok(replayed)
}

/// Number of gets that are measured.
fn gets_of(plan: &Plan, sets: u64) -> u64 {
    let length = match plan {
        Plan::Chained(spec) => spec.chain_length_mean,
        Plan::Levels(_) => 1.0,
    };
    ((GETS_MAX / (1.0 + length)) as u64).min(sets).max(GETS_MIN)
}

/// Asks, and knows the answers.
struct Player {
    keyspace: Keyspace,
    trace: Trace,
    seed: u64,
    /// Number of sets of each key.
    versions: Vec<u32>,
    key: Vec<u8>,
    value: Vec<u8>,
    gets: u64,
    get_time: Duration,
    set_time: Duration,
}

impl Player {
    fn new(keyspace: Keyspace, trace: Trace, keys: u64, seed: u64) -> Self {
        Self {
            keyspace,
            trace,
            seed,
            versions: vec![0; keys as usize],
            key: vec![b'.'; trace.key_bytes()],
            value: vec![0x5a; trace.value_bytes()],
            gets: 0,
            get_time: Duration::ZERO,
            set_time: Duration::ZERO,
        }
    }

    /// Sets and gets keys by popularity.
    fn update(&mut self, sets: u64, gets: u64) -> Result<(), BenchError> {
        let keys = self.versions.len() as u64;
        let set = requests::numbers(keys, SKEW, sets as usize, self.seed)?;
        let mut get = requests::numbers(keys, SKEW, gets as usize, !self.seed)?.into_iter();
        let mut credit = Credit::new(gets, sets);
        for number in set {
            self.set(number as usize)?;
            for _ in 0..credit.next() {
                get.next().map_or(Ok(()), |number| self.get(number as usize))?;
            }
        }
        Ok(())
    }

    /// Gets chunks, and sets those that are new. Those that are not are any of the earlier ones.
    fn deduplicate(&mut self, sets: u64, gets: u64) -> Result<(), BenchError> {
        let mut random = Random::new(self.seed, sets);
        let chunks = (sets as f64 * self.trace.gets_per_set()) as u64;
        let (mut credit, mut fresh, mut seen) = (Credit::new(gets, chunks), Credit::new(sets, chunks), 0);
        for _ in 0..chunks {
            let is_new = fresh.next() > 0 && seen < sets;
            let number = if is_new || seen == 0 { seen } else { random.below(seen) };
            for _ in 0..credit.next() {
                self.get(number as usize)?;
            }
            if is_new {
                self.set(number as usize)?;
                seen += 1;
            }
        }
        for number in seen..sets {
            self.set(number as usize)?;
        }
        Ok(())
    }

    fn make_item(&mut self, number: usize, version: u32) {
        let hash = mix(number as u64 ^ self.seed << 48);
        self.key[..8].copy_from_slice(&hash.to_le_bytes());
        self.value[..8].copy_from_slice(&mix(hash ^ u64::from(version)).to_le_bytes());
    }

    fn set(&mut self, number: usize) -> Result<(), BenchError> {
        let version = self.versions[number] + 1;
        self.make_item(number, version);
        let start = Instant::now();
        self.keyspace.insert(&self.key, &self.value)?;
        self.set_time += start.elapsed();
        self.versions[number] = version;
        Ok(())
    }

    fn get(&mut self, number: usize) -> Result<(), BenchError> {
        let version = self.versions[number];
        self.make_item(number, version);
        let start = Instant::now();
        let found = self.keyspace.get(&self.key)?;
        self.get_time += start.elapsed();
        self.gets += 1;
        if found.as_ref() != (version > 0).then_some(&self.value) {
            return Err(BenchError::WrongAnswer(format!("get of item {number}: another value, or none")));
        }
        Ok(())
    }
}

/// Spreads a number of events evenly over steps.
struct Credit {
    each: f64,
    left: f64,
}

impl Credit {
    fn new(events: u64, steps: u64) -> Self {
        Self { each: events as f64 / steps.max(1) as f64, left: 0.0 }
    }

    /// Events in the next step.
    fn next(&mut self) -> u64 {
        self.left += self.each;
        let due = self.left.floor();
        self.left -= due;
        due as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_spread() {
        for (events, steps) in [(7, 20), (20, 7), (0, 5), (5, 5)] {
            let mut credit = Credit::new(events, steps);
            let all: u64 = (0..steps).map(|_| credit.next()).sum();
            assert!(all.abs_diff(events) <= 1, "{events} in {steps}: {all}");
        }
    }
}
