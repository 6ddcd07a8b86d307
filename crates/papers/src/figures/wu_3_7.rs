//! Wu's Figure 3.7: what the memory of a cache is used for, with items as they are, compressed one by one, and in the
//! compressed zone only.
//!
//! The thesis has memcached in all but the last case; here also our cache without a zone. The zone alone is a cache
//! whose hot zone should serve as few gets as possible; it keeps a tenth of the memory. memcached is measured where it
//! is installed, by the resident memory of its process; its metadata is not told apart from what slabs leave unused.

use alluvium_bench::BenchError;
use alluvium_bench::cache::memcached::Memcached;
use alluvium_bench::cache::zone::metadata_bytes;
use alluvium_cache::Cache;

use super::replay::{Mix, find_memcached, load};
use super::zexpander::{Data, YCSB_SHARE, YCSB_SKEW};
use super::{Axis, Figure, Panel, Published, Scale, Series};

/// Cases, by their number on the axis.
const CASES: &str = "1 memcached, 2 with small values, 3 plain, 4 with small values, 5 zone only";

/// A cache, as shares of its memory.
#[derive(Clone, Copy, Debug)]
struct Use {
    /// Items as they were before compression.
    items: f64,
    /// Items as they are stored.
    stored: f64,
    metadata: Option<f64>,
}

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let data = Data::new(scale)?;
    let memory = (YCSB_SHARE * data.bytes()) as u64;
    let small = data.values.compressed_each();
    // Items of this many bytes before compression take as many as they are stored.
    let payloads = [data.payload, small.payload_bytes_mean()].map(|payload| payload as f64);
    let mut cases = Vec::new();
    let values = [&data.values, &small];
    if let Some(program) = find_memcached() {
        for (number, values) in values.into_iter().enumerate() {
            let mut memcached = Memcached::start(&program, memory)?;
            load(&mut memcached, values, data.keys)?;
            let share = memcached.items()? as f64 / (memcached.resident_bytes().max(1) as f64);
            let [items, stored] = [payloads[0], payloads[number]].map(|payload| payload * share);
            cases.push((1.0 + number as f64, Use { items, stored, metadata: None }));
        }
    }
    for (number, values) in values.into_iter().enumerate() {
        let builder = Cache::builder().memory_limit(memory as usize);
        let builder = builder.payload_bytes_mean(values.payload_bytes_mean());
        let cache = builder.build().map_err(alluvium_bench::cache::speed::refused)?;
        load(&cache, values, data.keys)?;
        let stats = cache.stats().total();
        let share = stats.items as f64 / memory as f64;
        let [items, stored] = [payloads[0], payloads[number]].map(|payload| payload * share);
        let metadata = Some(stats.index_bytes as f64 / memory as f64);
        cases.push((3.0 + number as f64, Use { items, stored, metadata }));
    }
    let [_, (_, zone)] = data.caches(memory, 1)?;
    data.warm_up(&zone, memory, YCSB_SKEW, Mix::of_gets(95.0))?;
    let stats = zone.stats().total();
    let share = |bytes: u64| bytes as f64 / memory as f64;
    let metadata = metadata_bytes(&stats.zone);
    cases.push((
        5.0,
        Use {
            items: share(stats.items * data.payload as u64),
            stored: share(stats.log_bytes_used + stats.zone.block_bytes.saturating_sub(metadata)),
            metadata: Some(share(metadata + stats.index_bytes)),
        },
    ));
    Ok(Figure {
        id: "wu-3.7",
        title: "What memory is used for",
        source: "Wu's thesis, Figure 3.7: 60 GB for 128 GB of YCSB; here the same share of generated items",
        panels: vec![Panel {
            x: Axis::linear(CASES),
            y: Axis::linear("bytes a byte of memory"),
            series: vec![
                curve("items before compression", &cases, |used| Some(used.items)),
                curve("items as stored", &cases, |used| Some(used.stored)),
                curve("metadata", &cases, |used| used.metadata),
            ],
        }],
        published: published(&cases, metadata as f64 / (stats.zone.arena_bytes.max(1)) as f64),
    })
}

fn curve(name: &str, cases: &[(f64, Use)], of: impl Fn(&Use) -> Option<f64>) -> Series {
    Series::measurement(name, cases.iter().filter_map(|(case, used)| Some((*case, of(used)?))).collect())
}

fn published(cases: &[(f64, Use)], zone_metadata: f64) -> Vec<Published> {
    let of = |number: f64| cases.iter().find(|(case, _)| *case == number).map(|(_, used)| *used);
    let mut published = vec![Published::new("zone_metadata_share", 0.033, zone_metadata)];
    if let Some(zone) = of(5.0) {
        published.push(Published::new("zone_stored_share", 0.88, zone.stored));
        published.push(Published::new("zone_items_share", 77.0 / 60.0, zone.items));
        for (name, case) in [("memcached", 1.0), ("plain", 3.0)] {
            let Some(raw) = of(case) else { continue };
            let (more, stated) = (zone.items / raw.items - 1.0, case == 1.0);
            published.push(Published {
                name: format!("zone_items_more_than_{name}_share"),
                published: stated.then_some(1.26),
                ours: more,
            });
            let Some(small) = of(case + 1.0) else { continue };
            published.push(Published {
                name: format!("{name}_items_more_by_small_values_share"),
                published: stated.then_some(0.135),
                ours: small.items / raw.items - 1.0,
            });
            published.push(Published {
                name: format!("{name}_stored_share"),
                published: stated.then_some(0.56),
                ours: raw.stored,
            });
        }
    }
    published
}
