//! Properties of a simulated database, chosen once per seed.

use alluvium_base::PrefixRule;
use alluvium_model::{Filter, Growth, Index, LevelSpec, LevelsPlan, Plan, TableLayout};
use rand::RngExt;
use rand::rngs::StdRng;

use super::plans::Plans;
use crate::KeyspaceOptions;

/// Properties that are constant over the life of one simulated database.
#[derive(Debug)]
pub(super) struct Shape {
    pub plan: Plan,
    pub keyspaces: usize,
    /// How the semi-sorted keyspaces find prefixes.
    pub prefix_rules: Vec<Option<PrefixRule>>,
    /// Whether the semi-sorted keyspaces list their prefixes.
    pub lists_prefixes: bool,
    pub semi_sorted_plan: Plan,
    /// The plans among which the database changes.
    pub plans: Plans,
    pub keys: u32,
    pub value_bytes_max: usize,
    /// The memory limit; `None` for no limit.
    pub memory: Option<ShortMemory>,
    /// Maximum size of an item stored in the log and in tables.
    pub inline_bytes_max: usize,
    /// Size at which blob files end, minimum size of records with blocks of their own, minimum garbage worth
    /// collecting.
    pub blob_sizes: (u64, usize, u64),
    /// Bytes of expired and removed items from which on their unit or container is rewritten.
    pub garbage_bytes_min: u64,
    /// How many times its bytes the keyspace of a directory of chains writes before it is saved again.
    pub directory_log_factor: u64,
    /// Minimum and maximum bytes of tables below the youngest level.
    pub table_sizes: (u64, u64),
    /// Whether some keys are too long for tables.
    pub long_keys: bool,
    /// Whether some values expire.
    pub expires: bool,
    /// Weights of the kinds of operation. Some are zero, so that runs differ in kind (swarm testing).
    pub weights: [u32; OPERATIONS],
}

/// A memory limit for databases as small as simulated ones, on which the smallest real limit would have no effect.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShortMemory {
    pub index_bytes: u64,
    pub merge_bytes: u64,
}

const OPERATIONS: usize = 27;

impl Shape {
    /// Only `order_rng` determines semi-sorted keyspaces and filters that name runs, and only `plan_rng` determines
    /// changes of plans. Seeds without these therefore replay as they did before these existed.
    pub fn random(rng: &mut StdRng, order_rng: &mut StdRng, plan_rng: &mut StdRng) -> Self {
        let plan = if rng.random() { Plan::silt() } else { Plan::silt_tiering() };
        let LevelsPlan { mut sharding, mut log, mut levels } = plan.try_into().expect("it is made of levels");
        let is_deep = rng.random_range(0..3) > 0;
        if is_deep {
            levels = random_levels(rng, levels[0]);
        }
        sharding.log_entries_per_shard = rng.random_range(64..200);
        sharding.items_per_shard = rng.random_range(50..1000);
        sharding.shards_max = 1 << rng.random_range(0..4);
        log.segment_bytes_max = 64 << 10;
        let mut weights =
            [40, 10, 6, 6, 20, 5, 2, 1, 2, 1, 1, 3, 3, 2, 1, 4, 1, 3, 1, 3, 2, 3, 4, 3, 0, 0, 0];
        for weight in &mut weights[1..24] {
            if rng.random_range(0..5) == 0 {
                *weight = 0;
            }
        }
        let memory = rng.random_range(0..3) == 0;
        let memory = memory.then(|| ShortMemory {
            index_bytes: rng.random_range(0..30_000),
            merge_bytes: rng.random_range(500..20_000),
        });
        let keyspaces = rng.random_range(1..4);
        let mut semi_sorted_levels = semi_sorted_levels(order_rng);
        let prefix_rules: Vec<_> = match order_rng.random_range(0..2) {
            0 => vec![None; keyspaces],
            _ => (0..keyspaces).map(|_| random_rule(order_rng)).collect(),
        };
        if prefix_rules.iter().any(Option::is_some) {
            (weights[24], weights[25]) = (order_rng.random_range(1..6), order_rng.random_range(0..3));
        }
        for levels in [&mut levels, &mut semi_sorted_levels] {
            // Only the youngest level takes a share, and that has an effect only in other plans.
            if levels.len() > 2 && order_rng.random_range(0..3) == 0 {
                name_runs(levels, order_rng);
            }
        }
        if plan_rng.random_range(0..5) == 0 {
            with_offsets(&mut levels, plan_rng);
        }
        if plan_rng.random_range(0..6) == 0 {
            let alone = levels[plan_rng.random_range(0..levels.len())];
            levels = vec![alone_in_plan(alone)];
        }
        let plan = LevelsPlan { sharding, log, levels };
        let semi_sorted_plan = LevelsPlan { levels: semi_sorted_levels, ..plan.clone() };
        let plans = Plans::random(plan_rng, &plan, &semi_sorted_plan);
        if plans.change() {
            weights[26] = plan_rng.random_range(1..5);
        }
        let directory_log_factor = *[0, 0, 8].get(plan_rng.random_range(0..3)).expect("in range");
        Self {
            memory,
            plans,
            directory_log_factor,
            prefix_rules,
            lists_prefixes: order_rng.random(),
            semi_sorted_plan: semi_sorted_plan.into(),
            plan: plan.into(),
            keyspaces,
            keys: rng.random_range(5..if is_deep { 800 } else { 400 }),
            value_bytes_max: *[8, 100, 600, 1900, 6000].get(rng.random_range(0..5)).expect("in range"),
            inline_bytes_max: *[40, 300, 2039].get(rng.random_range(0..3)).expect("in range"),
            blob_sizes: (
                rng.random_range(4 << 10..64 << 10),
                *[1000, 4000, 1 << 20].get(rng.random_range(0..3)).expect("in range"),
                *[0, 20_000].get(rng.random_range(0..2)).expect("in range"),
            ),
            garbage_bytes_min: *[0, 4_000, 256 << 10].get(rng.random_range(0..3)).expect("in range"),
            table_sizes: *[(8 << 10, 30 << 10), (30 << 10, 90 << 10), (1 << 20, 32 << 20)]
                .get(rng.random_range(0..3))
                .expect("in range"),
            long_keys: rng.random_range(0..3) == 0,
            weights,
            expires: rng.random(),
        }
    }
}

