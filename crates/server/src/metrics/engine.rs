//! The figures of the flash engine.

use alluvium::{Db, Keyspace, Stats};

use super::metric::{Metric, MetricSink};
use super::prediction::Predictor;

/// Label names and values.
type Labels<'a> = &'a [(&'static str, &'a str)];

/// Writes the figures of `db`, and what the plan of `keyspace` should cost.
pub(crate) fn observe_engine(db: &Db, keyspace: &Keyspace, predictor: &Predictor, sink: &mut dyn MetricSink) {
    let stats = db.stats();
    totals(&stats, sink);
    memory(&stats, sink);
    levels(&stats, sink);
    traffic(&stats, sink);
    waits(&stats, sink);
    kept(&stats, sink);
    predictor.observe(keyspace.plan(), &stats, sink);
    sink.document("engine", &mut || serde_json::to_string(&stats).unwrap_or_default());
}

/// Writes one figure for each label value.
fn by(sink: &mut dyn MetricSink, metric: Metric, label: &'static str, figures: &[(&str, u64)]) {
    for &(value, figure) in figures {
        sink.number(metric, &[(label, value)], figure as f64);
    }
}

fn each(sink: &mut dyn MetricSink, figures: &[(Metric, f64)]) {
    figures.iter().for_each(|&(metric, value)| sink.number(metric, &[], value));
}

fn totals(stats: &Stats, sink: &mut dyn MetricSink) {
    each(
        sink,
        &[
            (
                Metric::gauge("items", "Items stored; obsolete versions that are known are not counted."),
                stats.items as f64,
            ),
            (Metric::gauge("keyspaces", "Keyspaces of the database."), stats.keyspaces as f64),
            (
                Metric::gauge(
                    "merge_pressure",
                    "Highest pressure of a level relative to its bound; above 1, merges are due.",
                ),
                stats.merge_pressure,
            ),
            (
                Metric::gauge("frozen_segments", "Segments of the log that wait for conversion."),
                stats.frozen_segments as f64,
            ),
            (
                Metric::gauge(
                    "put_delay_seconds",
                    "Present delay of each write, by which writers are slowed down.",
                ),
                stats.put_delay_ns as f64 / 1e9,
            ),
        ],
    );
    let failures = &stats.failures;
    each(
        sink,
        &[
            (
                Metric::counter(
                    "background_retries",
                    "Pieces of background work that failed and were tried again.",
                ),
                failures.retries as f64,
            ),
            (Metric::counter("disk_full", "How often the disk was found full."), failures.times_full as f64),
            (
                Metric::counter(
                    "disk_full_resumed",
                    "How often writes were accepted again because there was space.",
                ),
                failures.times_resumed as f64,
            ),
        ],
    );
}

fn memory(stats: &Stats, sink: &mut dyn MetricSink) {
    let memory = &stats.memory;
    by(
        sink,
        Metric::gauge("memory_bytes", "Memory of the engine by part."),
        "part",
        &[
            ("log_index", memory.log_index),
            ("filters", memory.filters),
            ("indexes", memory.indexes),
            ("tables", memory.tables),
            ("pages", memory.pages),
            ("rows", memory.rows),
            ("write_buffer", memory.write_buffer),
            ("merge_buffer", memory.merge_buffer),
            ("io_buffers", memory.io_buffers),
            ("blob_buffer", memory.blob_buffer),
            ("snapshots", memory.snapshots),
            ("iterators", memory.iterators),
            ("scans", memory.scans),
        ],
    );
    let limit = &stats.memory_limit;
    if let Some(bytes) = limit.limit_bytes {
        let metric =
            Metric::gauge("memory_limit_bytes", "Maximum memory of the engine; absent if there is no limit.");
        sink.number(metric, &[], bytes as f64);
    }
    by(
        sink,
        Metric::counter("dropped_for_memory", "Filters and indexes that were dropped for lack of memory."),
        "structure",
        &[("filter", limit.filters_dropped), ("index", limit.indexes_dropped)],
    );
    let rows = &stats.rows;
    each(
        sink,
        &[
            (
                Metric::counter("row_cache_hits", "Lookups that a row answered without a read."),
                rows.hits as f64,
            ),
            (
                Metric::counter(
                    "row_cache_misses",
                    "Lookups that found neither an item in the log nor a row.",
                ),
                rows.misses as f64,
            ),
            (Metric::gauge("row_cache_rows", "Rows in the row cache."), rows.rows as f64),
            (
                Metric::counter("row_cache_compressed_hits", "Lookups that a compressed row answered."),
                rows.compressed_hits as f64,
            ),
            (
                Metric::gauge("row_cache_compressed_rows", "Compressed rows in the row cache."),
                rows.compressed_rows as f64,
            ),
            (
                Metric::gauge("row_cache_compressed_bytes", "Bytes that the compressed rows take."),
                rows.compressed_bytes as f64,
            ),
            (
                Metric::counter(
                    "oldest_items_dropped",
                    "Items that were dropped instead of refusing writes at the disk limit, estimated.",
                ),
                stats.oldest_items_dropped as f64,
            ),
            (
                Metric::counter("oldest_dropped_bytes", "Bytes of the tables of these items."),
                stats.oldest_bytes_dropped as f64,
            ),
            (
                Metric::gauge("row_cache_limit_bytes", "Bytes that the row cache may take now."),
                rows.bytes_max as f64,
            ),
        ],
    );
}

