//! Figures about an open database.

use alluvium_io::sync::atomic::Ordering;
use serde::{Deserialize, Serialize};

use super::chain_stats::ChainStats;
use super::database::Db;
use super::iterator_stats::IteratorStats;
use super::plan_change_stats::PlanChangeStats;
use super::snapshot_stats::SnapshotStats;
use super::write_wait_stats::WriteWaitStats;
use crate::compact::indexes_left;
use crate::core::{FailureStats, MemoryLimitStats, PlanDecision, RowStats, Shared};
use crate::table::Section;
use crate::young_directory::YoungDirectory;

/// Figures about an open database, at one moment.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Stats {
    /// Memory by purpose.
    pub memory: MemoryStats,
    /// The memory limit, and what it costs.
    pub memory_limit: MemoryLimitStats,
    /// Bytes written to and read from files since the database was opened, by the engine's own count. Only the
    /// operating system's counters tell exactly what reached the device.
    pub traffic: TrafficStats,
    /// Levels of all keyspaces together, young to old.
    pub levels: Vec<LevelStats>,
    /// Number of items, estimated as by [`crate::Keyspace::approximate_len`].
    pub items: u64,
    /// Number of keyspaces.
    pub keyspaces: usize,
    /// Number of log segments that wait for conversion.
    pub frozen_segments: usize,
    /// Bytes of converted log that stay on the device for readers of the log.
    pub log_retained_bytes: u64,
    /// The highest pressure of any level, relative to its bound: above 1, merges are due.
    pub merge_pressure: f64,
    /// Current delay of each put, in nanoseconds.
    pub put_delay_ns: u64,
    /// What writers waited for.
    pub write_waits: WriteWaitStats,
    /// Large items, which are stored in blob files.
    pub blobs: BlobStats,
    /// Items in tables that no read can return any more.
    pub garbage: GarbageStats,
    /// Keyspaces whose log is the store.
    pub chains: ChainStats,
    /// Items that were dropped instead of refusing writes at the disk limit, since the opening: an estimate.
    pub oldest_items_dropped: u64,
    /// Bytes of their tables.
    pub oldest_bytes_dropped: u64,
    /// Keyspaces whose data have not yet followed a change of their plan, and what is left to do.
    pub plan_changes: Vec<PlanChangeStats>,
    /// Decisions since the opening about plans that data had outgrown, the most recent last.
    pub plan_decisions: Vec<PlanDecision>,
    /// The row cache, which answers gets without a read.
    pub rows: RowStats,
    /// What is kept only for snapshots.
    pub snapshots: SnapshotStats,
    /// What is kept only for iterators.
    pub iterators: IteratorStats,
    /// Failures after which the database continued.
    pub failures: FailureStats,
    /// How files are read and written.
    pub storage: String,
    /// The directory of young levels, if there is one.
    pub young_directory: Option<YoungDirectoryStats>,
}

/// The content of the directory of young levels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct YoungDirectoryStats {
    /// Tables of levels below this number are written there.
    pub levels: usize,
    /// Number of table files there that readers may need.
    pub tables: u64,
    /// Their total length in bytes, including parts that merges have already freed.
    pub bytes: u64,
}

/// Bytes of memory, by purpose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryStats {
    /// Cuckoo indexes of the log, and directories of chains.
    pub log_index: u64,
    /// Filters of runs and tables, including those of old versions that snapshots and readers still use.
    pub filters: u64,
    /// Indexes of sorted tables, and slot fences of hash runs, including those of old versions.
    pub indexes: u64,
    /// The directory of each open table: where its sections are and what they contain.
    pub tables: u64,
    /// Pages of tables that prefix scans have read, within what filters and indexes leave of the limit. None without a
    /// limit.
    pub pages: u64,
    /// Rows: values that gets read from the device, for the next gets of their keys.
    pub rows: u64,
    /// Log segments in memory.
    pub write_buffer: u64,
    /// Items collected for the merge in progress.
    pub merge_buffer: u64,
    /// Buffers for reads and writes of the merge and the conversion in progress; under a limit, also those of
    /// `multi_get`, large values and iterators.
    pub io_buffers: u64,
    /// Large items that have not been written to blob files yet.
    pub blob_buffer: u64,
    /// Converted log that is kept only for snapshots. Their other memory is included in filters and indexes.
    pub snapshots: u64,
    /// Converted log that is kept only for iterators, whose other memory is likewise included in filters and indexes;
    /// under a limit, also what iterators have collected.
    pub iterators: u64,
    /// Items that scans have collected for their next calls.
    pub scans: u64,
}

impl MemoryStats {
    /// Filters, indexes and log indexes: the memory that finds items.
    pub fn finding(&self) -> u64 {
        self.log_index + self.filters + self.indexes
    }