impl Shape {
    /// The options with which the keyspace of this number is created.
    pub fn options(&self, keyspace: usize) -> KeyspaceOptions {
        match self.prefix_rules[keyspace] {
            None => KeyspaceOptions::default(),
            Some(rule) => {
                let options = KeyspaceOptions::semi_sorted(rule).with_plan(self.semi_sorted_plan.clone());
                if self.lists_prefixes { options.with_listed_prefixes() } else { options }
            }
        }
    }
}

/// The rule that finds the prefixes of [`prefixed_key`]'s keys, half the time.
fn random_rule(rng: &mut StdRng) -> Option<PrefixRule> {
    match rng.random_range(0..4) {
        0 => Some(PrefixRule::Length { bytes: PREFIX_BYTES }),
        1 => Some(PrefixRule::Delimiter { byte: b'/' }),
        _ => None,
    }
}

const PREFIX_BYTES: u16 = 3;

/// The prefix of the key of this number: half of all keys have the first prefix.
pub(super) fn prefix(number: u32) -> String {
    format!("p{:02}", if number.is_multiple_of(2) { 0 } else { number % 13 })
}

/// The key of this number in a semi-sorted keyspace. Keys with the same suffix have different prefixes.
pub(super) fn prefixed_key(number: u32) -> Vec<u8> {
    format!("{}/{}", prefix(number), number / 2).into_bytes()
}

/// Levels of a semi-sorted keyspace, so small that a few hundred items reach the last one.
pub(super) fn semi_sorted_levels(rng: &mut StdRng) -> Vec<LevelSpec> {
    let young = LevelSpec {
        growth: Growth::Tiering { runs_max: 2, share: Growth::ANY_SHARE },
        table: TableLayout::Sorted,
        filter: Filter::Cuckoo { tag_bits: 12 },
        index: Index::ThreeLevel,
    };
    let mut levels = random_levels(rng, young);
    for level in &mut levels {
        if let Filter::BloomCluster { .. } | Filter::Fragments { .. } = level.filter {
            level.filter = young.filter;
        }
        (level.table, level.index) = (TableLayout::Sorted, Index::ThreeLevel);
    }
    levels
}

