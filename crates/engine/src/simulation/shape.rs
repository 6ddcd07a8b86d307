//! What a simulated database is like: drawn once per seed.

use alluvium_model::{Filter, Growth, Index, LevelSpec, Plan, TableLayout};
use rand::RngExt;
use rand::rngs::StdRng;

/// What stays the same over the life of one simulated database.
#[derive(Debug)]
pub(super) struct Shape {
    pub plan: Plan,
    pub keyspaces: usize,
    pub keys: u32,
    pub value_bytes_max: usize,
    /// What memory is limited to; `None` for no limit.
    pub memory: Option<ShortMemory>,
    /// Largest item that lies in the log and in tables.
    pub inline_bytes_max: usize,
    /// Bytes at which blob files end, bytes of records with blocks of their own, bytes of garbage worth collecting.
    pub blob_sizes: (u64, usize, u64),
    /// Bytes of expired and removed items that are worth rewriting their place.
    pub garbage_bytes_min: u64,
    /// Smallest and largest bytes of tables below the youngest level.
    pub table_sizes: (u64, u64),
    /// Whether some keys are too long for tables.
    pub long_keys: bool,
    /// Whether some values expire.
    pub expires: bool,
    /// Weights of the kinds of operation; some are zero, so that runs differ in kind (swarm testing).
    pub weights: [u32; OPERATIONS],
}

/// A memory limit for databases as small as simulated ones: the smallest real one would never be felt.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShortMemory {
    pub index_bytes: u64,
    pub merge_bytes: u64,
}

const OPERATIONS: usize = 24;

impl Shape {
    pub fn random(rng: &mut StdRng) -> Self {
        let plan = if rng.random() { Plan::silt() } else { Plan::silt_tiering() };
        let Plan::Levels { mut sharding, mut log, mut levels } = plan else { unreachable!() };
        let is_deep = rng.random_range(0..3) > 0;
        if is_deep {
            levels = random_levels(rng, levels[0]);
        }
        sharding.log_entries_per_shard = rng.random_range(64..200);
        sharding.items_per_shard = rng.random_range(50..1000);
        sharding.shards_max = 1 << rng.random_range(0..4);
        log.segment_bytes_max = 64 << 10;
        let mut weights = [40, 10, 6, 6, 20, 5, 2, 1, 2, 1, 1, 3, 3, 2, 1, 4, 1, 3, 1, 3, 2, 3, 4, 3];
        for weight in &mut weights[1..] {
            if rng.random_range(0..5) == 0 {
                *weight = 0;
            }
        }
        let memory = rng.random_range(0..3) == 0;
        let memory = memory.then(|| ShortMemory {
            index_bytes: rng.random_range(0..30_000),
            merge_bytes: rng.random_range(500..20_000),
        });
        Self {
            memory,
            plan: Plan::Levels { sharding, log, levels },
            keyspaces: rng.random_range(1..4),
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

fn bucketed(growth: Growth, on_flash: bool) -> LevelSpec {
    let filter = Filter::BloomCluster { on_flash };
    LevelSpec { growth, table: TableLayout::Bucketed, filter, index: Index::Implicit }
}

/// Levels below a youngest one, so small that a few hundred items reach the last.
fn random_levels(rng: &mut StdRng, young: LevelSpec) -> Vec<LevelSpec> {
    let tiering =
        |rng: &mut StdRng| Growth::Tiering { runs_max: rng.random_range(2..5), share: Growth::ANY_SHARE };
    let mut levels = vec![LevelSpec { growth: tiering(rng), ..young }];
    if rng.random() {
        (levels[0].table, levels[0].index) = (TableLayout::Sorted, Index::Fences);
    }
    if rng.random_range(0..4) == 0 {
        levels[0] = bucketed(levels[0].growth, false);
    }
    if rng.random_range(0..4) == 0 {
        // LSM-trie's way: nothing but buckets, and runs up to many at the end.
        let growth = Growth::Tiering { runs_max: rng.random_range(2..40), share: Growth::ANY_SHARE };
        let between = rng.random_range(0..3);
        levels[0] = bucketed(levels[0].growth, false);
        levels.extend((0..between).map(|_| bucketed(tiering(rng), false)));
        levels.push(bucketed(growth, true));
        return levels;
    }
    for _ in 0..rng.random_range(1..5) {
        let growth = match rng.random() {
            true => Growth::Leveling { ratio: rng.random_range(1.1..2.0) },
            false => tiering(rng),
        };
        if rng.random_range(0..3) == 0 {
            levels.push(bucketed(growth, rng.random()));
            continue;
        }
        let filter = match rng.random_range(0..3) {
            0 => Filter::None,
            _ => Filter::Cuckoo { tag_bits: rng.random_range(4..16) },
        };
        let index = if rng.random_range(0..4) == 0 { Index::Trie } else { Index::Fences };
        levels.push(LevelSpec { growth, table: TableLayout::Sorted, filter, index });
    }
    levels
}
