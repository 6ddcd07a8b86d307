//! Plans by name: the papers' designs as values.

use super::{
    ChainedSpec, Filter, Growth, Index, LevelSpec, LevelsPlan, LogSpec, Plan, PlanError, Sharding,
    TableLayout,
};

/// Bits of the fingerprints of SlimDB's filters.
const SLIMDB_TAG_BITS: u32 = 12;
/// Bits of the fingerprints of LSM-trie's filters in memory: with sixteen runs, one lookup in 500 reads a table in
/// vain.
const STATIC_BITS: u32 = 13;
/// Bits of the tags of filters in plans whose levels are of sorted tables: one lookup in 500 reads a table in vain.
const SORTED_TAG_BITS: u32 = 12;

impl Plan {
    /// The names that [`named`](Self::named) knows.
    pub const NAMES: [&str; 15] = [
        "silt",
        "silt-log",
        "silt-log-hash",
        "silt-log-sorted",
        "silt-sorted",
        "silt-tiering",
        "silt-deep",
        "tiered",
        "lsm-trie",
        "lsm-trie-on-flash",
        "slimdb",
        "slimdb-tiering",
        "semi-sorted",
        "leveled",
        "skimpystash",
    ];

    /// SILT: log, hash runs with filters, one sorted run with page fences. The level's `share` is the average part of
    /// all items that is in filtered hash runs.
    pub fn silt() -> Self {
        Self::Levels(LevelsPlan::silt())
    }

    /// SILT's LogStores alone, the first of the four combinations of its Figure 10: runs whose index has the page of
    /// each item, merged only for garbage. 6.6 bytes of memory per item. Runs are in the order of hashes and not of
    /// arrival, which changes neither memory nor reads.
    pub fn silt_log() -> Self {
        Self::alone(Self::log_store(Self::WITHOUT_END))
    }

    /// SILT without its SortedStore: hash runs with filters, merged only for garbage. 2 bytes of memory per item.
    pub fn silt_log_hash() -> Self {
        let [hash, _] = LevelsPlan::silt().levels[..] else { unreachable!("SILT has two levels") };
        Self::alone(LevelSpec { growth: Self::WITHOUT_END, ..hash })
    }

    /// SILT without HashStores: runs with the page of each item in memory until they are merged into one sorted run.
    pub fn silt_log_sorted() -> Self {
        let [hash, sorted] = LevelsPlan::silt().levels[..] else { unreachable!("SILT has two levels") };
        Self::levels(vec![Self::log_store(hash.growth), sorted])
    }

    /// SILT's SortedStore alone: every log is merged into one sorted run at once.
    pub fn silt_sorted() -> Self {
        let [_, sorted] = LevelsPlan::silt().levels[..] else { unreachable!("SILT has two levels") };
        Self::levels(vec![sorted])
    }

    /// A level of runs that stay, with shards as small as those of [`silt_tiering`](Self::silt_tiering): what a merge
    /// for garbage takes in is all that a shard has.
    fn alone(level: LevelSpec) -> Self {
        let LevelsPlan { sharding, log, .. } = LevelsPlan::silt();
        let sharding = Sharding { log_share: 0.03, items_per_shard: 80_000, ..sharding };
        Self::Levels(LevelsPlan { sharding, log, levels: vec![level] })
    }

    /// Runs that are not merged because of their number.
    const WITHOUT_END: Growth = Growth::Tiering { runs_max: 4096, share: Growth::ANY_SHARE };

    fn log_store(growth: Growth) -> LevelSpec {
        LevelSpec {
            growth,
            table: TableLayout::Sorted,
            filter: Filter::Cuckoo { tag_bits: 15 },
            index: Index::Offsets,
        }
    }

    /// SILT for items of some hundred bytes or more, for which the memory of a filter per item is small in comparison.
    /// Hash runs collect, so that an item is written twice: to the log and to its run. Runs are merged into the sorted
    /// run only when a quarter of the items has newer values, or when there are very many runs. Logs are larger than
    /// those of `silt`, so that runs are few, and shards are smaller, because a merge holds a shard's runs in memory.
    pub fn silt_tiering() -> Self {
        let LevelsPlan { sharding, log, mut levels } = LevelsPlan::silt();
        levels[0].growth = Growth::Tiering { runs_max: 128, share: Growth::ANY_SHARE };
        // Few items are there, and without a filter each lookup of an absent key would read one page for them.
        levels[1].filter = Filter::Cuckoo { tag_bits: SORTED_TAG_BITS };
        let sharding = Sharding { log_share: 0.03, items_per_shard: 80_000, ..sharding };
        Self::Levels(LevelsPlan { sharding, log, levels })
    }

