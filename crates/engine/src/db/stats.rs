//! Figures about an open database.

use std::collections::BTreeMap;

use alluvium_io::sync::atomic::Ordering;
use serde::Serialize;

use super::database::Db;
use super::failures::FailureStats;
use super::iterator_stats::IteratorStats;
use super::memory_limit::MemoryLimitStats;
use super::plan_change_stats::PlanChangeStats;
use super::replan::PlanDecision;
use super::shared::Shared;
use super::snapshot_stats::SnapshotStats;
use crate::level::PlacedTable;
use crate::table::Section;
use crate::young_directory::YoungDirectory;

/// Figures about an open database, at one moment.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Stats {
    /// Memory by what it is for.
    pub memory: MemoryStats,
    /// The memory limit, and what it costs.
    pub memory_limit: MemoryLimitStats,
    /// What went to and came from files since the database was opened, by our own count. The operating system's
    /// counters are the truth about the device.
    pub traffic: TrafficStats,
    /// Levels of all keyspaces together, young to old.
    pub levels: Vec<LevelStats>,
    /// Items, estimated as [`crate::Keyspace::approximate_len`] does.
    pub items: u64,
    /// Keyspaces.
    pub keyspaces: usize,
    /// Log segments that wait for conversion.
    pub frozen_segments: usize,
    /// How far the level that is furthest over its bound is: above 1, merges are due.
    pub merge_pressure: f64,
    /// Delay of each put at present, in nanoseconds.
    pub put_delay_ns: u64,
    /// Large items that lie out of line.
    pub blobs: BlobStats,
    /// Items in tables that nobody can read any more.
    pub garbage: GarbageStats,
    /// Keyspaces whose data have not followed a change of their plan yet, with what is left.
    pub plan_changes: Vec<PlanChangeStats>,
    /// What was decided since the opening about plans that data had outgrown, the latest last.
    pub plan_decisions: Vec<PlanDecision>,
    /// What is kept for snapshots alone.
    pub snapshots: SnapshotStats,
    /// What is kept for iterators alone.
    pub iterators: IteratorStats,
    /// Failures that were no end.
    pub failures: FailureStats,
    /// How files are reached.
    pub storage: String,
    /// The directory of young levels, where there is one.
    pub young_directory: Option<YoungDirectoryStats>,
}

/// What lies in the directory of young levels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct YoungDirectoryStats {
    /// Tables of levels below this number are written there.
    pub levels: usize,
    /// Table files there that readers may need.
    pub tables: u64,
    /// Their length, with what merges have already freed of it.
    pub bytes: u64,
}

/// Bytes of memory, by what they are for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct MemoryStats {
    /// Cuckoo indexes of the log.
    pub log_index: u64,
    /// Filters of runs and tables, of old versions that snapshots and readers hold too.
    pub filters: u64,
    /// Indexes of sorted tables, and slot fences of hash runs; of old versions too.
    pub indexes: u64,
    /// What is known of each open table: where its sections lie and what they hold.
    pub tables: u64,
    /// Pages of tables that scans of prefixes have read, in what filters and indexes leave of the limit. None without
    /// a limit.
    pub pages: u64,
    /// Log segments in memory.
    pub write_buffer: u64,
    /// Items gathered for the merge under way.
    pub merge_buffer: u64,
    /// Buffers of reads and writes of the merge and the conversion under way, and under a limit those of multi_gets,
    /// large values and iterators.
    pub io_buffers: u64,
    /// Large items that are not written to blob files yet.
    pub blob_buffer: u64,
    /// Log that was converted and is kept for snapshots alone. What else they keep is among filters and indexes.
    pub snapshots: u64,
    /// Log that was converted and is kept for iterators alone, likewise, and under a limit what iterators have
    /// gathered.
    pub iterators: u64,
    /// Items that scans have gathered for their next calls.
    pub scans: u64,
}

impl MemoryStats {
    /// Index, filter and log index: what finds items.
    pub fn finding(&self) -> u64 {
        self.log_index + self.filters + self.indexes
    }

    /// Everything.
    pub fn total(&self) -> u64 {
        self.finding()
            + self.tables
            + self.pages
            + self.write_buffer
            + self.merge_buffer
            + self.io_buffers
            + self.iterators
            + self.blob_buffer
            + self.snapshots
            + self.scans
    }
}