/// Gives tiering levels filters that name one of the runs of a container. Most are so narrow that many keys have the
/// same fingerprint.
fn name_runs(levels: &mut [LevelSpec], rng: &mut StdRng) {
    for level in levels {
        let Growth::Tiering { .. } = level.growth else { continue };
        if rng.random_range(0..4) == 0 {
            continue;
        }
        level.growth = Growth::Tiering { runs_max: rng.random_range(2..=8), share: Growth::ANY_SHARE };
        level.filter = Filter::MultiLevelCuckoo {
            tag_bits: *[4, 4, 7, 12].get(rng.random_range(0..4)).expect("in range"),
        };
        if level.table != TableLayout::Sorted {
            (level.table, level.index) = (TableLayout::Sorted, Index::Fences);
        }
    }
}

/// Gives sorted levels with cuckoo filters the page of each item.
fn with_offsets(levels: &mut [LevelSpec], rng: &mut StdRng) {
    for level in levels {
        let fits = level.table == TableLayout::Sorted && matches!(level.filter, Filter::Cuckoo { .. });
        if fits && rng.random() {
            level.index = Index::Offsets;
        }
    }
}

/// The level without a bound by share, which a level alone cannot have. Its runs have filters.
fn alone_in_plan(level: LevelSpec) -> LevelSpec {
    let Growth::Tiering { runs_max, .. } = level.growth else { return level };
    let growth = Growth::Tiering { runs_max, share: Growth::ANY_SHARE };
    let filter = match level.filter {
        Filter::None => Filter::Cuckoo { tag_bits: 12 },
        filter => filter,
    };
    LevelSpec { growth, filter, ..level }
}

fn bucketed(growth: Growth, on_flash: bool, rng: &mut StdRng) -> LevelSpec {
    let filter = match rng.random_range(0..3) {
        0 if !on_flash => static_filter(rng),
        _ => Filter::BloomCluster { on_flash },
    };
    LevelSpec { growth, table: TableLayout::Bucketed, filter, index: Index::Implicit }
}

fn static_filter(rng: &mut StdRng) -> Filter {
    Filter::Static { bits: rng.random_range(1..16) }
}

/// Levels below a youngest one, so small that a few hundred items reach the last one.
pub(super) fn random_levels(rng: &mut StdRng, young: LevelSpec) -> Vec<LevelSpec> {
    let tiering =
        |rng: &mut StdRng| Growth::Tiering { runs_max: rng.random_range(2..5), share: Growth::ANY_SHARE };
    let mut levels = vec![LevelSpec { growth: tiering(rng), ..young }];
    if rng.random() {
        (levels[0].table, levels[0].index) = (TableLayout::Sorted, Index::Fences);
        if rng.random_range(0..3) == 0 {
            levels[0].filter = static_filter(rng);
        }
    }
    if rng.random_range(0..4) == 0 {
        levels[0] = bucketed(levels[0].growth, false, rng);
    }
    if rng.random_range(0..4) == 0 {
        // As in LSM-trie: only buckets, and possibly many runs in the last level.
        let growth = Growth::Tiering { runs_max: rng.random_range(2..40), share: Growth::ANY_SHARE };
        let between = rng.random_range(0..3);
        levels[0] = bucketed(levels[0].growth, false, rng);
        for _ in 0..between {
            let growth = tiering(rng);
            levels.push(bucketed(growth, false, rng));
        }
        levels.push(bucketed(growth, true, rng));
        return levels;
    }
    for _ in 0..rng.random_range(1..5) {
        let growth = match rng.random() {
            true => Growth::Leveling { ratio: rng.random_range(1.1..2.0) },
            false => tiering(rng),
        };
        if rng.random_range(0..3) == 0 {
            let on_flash = rng.random();
            levels.push(bucketed(growth, on_flash, rng));
            continue;
        }
        let filter = match rng.random_range(0..4) {
            0 => Filter::None,
            1 => static_filter(rng),
            _ => Filter::Cuckoo { tag_bits: rng.random_range(4..16) },
        };
        let (filter, index) = match rng.random_range(0..8) {
            0 => (filter, Index::Trie),
            1 => (filter, Index::TrieDense),
            2 | 3 => (Filter::Fragments { bits: rng.random_range(1..12) }, Index::TrieDense),
            _ => (filter, Index::Fences),
        };
        levels.push(LevelSpec { growth, table: TableLayout::Sorted, filter, index });
    }
    levels
}