    /// The sum of all.
    pub fn total(&self) -> u64 {
        self.finding()
            + self.tables
            + self.pages
            + self.rows
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
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TrafficStats {
    /// Number of items written by users.
    pub puts: u64,
    /// Bytes of their keys and values.
    pub bytes_put: u64,
    /// Number of gets by users.
    pub gets: u64,
    /// Number of pages read for them.
    pub page_reads: u64,
    /// Bytes written to log files.
    pub log_bytes_written: u64,
    /// Bytes written to runs of the youngest levels.
    pub hash_bytes_written: u64,
    /// Bytes written to tables of the levels below.
    pub sorted_bytes_written: u64,
    /// The part of the bytes of tables that was written to the directory of young levels.
    pub young_directory_bytes_written: u64,
    /// Bytes written to temporary files of bulk ingests.
    pub spill_bytes_written: u64,
    /// Bytes written to blob files, rewritten items included.
    pub blob_bytes_written: u64,
    /// The part of these bytes that belongs to items rewritten so that files could be removed.
    pub blob_bytes_relocated: u64,
    /// Number of large items read for users.
    pub blob_reads: u64,
    /// Number of pages read to find out what writes of large items replace, and which large items are live.
    pub lookup_page_reads: u64,
    /// Number of blob files that were emptied by moving their live items elsewhere.
    pub blob_files_emptied: u64,
    /// Bytes written to the manifest.
    pub manifest_bytes_written: u64,
    /// Number of syncs of the log.
    pub log_syncs: u64,
    /// Number of items that were dropped with their log segment instead of being written to a table: younger ones had
    /// replaced them, or they were tombstones of keys that no table has.
    pub log_items_dropped: u64,
    /// Number of freezes of the log.
    pub freezes: u64,
    /// Number of merges of a unit or a container into the next level.
    pub merges: u64,
}

/// Items in tables that no read can return any more. A container of which they are a quarter, and for which this is
/// worth 256 KiB, is rewritten in the background; merges and [`Db::compact`] drop them everywhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GarbageStats {
    /// Tombstones: each has at most one item below it that no read returns because of it.
    pub tombstones: u64,
    /// Items that have expired, estimated from below: up to one in eight of those that expire may be missing.
    pub expired: u64,
}

/// Large items, which are stored in blob files.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BlobStats {
    /// Number of blob files.
    pub files: usize,
    /// Their total length in bytes.
    pub bytes: u64,
    /// Bytes of items to which a table or the log refers, each counted at most once. Items known to be obsolete
    /// versions are not included.
    pub live_bytes: u64,
    /// Number of files with damage that prevents them from being emptied; `verify` reports the damage.
    pub damaged_files: usize,
}

/// Figures of one level.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LevelStats {
    /// `log`, or `level` and its number in the plan.
    pub name: String,
    /// Maximum number of runs over one container.
    pub runs: usize,
    /// Number of tables (in the log: log stores; in the youngest level: sections).
    pub tables: usize,
    /// Number of items, including tombstones and obsolete versions.
    pub items: u64,
    /// Bytes of pages or records.
    pub bytes: u64,
    /// Bytes of memory of its filters; for the log, of its index.
    pub filter_memory: u64,
    /// Bytes of memory of its indexes.
    pub index_memory: u64,
    /// Bytes of table files written to it since the database was opened; for the log, bytes of records.
    pub bytes_written: u64,
    /// The part of these bytes that is filters.
    pub filter_bytes_written: u64,
    /// Number of items in these files; for the log, 0.
    pub items_written: u64,
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

    /// Counts a section the first time that it is found.
    fn add_section(&mut self, section: &Section) {
        let memory = section.memory_bytes();
        self.tables += 1;
        self.filter_memory += memory.filter;
        self.index_memory += memory.index;
    }
}

impl Db {
    /// Figures of this database at this moment. Takes microseconds; the first call after an opening also opens the
    /// tables of keyspaces that have not been used yet.
    pub fn stats(&self) -> Stats {
        let shared = self.shared();
        // Tables that cannot be opened are missing from the figures; users of their keyspace get the error.
        shared.all_keyspaces().iter().for_each(|keyspace| drop(shared.open_tables_of(keyspace)));
        let mut stats = Stats {
            traffic: traffic(shared),
            memory_limit: MemoryLimitStats::of(shared),
            frozen_segments: shared.frozen_count(),
            merge_pressure: crate::compact::pressure(shared),
            put_delay_ns: shared.throttle.delay_ns(),
            write_waits: WriteWaitStats::of(shared),
            failures: shared.failure_stats(),
            chains: ChainStats::of(shared),
            log_retained_bytes: shared.log.retained.bytes(),
            oldest_items_dropped: shared.counters.oldest_items_dropped.load(Ordering::Relaxed),
            oldest_bytes_dropped: shared.counters.oldest_bytes_dropped.load(Ordering::Relaxed),
            storage: shared.storage.describe(),
            young_directory: shared.young.as_ref().map(YoungDirectoryStats::of),
            ..Stats::default()
        };
        let mut log = LevelStats::named("log");
        let mut levels = vec![LevelStats::named("level 0")];
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
        stats.rows = shared.rows.stats();
        memory.rows = stats.rows.bytes;
        let limit = &mut stats.memory_limit;
        limit.indexes_left = keyspaces.iter().map(|keyspace| indexes_left(keyspace) as u64).sum();
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
            if let Some(chain) = &version.chain {
                log.tables += chain.files.len();
                log.items += chain.items();
                log.bytes += chain.bytes();
                log.filter_memory += chain.directory.memory_bytes();
            }
            for (number, content) in version.body.content().enumerate() {
                if levels.len() == number {
                    levels.push(LevelStats::named(format!("level {number}")));
                }
                let level = &mut levels[number];
                level.runs = level.runs.max(content.runs);
                level.items += content.items;
                level.bytes += content.bytes;
                for section in content.sections {
                    stats.garbage.tombstones += section.tombstone_count();
                    stats.garbage.expired += section.expired_estimate(now_ms);
                    level.add_section(section);
                    count_lacks(section);
                }
            }
        }
        stats.memory.log_index = log.filter_memory;
        log.bytes_written = stats.traffic.log_bytes_written;
        stats.levels = std::iter::once(log).chain(levels).collect();
        let written = shared.counters.levels_written.lock().expect("no panic while held").clone();
        for (level, written) in stats.levels[1..].iter_mut().zip(written) {
            level.bytes_written = written.bytes;
            level.filter_bytes_written = written.filter_bytes;
            level.items_written = written.items;
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
        log_items_dropped: get(&counters.log_items_dropped),
        freezes: get(&counters.freezes),
        merges: get(&counters.merges),
    }
}