    /// SILT with a second level of filtered runs between its hash runs and its one sorted run: an item is written once
    /// more, and the sorted run is rewritten a quarter as often. For stores that are much larger than their memory for
    /// filters, or for fewer rewrites than `silt` at the price of two bytes of filter for each additional filtered
    /// item.
    pub fn silt_deep() -> Self {
        let LevelsPlan { sharding, log, mut levels } = LevelsPlan::silt();
        levels[0].growth = Growth::Tiering { runs_max: 8, share: Growth::ANY_SHARE };
        levels.insert(1, Self::sorted(Growth::Tiering { runs_max: 4, share: Growth::ANY_SHARE }));
        Self::Levels(LevelsPlan { sharding, log, levels })
    }

    /// The layout of LSM-trie with sorted tables: runs at every level, and a last level of runs that are merged when
    /// there are many or they hold much garbage. Each item is written once per level and has two bytes of filter. A get
    /// of a key in an old one of 32 runs checks the filters of all younger ones, so filters of that level have one bit
    /// more than others.
    pub fn tiered() -> Self {
        Self::Levels(LevelsPlan::tiered())
    }

    fn sorted(growth: Growth) -> LevelSpec {
        LevelSpec {
            growth,
            table: TableLayout::Sorted,
            filter: Filter::Cuckoo { tag_bits: SORTED_TAG_BITS },
            index: Index::Fences,
        }
    }

    /// LSM-trie: levels of runs with filters in memory, and a last level that only collects runs and has Bloom filters
    /// clustered on flash. There are three levels of sixteen runs, where the prototype has four of eight: an item is
    /// written once less on its way to ten terabytes. The filters in memory are static ones, which need less memory
    /// than Bloom filters and pass fewer absent keys. Checking them reads nothing, so they need not be adjacent.
    pub fn lsm_trie() -> Self {
        let mut levels = vec![Self::bucketed_young(); 3];
        levels.push(Self::bucketed_last());
        Self::levels(levels)
    }

    /// LSM-trie with little memory (Wu's thesis, §4.2.4.3): filters of the youngest sixteen runs are in memory, those
    /// of all others on flash, where one read shows which of them may hold a key. 0.4 bytes of memory an item, two
    /// reads a get of a present key and one of an absent one.
    pub fn lsm_trie_on_flash() -> Self {
        Self::levels(vec![Self::bucketed_young(), Self::bucketed_last()])
    }

    /// SlimDB's mixed layout (Fig. 4): three levels of eight runs under one filter each, then one run with a filter,
    /// then one without.
    pub fn slimdb() -> Self {
        let leveling = |filter| LevelSpec {
            growth: Growth::Leveling { ratio: 8.0 },
            table: TableLayout::Sorted,
            filter,
            index: Index::ThreeLevel,
        };
        let mut levels = vec![Self::slimdb_tier(); 3];
        levels.push(leveling(Filter::Cuckoo { tag_bits: SLIMDB_TAG_BITS }));
        levels.push(leveling(Filter::None));
        Self::levels(levels)
    }

    /// SlimDB as it was measured (Table 7): four levels of eight runs under one filter each.
    pub fn slimdb_tiering() -> Self {
        Self::levels(vec![Self::slimdb_tier(); 4])
    }

    /// For semi-sorted keyspaces: SlimDB's all-tiering layout with a filter for each table instead of one for all runs
    /// of a container, so that a merge touches only the filters of the tables that it merges. Four runs as they come
    /// from the log, then two levels of eight runs, the last of which is merged into itself. Each item is written once
    /// per level; it has 12.6 bits of filter and about two bits of index.
    pub fn semi_sorted() -> Self {
        Self::Levels(LevelsPlan::semi_sorted())
    }

    /// The layout of LevelDB and RocksDB: at most four runs as they come from the log, then levels of one run each, ten
    /// times larger than the one above, with a filter on every table. The filters are cuckoo filters of 12-bit tags
    /// (12.6 bits a key, one lookup in 500 wrong), not Bloom filters of 10 bits (one in 100): sorted tables have no
    /// Bloom filters.
    pub fn leveled() -> Self {
        let young = Self::sorted(Growth::Tiering { runs_max: 4, share: Growth::ANY_SHARE });
        let mut levels = vec![Self::sorted(Growth::Leveling { ratio: 10.0 }); 5];
        levels[0] = young;
        Self::levels(levels)
    }

    /// SkimpyStash with ten keys a chain: the log is the store, and each record names the one before it in its chain.
    /// For items that are written often and read seldom. Loading writes each item once, with some twelve bytes more; a
    /// get of a present key reads 5.5 pages, one of an absent key half a page, and a put of a present key a third of
    /// one. 1.5 bytes of memory per item. Expects a database of its own that knows how many items to expect.
    pub fn skimpystash() -> Self {
        Self::Chained(ChainedSpec::of_length(10.0))
    }

