//! The figures of a cache.

use alluvium_cache::PartitionStats;

use crate::metrics::{Metric, MetricSink};

pub(super) const ITEMS: Metric = Metric::gauge("cache_items", "Items present, by zone.");
pub(super) const BYTES: Metric = Metric::gauge("cache_memory_bytes", "Bytes in use, by part.");
pub(super) const HITS: Metric = Metric::counter("cache_hits", "Gets that found their item, by zone.");
pub(super) const MISSES: Metric = Metric::counter("cache_misses", "Gets that found no item.");
pub(super) const GONE: Metric = Metric::counter("cache_items_gone", "Items that left the cache, by cause.");
pub(super) const MOVED: Metric =
    Metric::counter("cache_items_moved", "Items that moved between the zones, by their new zone.");
pub(super) const RATIO: Metric =
    Metric::gauge("cache_compression_ratio", "Bytes of items by the bytes of their compressed blocks.");
const HOT: Metric = Metric::gauge("cache_hot_zone_bytes_max", "Bytes that the hot zone may use at present.");

const DICTIONARIES: Metric =
    Metric::counter("cache_dictionaries_learned", "Dictionaries that were learned from items of the cache.");

/// Writes the figures of a cache, all partitions together.
pub(super) fn observe_cache(total: &PartitionStats, sink: &mut dyn MetricSink) {
    let zone = &total.zone;
    let mut by = |metric: Metric, label: &'static str, figures: &[(&str, u64)]| {
        for &(value, figure) in figures {
            sink.number(metric, &[(label, value)], figure as f64);
        }
    };
    by(ITEMS, "zone", &[("hot", total.items.saturating_sub(zone.items)), ("compressed", zone.items)]);
    by(HITS, "zone", &[("hot", total.hits.saturating_sub(zone.hits)), ("compressed", zone.hits)]);
    by(MOVED, "zone", &[("hot", zone.promoted), ("compressed", zone.demoted)]);
    by(
        BYTES,
        "part",
        &[
            ("index", total.index_bytes_now),
            ("items", total.log_bytes_used),
            ("compressed", zone.arena_bytes + zone.directory_bytes),
            ("dictionaries", zone.dictionary_bytes),
        ],
    );
    by(
        GONE,
        "cause",
        &[
            ("removed", total.removed),
            ("evicted", total.evicted + total.evicted_by_index),
            ("expired", total.expired),
        ],
    );
    sink.number(MISSES, &[], total.misses as f64);
    sink.number(HOT, &[], total.log_bytes_max as f64);
    sink.number(DICTIONARIES, &[], zone.dictionaries_learned as f64);
    sink.number(RATIO, &[], zone.compression_ratio());
}