fn levels(stats: &Stats, sink: &mut dyn MetricSink) {
    for level in &stats.levels {
        let name = level.name.replace(' ', "");
        let labels: Labels<'_> = &[("level", &name)];
        let figures = [
            (Metric::gauge("level_runs", "Maximum number of runs over one container."), level.runs as u64),
            (
                Metric::gauge(
                    "level_tables",
                    "Tables; log stores in the log, sections in the youngest level.",
                ),
                level.tables as u64,
            ),
            (Metric::gauge("level_items", "Items, with tombstones and obsolete versions."), level.items),
            (Metric::gauge("level_bytes", "Bytes of pages or records."), level.bytes),
            (
                Metric::counter("level_written_bytes", "Bytes of table files written to the level."),
                level.bytes_written,
            ),
            (
                Metric::counter("level_written_items", "Items in table files written to the level."),
                level.items_written,
            ),
        ];
        figures.into_iter().for_each(|(metric, value)| sink.number(metric, labels, value as f64));
        let memory = Metric::gauge("level_memory_bytes", "Memory of a level's filters and indexes.");
        for (structure, bytes) in [("filter", level.filter_memory), ("index", level.index_memory)] {
            sink.number(memory, &[("level", &name), ("structure", structure)], bytes as f64);
        }
    }
}

fn traffic(stats: &Stats, sink: &mut dyn MetricSink) {
    let traffic = &stats.traffic;
    by(
        sink,
        Metric::counter(
            "written_bytes",
            "Bytes written to files by cause; divided by put_bytes, this is write amplification.",
        ),
        "cause",
        &[
            ("log", traffic.log_bytes_written),
            ("level0", traffic.hash_bytes_written),
            ("levels", traffic.sorted_bytes_written),
            ("blobs", traffic.blob_bytes_written.saturating_sub(traffic.blob_bytes_relocated)),
            ("blobs_relocated", traffic.blob_bytes_relocated),
            ("ingest", traffic.spill_bytes_written),
            ("manifest", traffic.manifest_bytes_written),
        ],
    );
    by(
        sink,
        Metric::counter("device_reads", "Reads of pages, indexes and large items by cause."),
        "cause",
        &[
            ("get", traffic.page_reads),
            ("blob", traffic.blob_reads),
            ("write", traffic.lookup_page_reads),
            ("index", stats.memory_limit.index_reads),
        ],
    );
    each(
        sink,
        &[
            (Metric::counter("puts", "Items written by users."), traffic.puts as f64),
            (
                Metric::counter("put_bytes", "Bytes of the keys and values of these items."),
                traffic.bytes_put as f64,
            ),
            (Metric::counter("gets", "Lookups by users, of all commands."), traffic.gets as f64),
            (Metric::counter("log_syncs", "Syncs of the log."), traffic.log_syncs as f64),
            (Metric::counter("freezes", "Freezes of the log."), traffic.freezes as f64),
            (Metric::counter("merges", "Merges of a container into the next level."), traffic.merges as f64),
            (
                Metric::counter(
                    "log_items_dropped",
                    "Items that were obsolete before they were written to a table.",
                ),
                traffic.log_items_dropped as f64,
            ),
            (
                Metric::counter("unfiltered_pages", "Pages that lookups searched for lack of a filter."),
                stats.memory_limit.unfiltered_pages as f64,
            ),
            (
                Metric::counter("damaged_blocks", "Damaged filters and indexes that lookups did without."),
                stats.memory_limit.damaged_blocks as f64,
            ),
        ],
    );
}

fn waits(stats: &Stats, sink: &mut dyn MetricSink) {
    for (cause, waits) in stats.write_waits.by_cause() {
        let labels: Labels<'_> = &[("cause", cause)];
        let count = Metric::counter("write_waits", "How often writers waited, by cause.");
        let time = Metric::counter("write_wait_seconds", "How long writers waited, by cause.");
        sink.number(count, labels, waits.count as f64);
        sink.number(time, labels, waits.total_ns as f64 / 1e9);
    }
}

/// What is stored in blob files, is garbage, or is kept for others.
fn kept(stats: &Stats, sink: &mut dyn MetricSink) {
    let (blobs, garbage) = (&stats.blobs, &stats.garbage);
    by(
        sink,
        Metric::gauge("blob_bytes", "Bytes of blob files, by whether an item refers to them."),
        "state",
        &[("live", blobs.live_bytes), ("obsolete", blobs.bytes.saturating_sub(blobs.live_bytes))],
    );
    by(
        sink,
        Metric::gauge("garbage_items", "Items in tables that no read can return."),
        "kind",
        &[("tombstone", garbage.tombstones), ("expired", garbage.expired)],
    );
    let left: u64 = stats.plan_changes.iter().map(|change| change.bytes_left).sum();
    each(
        sink,
        &[
            (Metric::gauge("blob_files", "Blob files."), blobs.files as f64),
            (
                Metric::gauge("blob_files_damaged", "Blob files that damage keeps from being emptied."),
                blobs.damaged_files as f64,
            ),
            (
                Metric::gauge("log_retained_bytes", "Converted log that is kept for its readers."),
                stats.log_retained_bytes as f64,
            ),
            (Metric::gauge("snapshots", "Snapshots."), stats.snapshots.snapshots as f64),
            (
                Metric::gauge("snapshot_disk_bytes", "Bytes of files kept only for snapshots."),
                stats.snapshots.disk as f64,
            ),
            (Metric::gauge("iterators", "Iterators."), stats.iterators.iterators as f64),
            (
                Metric::gauge("plan_change_left_bytes", "Bytes that have not followed a change of plan."),
                left as f64,
            ),
        ],
    );
}