    /// Looks a named plan up among [`NAMES`](Self::NAMES).
    pub fn named(name: &str) -> Result<Self, PlanError> {
        match name {
            "silt" => Ok(Self::silt()),
            "silt-log" => Ok(Self::silt_log()),
            "silt-log-hash" => Ok(Self::silt_log_hash()),
            "silt-log-sorted" => Ok(Self::silt_log_sorted()),
            "silt-sorted" => Ok(Self::silt_sorted()),
            "silt-tiering" => Ok(Self::silt_tiering()),
            "silt-deep" => Ok(Self::silt_deep()),
            "tiered" => Ok(Self::tiered()),
            "lsm-trie" => Ok(Self::lsm_trie()),
            "lsm-trie-on-flash" => Ok(Self::lsm_trie_on_flash()),
            "slimdb" => Ok(Self::slimdb()),
            "slimdb-tiering" => Ok(Self::slimdb_tiering()),
            "semi-sorted" => Ok(Self::semi_sorted()),
            "leveled" => Ok(Self::leveled()),
            "skimpystash" => Ok(Self::skimpystash()),
            _ => Err(PlanError(format!("no plan is named {name:?}; known: {}", Self::NAMES.join(", ")))),
        }
    }

    fn levels(levels: Vec<LevelSpec>) -> Self {
        Self::Levels(LevelsPlan::of(levels))
    }

    /// Runs with filters in memory.
    fn bucketed_young() -> LevelSpec {
        Self::bucketed(16, Filter::Static { bits: STATIC_BITS })
    }

    /// Many runs with filters on flash.
    fn bucketed_last() -> LevelSpec {
        Self::bucketed(128, Filter::BloomCluster { on_flash: true })
    }

    fn bucketed(runs_max: u32, filter: Filter) -> LevelSpec {
        LevelSpec {
            growth: Growth::Tiering { runs_max, share: Growth::ANY_SHARE },
            table: TableLayout::Bucketed,
            filter,
            index: Index::Implicit,
        }
    }

    fn slimdb_tier() -> LevelSpec {
        LevelSpec {
            growth: Growth::Tiering { runs_max: 8, share: Growth::ANY_SHARE },
            table: TableLayout::Sorted,
            filter: Filter::MultiLevelCuckoo { tag_bits: SLIMDB_TAG_BITS },
            index: Index::ThreeLevel,
        }
    }
}

impl LevelsPlan {
    /// See [`Plan::silt`].
    pub fn silt() -> Self {
        Self::of(vec![
            LevelSpec {
                growth: Growth::Tiering { runs_max: 128, share: 0.095 },
                table: TableLayout::Hash,
                filter: Filter::Cuckoo { tag_bits: 15 },
                index: Index::Implicit,
            },
            LevelSpec {
                growth: Growth::Leveling { ratio: 4.0 },
                table: TableLayout::Sorted,
                filter: Filter::None,
                index: Index::Fences,
            },
        ])
    }

    /// See [`Plan::tiered`].
    pub fn tiered() -> Self {
        let Self { sharding, log, levels } = Self::silt();
        let young =
            LevelSpec { growth: Growth::Tiering { runs_max: 8, share: Growth::ANY_SHARE }, ..levels[0] };
        let old = LevelSpec {
            filter: Filter::Cuckoo { tag_bits: SORTED_TAG_BITS + 1 },
            ..Plan::sorted(Growth::Tiering { runs_max: 32, share: Growth::ANY_SHARE })
        };
        Self { sharding, log, levels: vec![young, old] }
    }

    /// See [`Plan::semi_sorted`].
    pub fn semi_sorted() -> Self {
        let tier = |runs_max| LevelSpec {
            growth: Growth::Tiering { runs_max, share: Growth::ANY_SHARE },
            table: TableLayout::Sorted,
            filter: Filter::Cuckoo { tag_bits: SORTED_TAG_BITS },
            index: Index::ThreeLevel,
        };
        Self::of(vec![tier(4), tier(8), tier(8)])
    }

    fn of(levels: Vec<LevelSpec>) -> Self {
        Self { sharding: Sharding::default(), log: LogSpec::default(), levels }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_plans_are_legal_and_survive_json() {
        for name in Plan::NAMES {
            let plan = Plan::named(name).unwrap();
            plan.validate().unwrap();
            let json = serde_json::to_string(&plan).unwrap();
            assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
        }
        assert!(Plan::named("btree").unwrap_err().to_string().contains("lsm-trie"));
    }
}