/// Operations and bytes since the database was opened.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct TrafficStats {
    /// Items written by users.
    pub puts: u64,
    /// Their key and value bytes.
    pub bytes_put: u64,
    /// Gets by users.
    pub gets: u64,
    /// Pages read for them.
    pub page_reads: u64,
    /// Bytes written to log files.
    pub log_bytes_written: u64,
    /// Bytes written to runs of the youngest levels.
    pub hash_bytes_written: u64,
    /// Bytes written to tables of the levels below.
    pub sorted_bytes_written: u64,
    /// Of the bytes of tables, those that went to the directory of young levels.
    pub young_directory_bytes_written: u64,
    /// Bytes written to temporary files of bulk ingests.
    pub spill_bytes_written: u64,
    /// Bytes written to blob files, those that were written again included.
    pub blob_bytes_written: u64,
    /// Of those, bytes of items that were written again so that files could be removed.
    pub blob_bytes_relocated: u64,
    /// Large items read for users.
    pub blob_reads: u64,
    /// Pages read to learn what writes of large items hide, and which large items are live.
    pub lookup_page_reads: u64,
    /// Blob files emptied by writing their live items elsewhere.
    pub blob_files_emptied: u64,
    /// Bytes written to the manifest.
    pub manifest_bytes_written: u64,
    /// Syncs of the log.
    pub log_syncs: u64,
    /// Freezes of the log.
    pub freezes: u64,
    /// Merges of a place of a level into the next.
    pub merges: u64,
}

/// Items in tables that nobody can read any more. Where they are a quarter of a place and worth 256 KiB, that place is
/// rewritten in the background; merges and [`Db::compact`] drop them everywhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct GarbageStats {
    /// Tombstones: as many items below them, at most, are hidden.
    pub tombstones: u64,
    /// Items that have expired, estimated from below: one in eight of those that expire may be missing.
    pub expired: u64,
}

/// Large items that lie out of line.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct BlobStats {
    /// Blob files.
    pub files: usize,
    /// Their length.
    pub bytes: u64,
    /// Bytes of items that some table or the log refers to, at most once each and without those that are known to be
    /// hidden.
    pub live_bytes: u64,
    /// Files with damage that keeps them from being emptied; `verify` says what.
    pub damaged_files: usize,
}

/// One level.
#[derive(Debug, Clone, Default, Serialize)]
pub struct LevelStats {
    /// `log`, or `level` with its number in the plan.
    pub name: String,
    /// Runs, at most over one place.
    pub runs: usize,
    /// Tables (log stores, sections).
    pub tables: usize,
    /// Items, tombstones and hidden old values included.
    pub items: u64,
    /// Bytes of pages or records.
    pub bytes: u64,
    /// Bytes of memory of its filters, of a log of its index.
    pub filter_memory: u64,
    /// Bytes of memory of its indexes.
    pub index_memory: u64,
    /// Bytes of table files written into it since the database was opened; of the log, of records.
    pub bytes_written: u64,
    /// Of those, bytes of filters.
    pub filter_bytes_written: u64,
}

impl YoungDirectoryStats {
    fn of(young: &YoungDirectory) -> Self {
        let (mut tables, mut bytes) = (0, 0);
        for len in young.table_lengths() {
            (tables, bytes) = (tables + 1, bytes + len);
        }
        Self { levels: young.levels, tables, bytes }
    }
}

impl LevelStats {
    fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Counts a section that is there for the first time.
    fn add_section(&mut self, section: &Section) {
        let memory = section.memory_bytes();
        self.tables += 1;
        self.filter_memory += memory.filter;
        self.index_memory += memory.index;
    }
}

