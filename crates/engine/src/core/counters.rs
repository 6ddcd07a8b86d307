//! [`Counters`]: what an open database has done.

use std::sync::Arc;

use alluvium_io::sync::Mutex;
use alluvium_io::sync::atomic::AtomicU64;

use crate::table::Section;
use crate::wait::Wait;

/// What was done since the database was opened.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub puts: AtomicU64,
    pub bytes_put: AtomicU64,
    pub gets: AtomicU64,
    pub page_reads: AtomicU64,
    /// Pages read to find out which items writes replace, and where large items are referred to.
    pub lookup_page_reads: AtomicU64,
    pub hash_bytes_written: AtomicU64,
    pub young_bytes_written: AtomicU64,
    pub sorted_bytes_written: AtomicU64,
    /// Indexed by the number of the level in the plan.
    pub levels_written: Mutex<Vec<LevelWritten>>,
    pub spill_bytes_written: AtomicU64,
    pub log_items_dropped: AtomicU64,
    pub freezes: AtomicU64,
    pub merges: AtomicU64,
    /// What was dropped instead of refusing writes at the disk limit.
    pub oldest_items_dropped: AtomicU64,
    pub oldest_bytes_dropped: AtomicU64,
    pub blob_files_emptied: AtomicU64,
    /// Segments of chained logs that were collected, and bytes of the items that were live in them.
    pub chained_segments_collected: AtomicU64,
    pub chained_bytes_moved: AtomicU64,
    /// Directories of chains that were saved, and bytes written for them.
    pub directories_saved: AtomicU64,
    pub directory_bytes_written: AtomicU64,
    /// Waits of writers for the next segment of the log, and for the conversion of earlier ones.
    pub freeze_waits: Wait,
    pub backlog_waits: Wait,
}

/// What was written to a level.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LevelWritten {
    /// Bytes of table files.
    pub bytes: u64,
    /// Bytes of the filters in them.
    pub filter_bytes: u64,
    /// Items in them.
    pub items: u64,
}

impl Counters {
    /// Counts the file of a new table in the level of this number.
    pub fn count_table(&self, level: usize, file_bytes: u64, sections: &[Arc<Section>]) {
        let filters = sections.iter().map(|section| section.entry().filter.len);
        let mut levels = self.levels_written.lock().expect("no panic while held");
        if levels.len() <= level {
            levels.resize(level + 1, LevelWritten::default());
        }
        levels[level].bytes += file_bytes;
        levels[level].filter_bytes += filters.sum::<u64>();
        levels[level].items += sections.iter().map(|section| section.item_count()).sum::<u64>();
    }
}
