//! The simulator compared with the engine: a recorded run of the engine is replayed through the policy of merges, and
//! the same records through the simulator.

use std::collections::BTreeSet;
use std::sync::Arc;

use alluvium::{Db, Durability, Environment, HashKey, Keyspace, KeyspaceOptions};
use alluvium_base::KeyHasher;
use alluvium_io::SimulatedStorage;
use alluvium_model::policy::Decision;
use alluvium_model::{Growth, LevelSpec, LevelsPlan, Plan, RequestStream};
use alluvium_papers::simulator::{LevelsSimulation, Merge, TableBytes};

const ITEMS: u64 = 40_000;
const VALUE_BYTES: usize = 100;
/// Bytes of an item in a table: lengths, key and value.
const RECORD_BYTES: f64 = 112.0;
const TABLE_BYTES: TableBytes = TableBytes { record: RECORD_BYTES, min: 32_768.0, max: 262_144.0 };

/// What the engine did after one freeze.
struct Freeze {
    /// Positions of the keys in the log that was frozen.
    keys: Vec<u32>,
    /// Number of shards of that log.
    shards: f64,
    /// Every merge, with the decision that led to it.
    merges: Vec<(Decision, Merge)>,
    /// The decision to merge nothing more.
    last: Decision,
}

/// The plan with small logs, shards and numbers of runs.
fn small(plan: Plan, runs_max: u32, items_per_shard: u64) -> Plan {
    let Plan::Levels(LevelsPlan { mut sharding, mut log, mut levels }) = plan else { unreachable!() };
    log.segment_bytes_max = 64 << 10;
    sharding.items_per_shard = items_per_shard;
    for level in &mut levels {
        match &mut level.growth {
            Growth::Tiering { runs_max: of_level, .. } => *of_level = runs_max,
            Growth::Leveling { ratio } => *ratio = f64::from(runs_max),
        }
    }
    Plan::Levels(LevelsPlan { sharding, log, levels })
}

fn specs(plan: &Plan) -> &[LevelSpec] {
    let Plan::Levels(LevelsPlan { levels, .. }) = plan else { unreachable!() };
    levels
}

/// Records written to tables since the database was opened.
fn records_written(db: &Db) -> u64 {
    db.stats().levels.iter().map(|level| level.items_written).sum()
}

/// Loads the store, overwrites it twice, and records what is merged.
fn record(plan: &Plan) -> Vec<Freeze> {
    let environment = Environment { random_seed: 5, ..Environment::over(Arc::new(SimulatedStorage::new(3))) };
    let db = Db::builder("recorded")
        .environment(environment)
        .plan(plan.clone())
        .durability(Durability::Buffered)
        .background(false)
        .expected_items(ITEMS)
        .table_sizes(TABLE_BYTES.min as u64, TABLE_BYTES.max as u64)
        .open()
        .unwrap();
    let options = KeyspaceOptions::default().with_hash_key(HashKey::from_bytes([7; 16]));
    let items = db.keyspace_with("items", &options).unwrap();
    let key_half = u64::from_le_bytes([7; 8]);
    let hasher = KeyHasher::SipHash13 { key0: key_half, key1: key_half };
    let position = |key: u32| (hasher.hash(&key.to_le_bytes()).high() >> 32) as u32;
    let segment = || db.log_position().to_bytes()[8..16].to_vec();
    let mut requests = RequestStream::new(ITEMS, 0.0, 5).unwrap();
    let loading: Vec<u32> = (0..ITEMS).map(|rank| requests.key_of_rank(rank)).collect();
    let updates: Vec<u32> = (0..2 * ITEMS).map(|_| requests.next_key()).collect();
    let mut freezes = Vec::new();
    let mut in_log = BTreeSet::new();
    let (mut of_log, mut shards) = (segment(), items.merge_decision().holding.units);
    for key in loading.into_iter().chain(updates) {
        items.insert(key.to_le_bytes(), [key as u8; VALUE_BYTES]).unwrap();
        if segment() != of_log {
            let keys = std::mem::take(&mut in_log).into_iter().map(position).collect();
            let (merges, last) = merges(&db, &items);
            let next_shards = last.holding.units;
            freezes.push(Freeze { keys, shards, merges, last });
            (of_log, shards) = (segment(), next_shards);
        }
        in_log.insert(key);
    }
    freezes
}

