//! Measurements of the lookaside buffer in front of several indexes (SPEC A7).
//!
//! Items have keys of 8 bytes and values of 64; requests follow Zipf's law with a skew of 0.99. For every index, the
//! same requests alternate between direct lookups and a buffer, with one key per call and with many. Ratios are medians
//! over the rounds of one process. Every answer is verified, within the timed loop.

pub mod beside_items;
pub mod chained;
pub mod contest;
pub mod store;
pub mod subject;

use alluvium_index::cuckoo::CuckooTable;
use alluvium_index::slb::Config;

use self::beside_items::{BPlusTree, BTree, BesideItems, SkipList};
use self::chained::Chained;
use self::contest::{Requests, Through};
use self::store::StoreSubject;
use self::subject::Subject;
use super::IndexConfig;
use crate::measurement::Measurement;

/// Bytes of the cache table; the thesis's figures use other sizes.
const CACHE_BYTES: usize = 32 << 20;

/// Maximum items: what a 32-bit number can count, with some to spare.
const ITEMS_MAX: u64 = 1 << 30;

/// Requests of a round, per item, within bounds.
const ROUND_LEN: std::ops::RangeInclusive<usize> = 1 << 14..=1 << 19;

/// Runs all indexes, each with every size of table.
pub fn run(config: &IndexConfig) -> Vec<Measurement> {
    let items = config.keys.clamp(1, ITEMS_MAX) as u32;
    let mut measurements = Vec::new();
    measure::<BesideItems<SkipList>>("skip_list", items, config, &mut measurements);
    measure::<BesideItems<BPlusTree>>("b_plus_tree", items, config, &mut measurements);
    measure::<BesideItems<BTree>>("std_b_tree", items, config, &mut measurements);
    measure::<Chained<4>>("chained_4", items, config, &mut measurements);
    measure::<Chained<1>>("chained_1", items, config, &mut measurements);
    measure::<BesideItems<CuckooTable>>("cuckoo", items, config, &mut measurements);
    measure::<StoreSubject>("store", items, config, &mut measurements);
    measurements
}

fn measure<S: Subject>(name: &str, items: u32, config: &IndexConfig, measurements: &mut Vec<Measurement>) {
    let index = S::build(items);
    let round_len = (items as usize).clamp(*ROUND_LEN.start(), *ROUND_LEN.end());
    let requests = Requests::draw(items, round_len, config.seed);
    let outcome = contest::run(index, &requests, Config::with_cache_bytes(CACHE_BYTES));
    let measurement = Measurement::new("index", &format!("slb_{name}"))
        .config("keys", items)
        .config("cache_bytes", CACHE_BYTES as u64)
        .config("seed", config.seed)
        .metric("direct_lookups_per_s", outcome.direct_per_s[0])
        .metric("direct_each_lookups_per_s", outcome.direct_per_s[1]);
    let ways = ["single", "each"].into_iter().zip(outcome.through);
    measurements.push(ways.fold(measurement, |measurement, (name, way)| with_way(measurement, name, &way)));
}

fn with_way(measurement: Measurement, name: &str, way: &Through) -> Measurement {
    let named = |what: &str| format!("{name}_{what}");
    measurement
        .metric(&named("lookups_per_s"), way.per_s)
        .metric(&named("ratio"), way.ratio)
        .metric(&named("hit_ratio"), way.stats.hit_ratio())
        .metric(&named("is_bypassed"), !way.calibration.pays())
        .metric(&named("calibration_ratio"), way.calibration.ratio())
}
