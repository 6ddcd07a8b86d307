//! The plans, durabilities and sizes with which databases of this test are opened.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use alluvium::{
    Builder, Db, Durability, Environment, KeyspaceOptions, LevelsPlan, Plan, PlanChoice, PrefixRule,
};
use alluvium_io::{FileStorage, IoOptions};
use rand::RngExt;
use rand::rngs::StdRng;

use super::clock::Watch;
use super::key::{is_semi_sorted, space_name};

/// The plans, by name; `auto` is the database's own choice.
pub const PLANS: [&str; 9] = [
    "silt",
    "silt-tiering",
    "lsm-trie",
    "lsm-trie-on-flash",
    "slimdb",
    "slimdb-tiering",
    "leveled",
    "skimpystash",
    "auto",
];

/// The durabilities, by name.
pub const DURABILITIES: [&str; 4] = ["buffered", "process", "interval", "sync"];

/// The settings that stay the same over the life of one database.
#[derive(Clone, Debug)]
pub struct Setting {
    pub plan: String,
    pub durability: String,
    pub writers: u8,
    /// Whether the clock is set forward and back.
    pub clock_is_off: bool,
}

impl Setting {
    /// Whether everything that is acknowledged survives a kill.
    pub fn is_kept(&self) -> bool {
        matches!(&*self.durability, "process" | "sync")
    }

    /// How to open the database, with sizes so small that a second of writes freezes logs, merges and collects garbage.
    pub fn builder(&self, path: &Path, watch: &Watch, rng: &mut StdRng) -> Result<Builder, String> {
        let storage = FileStorage::create(path, IoOptions::default()).map_err(|error| error.to_string())?;
        let environment =
            Environment { clock: Arc::new(watch.clone()), ..Environment::over(Arc::new(storage)) };
        let durability = match &*self.durability {
            "buffered" => Durability::Buffered,
            "process" => Durability::Process,
            "interval" => Durability::Interval(Duration::from_millis(10)),
            _ => Durability::Sync,
        };
        let memory = [None, None, Some(4 << 20), Some(8 << 20), Some(32 << 20)];
        let mut builder = Db::builder(path)
            .plan(plan(&self.plan)?)
            .durability(durability)
            .environment(environment)
            .blob_sizes(512 << 10, 64 << 10, 32 << 10)
            .garbage_bytes_min(8 << 10)
            .table_sizes(32 << 10, 256 << 10);
        if let Some(bytes) = memory[rng.random_range(0..memory.len())] {
            builder = builder.memory_bytes_max(bytes);
        }
        Ok(builder)
    }
}

/// A plan by its name, with a log and shards that some thousand items fill.
pub fn plan(name: &str) -> Result<PlanChoice, String> {
    if name == "auto" {
        return Ok(PlanChoice::Auto);
    }
    Plan::named(name).map(|plan| PlanChoice::Fixed(small(plan))).map_err(|error| error.to_string())
}

/// A random plan that the engine executes, for keyspaces of this order.
pub fn random_plan(is_semi_sorted: bool, rng: &mut StdRng) -> Option<Plan> {
    let named = Plan::NAMES.iter().filter_map(|name| Plan::named(name).ok());
    let suits = |plan: &Plan| match is_semi_sorted {
        true => plan.as_levels().is_ok_and(|plan| plan.check_executable_semi_sorted().is_ok()),
        false => plan.is_executable(),
    };
    let plans: Vec<Plan> = named.filter(suits).collect();
    (!plans.is_empty()).then(|| small(plans[rng.random_range(0..plans.len())].clone()))
}

fn small(plan: Plan) -> Plan {
    let mut plan = match plan {
        Plan::Chained(spec) => Plan::Levels(spec.into()),
        plan => plan,
    };
    if let Plan::Levels(LevelsPlan { sharding, log, .. }) = &mut plan {
        log.segment_bytes_max = 1 << 20;
        sharding.log_entries_per_shard = 400;
        sharding.items_per_shard = 300;
        sharding.shards_max = 8;
    }
    plan
}

/// The options with which a keyspace is created.
pub fn keyspace_options(space: u8) -> KeyspaceOptions {
    if is_semi_sorted(space) {
        KeyspaceOptions::semi_sorted(PrefixRule::Delimiter { byte: b'/' }).with_listed_prefixes()
    } else {
        KeyspaceOptions::default()
    }
}

/// Opens a keyspace, or creates it.
pub fn open_keyspace(db: &Db, space: u8) -> alluvium::Result<alluvium::Keyspace> {
    db.keyspace_with(&space_name(space), &keyspace_options(space))
}
