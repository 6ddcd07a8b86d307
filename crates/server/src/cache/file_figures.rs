//! The figures of a cache in a file.

use alluvium_cache::{Opened, SurvivingStats};

use super::figures::{BYTES, GONE, HITS, ITEMS, MISSES, MOVED, RATIO};
use crate::metrics::{Metric, MetricSink};

const BROKEN: Metric = Metric::counter(
    "cache_items_broken",
    "Reads of items of which the last crash left a part; others that it took leave no trace.",
);
const ZONES: Metric = Metric::gauge("cache_file_zones", "Zones of the file.");
const CLEANINGS: Metric = Metric::counter("cache_file_zones_cleaned", "Zones that were cleaned.");
const KEPT: Metric =
    Metric::counter("cache_file_items_kept", "Items that were kept when their zone was cleaned.");
const FLUSHES: Metric = Metric::counter("cache_file_flushes", "Lines that were flushed.");
const COPIED: Metric =
    Metric::counter("cache_file_blocks_copied", "Compressed blocks that were copied as they are.");
const DICTIONARIES: Metric = Metric::gauge("cache_file_dictionaries", "Dictionaries in the file.");
const OPENED: Metric =
    Metric::gauge("cache_file_opened", "1 for how the content of the file was found at the start.");

/// Writes the figures of a cache in a file.
pub(super) fn observe_surviving(stats: &SurvivingStats, items: u64, sink: &mut dyn MetricSink) {
    for (metric, figure) in [
        (MISSES, stats.misses),
        (BROKEN, stats.broken),
        (ZONES, stats.zones),
        (CLEANINGS, stats.cleanings),
        (KEPT, stats.kept),
        (FLUSHES, stats.flushes),
        (COPIED, stats.blocks_copied),
        (DICTIONARIES, stats.dictionaries),
    ] {
        sink.number(metric, &[], figure as f64);
    }
    sink.number(RATIO, &[], stats.compression_ratio());
    let mut by = |metric: Metric, label: &'static str, figures: &[(&str, u64)]| {
        for &(value, figure) in figures {
            sink.number(metric, &[(label, value)], figure as f64);
        }
    };
    by(ITEMS, "zone", &[("file", items)]);
    by(HITS, "zone", &[("file", stats.hits.saturating_sub(stats.unpacked)), ("compressed", stats.unpacked)]);
    by(MOVED, "zone", &[("hot", stats.promoted), ("compressed", stats.packed)]);
    let zones_bytes = stats.zones * stats.zone_bytes;
    let index = stats.file_bytes.saturating_sub(zones_bytes) + stats.beside_bytes;
    by(
        BYTES,
        "part",
        &[
            ("index", index),
            ("items", stats.used_bytes.saturating_sub(stats.block_bytes)),
            ("compressed", stats.block_bytes),
        ],
    );
    by(
        GONE,
        "cause",
        &[
            ("removed", stats.removed),
            ("evicted", stats.evicted + stats.evicted_by_index),
            ("expired", stats.expired),
        ],
    );
    let opened = match stats.opened {
        Opened::New => "new",
        Opened::Complete => "complete",
        Opened::AfterCrash => "after_crash",
        Opened::Dropped => "dropped",
    };
    by(OPENED, "content", &[(opened, 1)]);
}