impl Db {
    /// Figures about this database at this moment. Takes microseconds; the first time after an opening it opens the
    /// tables of keyspaces that were not used yet.
    pub fn stats(&self) -> Stats {
        let shared = self.shared();
        // What can't be opened is missing from the figures; who uses it is told why.
        shared.all_keyspaces().iter().for_each(|keyspace| drop(shared.open_tables_of(keyspace)));
        let mut stats = Stats {
            traffic: traffic(shared),
            memory_limit: MemoryLimitStats::of(shared),
            frozen_segments: shared.frozen_count(),
            merge_pressure: crate::compact::pressure(shared),
            put_delay_ns: shared.throttle.delay_ns(),
            failures: shared.failure_stats(),
            storage: shared.storage.describe(),
            young_directory: shared.young.as_ref().map(YoungDirectoryStats::of),
            ..Stats::default()
        };
        let [mut log, mut young] = ["log", "level 0"].map(LevelStats::named);
        let mut older: Vec<LevelStats> = Vec::new();
        let memory = &mut stats.memory;
        memory.merge_buffer = shared.merge_buffer_bytes.load(Ordering::Relaxed);
        memory.blob_buffer = shared.blobs.memory_bytes();
        for file in shared.blobs.files().values() {
            stats.blobs.files += 1;
            stats.blobs.bytes += file.size();
            stats.blobs.live_bytes += file.live_estimate();
            stats.blobs.damaged_files += usize::from(file.is_damaged());
        }
        let keyspaces = shared.all_keyspaces();
        stats.keyspaces = keyspaces.len();
        let operations = &shared.memory.operations;
        memory.io_buffers = shared.buffer_bytes.load(Ordering::Relaxed) + operations.buffers.bytes();
        memory.io_buffers += shared.memory.index.reads.bytes();
        let tables = shared.memory.index.bytes();
        (memory.filters, memory.indexes) = (tables.filter, tables.index);
        memory.tables = shared.memory.index.table_bytes();
        memory.pages = shared.memory.index.page_bytes();
        let limit = &mut stats.memory_limit;
        let mut count_lacks = |section: &Section| {
            let (filter, index) = section.lacks();
            limit.sections_without_filter += u64::from(filter);
            limit.sections_without_index += u64::from(index);
        };
        let frozen: Vec<_> = shared.frozen.lock().expect("no panic while held").iter().cloned().collect();
        for segment in std::iter::once(shared.log.active_segment()).chain(frozen) {
            memory.write_buffer += segment.memory_bytes();
            log.bytes += segment.published();
        }
        stats.snapshots = SnapshotStats::of(shared, &keyspaces);
        memory.snapshots = stats.snapshots.log_memory;
        stats.iterators = IteratorStats::of(shared, &keyspaces);
        memory.iterators = stats.iterators.log_memory + shared.memory.operations.iterator_bytes();
        memory.scans = shared.scan_cache.memory_bytes();
        let now_ms = shared.now_ms();
        stats.plan_decisions = shared.plan_decisions.lock().expect("no panic while held").clone();
        stats.plan_changes = keyspaces.iter().filter_map(|keyspace| PlanChangeStats::of(keyspace)).collect();
        for keyspace in &keyspaces {
            let version = keyspace.version.load();
            log.runs = log.runs.max(version.log_stores.len());
            for store in &version.log_stores {
                log.tables += 1;
                log.items += store.len() as u64;
                log.filter_memory += store.memory_bytes();
            }
            young.runs = young.runs.max(version.runs.len());
            for section in version.runs.iter().flat_map(|run| run.sections.iter().flatten()) {
                stats.garbage.tombstones += section.section.tombstone_count();
                stats.garbage.expired += section.section.expired_estimate(now_ms);
                young.add_section(&section.section);
                young.items += section.section.item_count();
                young.bytes += section.section.pages_bytes();
                count_lacks(&section.section);
            }
            for (number, level) in version.numbered_levels() {
                if older.len() < number {
                    older.push(LevelStats::named(format!("level {number}")));
                }
                let stats_of = &mut older[number - 1];
                stats_of.runs = stats_of.runs.max(level.runs());
                stats_of.items += level.items();
                stats_of.bytes += level.bytes();
                // A table over several containers is there once.
                let tables: BTreeMap<u64, &PlacedTable> =
                    level.tables().map(|table| (table.file.number, table)).collect();
                for table in tables.values() {
                    stats.garbage.tombstones += table.section.tombstone_count();
                    stats.garbage.expired += table.section.expired_estimate(now_ms);
                    stats_of.add_section(&table.section);
                    count_lacks(&table.section);
                }
            }
        }
        stats.memory.log_index = log.filter_memory;
        log.bytes_written = stats.traffic.log_bytes_written;
        stats.levels = [log, young].into_iter().chain(older).collect();
        let written = shared.counters.levels_written.lock().expect("no panic while held").clone();
        for (level, written) in stats.levels[1..].iter_mut().zip(written) {
            level.bytes_written = written.bytes;
            level.filter_bytes_written = written.filter_bytes;
        }
        stats.items = stats.levels.iter().map(|level| level.items).sum();
        stats
    }
}

fn traffic(shared: &Shared) -> TrafficStats {
    let counters = &shared.counters;
    let get = |counter: &alluvium_io::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    TrafficStats {
        puts: get(&counters.puts),
        bytes_put: get(&counters.bytes_put),
        gets: get(&counters.gets),
        page_reads: get(&counters.page_reads),
        log_bytes_written: shared.log.bytes_written(),
        hash_bytes_written: get(&counters.hash_bytes_written),
        sorted_bytes_written: get(&counters.sorted_bytes_written),
        spill_bytes_written: get(&counters.spill_bytes_written),
        young_directory_bytes_written: get(&counters.young_bytes_written),
        manifest_bytes_written: shared.manifest.lock().expect("no panic while held").bytes_written(),
        blob_bytes_written: shared.blobs.bytes_written(),
        blob_bytes_relocated: get(&shared.blobs.bytes_relocated),
        blob_reads: get(&shared.blobs.reads),
        lookup_page_reads: get(&counters.lookup_page_reads),
        blob_files_emptied: get(&counters.blob_files_emptied),
        log_syncs: shared.log.syncs(),
        freezes: get(&counters.freezes),
        merges: get(&counters.merges),
    }
}