/// Converts the frozen log and does all merges that are due.
fn merges(db: &Db, items: &Keyspace) -> (Vec<(Decision, Merge)>, Decision) {
    assert!(db.run_background_job().unwrap(), "a frozen log is converted");
    let mut merges = Vec::new();
    loop {
        let decision = items.merge_decision();
        let Some((level, place)) = decision.chosen else {
            assert!(!db.run_background_job().unwrap(), "nothing but merges is due");
            return (merges, decision);
        };
        let before = records_written(db);
        assert!(db.run_background_job().unwrap());
        let records = records_written(db) - before;
        let runs = decision.levels[level][place].runs as u32;
        merges.push((decision, Merge { level, runs, records }));
    }
}

/// What a run wrote and merged, by level.
#[derive(Debug, PartialEq)]
struct Totals {
    merges: Vec<f64>,
    runs: Vec<f64>,
    records: Vec<f64>,
}

impl Totals {
    fn of<'a>(merges: impl Iterator<Item = &'a Merge>, levels: usize) -> Self {
        let mut totals =
            Self { merges: vec![0.0; levels], runs: vec![0.0; levels], records: vec![0.0; levels] };
        for merge in merges {
            totals.merges[merge.level] += 1.0;
            totals.runs[merge.level] += f64::from(merge.runs);
            totals.records[merge.level] += merge.records as f64;
        }
        totals
    }
}

/// Number of merges that both sequences have in the same order: their longest common subsequence, by level and runs.
fn in_common(one: &[Merge], other: &[Merge]) -> usize {
    let mut row = vec![0; other.len() + 1];
    for left in one {
        let mut diagonal = 0;
        for (at, right) in other.iter().enumerate() {
            let above = row[at + 1];
            let is_same = (left.level, left.runs) == (right.level, right.runs);
            row[at + 1] = if is_same { diagonal + 1 } else { row[at].max(above) };
            diagonal = above;
        }
    }
    row[other.len()]
}

fn assert_within(simulated: f64, recorded: f64, tolerance: f64, what: &str) {
    assert!(
        (simulated - recorded).abs() <= tolerance * recorded,
        "{what}: {simulated} instead of {recorded}"
    );
}

/// Replays a recorded run. The share of the merges that may be others, and by which their number and the records
/// written may differ, is `tolerance`.
fn replays(plan: Plan, tolerance: f64) {
    let freezes = record(&plan);
    let levels = specs(&plan).len();
    let mut simulation = LevelsSimulation::new(&plan, ITEMS, TABLE_BYTES).unwrap();
    let mut simulated = Vec::new();
    let mut recorded = Vec::new();
    for freeze in freezes {
        for decision in freeze.merges.iter().map(|(decision, _)| decision).chain([&freeze.last]) {
            assert_eq!(decision.replay(specs(&plan)), decision.chosen, "{decision:?}");
        }
        recorded.extend(freeze.merges.iter().map(|&(_, merge)| merge));
        let keys = freeze.keys.into_iter().map(|key| (key, false)).collect();
        simulation.freeze(keys, freeze.shards.log2() as u32);
        let holding = &freeze.last.holding;
        simulated.extend(std::iter::from_fn(|| simulation.merge_next(holding.freeze_items, holding.units)));
    }
    let (of_engine, of_simulation) =
        (Totals::of(recorded.iter(), levels), Totals::of(simulated.iter(), levels));
    let common = in_common(&recorded, &simulated) as f64;
    assert!(recorded.len() >= 50, "{of_engine:?}");
    let written = |totals: &Totals| totals.records.iter().sum::<f64>();
    assert_within(written(&of_simulation), written(&of_engine), tolerance, "records written");
    let merges = |totals: &Totals| totals.merges.iter().sum::<f64>();
    assert_within(merges(&of_simulation), merges(&of_engine), tolerance, "merges");
    assert!(common >= (1.0 - tolerance) * recorded.len() as f64, "{common} in common");
}

#[test]
fn silt_is_replayed() {
    replays(small(Plan::silt(), 64, ITEMS / 8), 0.0);
}

#[test]
fn silt_tiering_is_replayed() {
    replays(small(Plan::silt_tiering(), 64, ITEMS / 8), 0.0);
}

/// The engine estimates the obsolete versions that its last level is merged for, the simulator counts them.
#[test]
fn lsm_trie_is_replayed() {
    replays(small(Plan::lsm_trie(), 4, ITEMS), 0.05);
}

#[test]
fn slimdb_is_replayed() {
    replays(small(Plan::slimdb(), 4, ITEMS), 0.0);
}

#[test]
fn leveled_is_replayed() {
    replays(small(Plan::leveled(), 4, ITEMS), 0.0);
}
