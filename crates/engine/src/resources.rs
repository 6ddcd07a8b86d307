//! The limits of what a database takes: memory, disk space, rates and files.

use alluvium_cache::Codec;
use alluvium_io::ProcessMemory;

use crate::options::Builder;

impl Builder {
    /// Maximum bytes of memory of the database: log segments and their indexes, filters, indexes, buffers of merges and
    /// lookups, and what snapshots and iterators hold. Default: no limit. A process takes
    /// [`crate::resident_bytes_beyond_limit`] and its code in addition. Values that the program holds do not count.
    ///
    /// With less memory the log is smaller and frozen more often, so puts cost more rewrites; if filters or indexes
    /// have no room, lookups cost more reads; large reads wait for each other. Only iterators are refused, with
    /// [`crate::Error::MemoryBusy`], when some tens of them are open. [`crate::Stats::memory_limit`] shows the cost of
    /// a limit. A log that a crash left under a larger limit keeps its size until it is converted.
    ///
    /// Filters and indexes have a share of a third of the limit, which includes the directories of chained keyspaces.
    /// When these have all of it, their chains become longer, and a lookup there takes more reads. What is left of it
    /// holds pages that scans of prefixes have read, those of the smallest runs first, so that later scans and gets do
    /// not read them again. Without a limit no pages are kept.
    ///
    /// With glibc's allocator a limit also makes the process return freed blocks of 64 KiB and more to the system at
    /// once. [`crate::Db::set_memory_bytes_max`] changes the limit.
    ///
    /// # Errors
    /// Opening returns [`crate::Error::MemoryLimit`], with the minimum, for a limit under 4 MiB.
    pub fn memory_bytes_max(mut self, bytes: u64) -> Self {
        self.settings.memory_bytes_max = Some(bytes);
        self.settings.program_bytes = 0;
        self
    }

    /// Maximum bytes of the row cache: values that gets read from the device, and keys that they did not find there,
    /// for the next gets of the same keys. A hit takes no read, and less than a microsecond. Rows of up to 64 KiB with
    /// keys of up to 256 bytes are kept, those that are used often the longest (S3-FIFO, as in `alluvium-cache`).
    /// Snapshots, scans and iterators do not use them.
    ///
    /// Default: 64 MiB, or a 64th of the machine's memory if that is less; under a memory limit, most of what filters
    /// and indexes leave of it, however much that is. 0 means no row cache, and less than 128 KiB (2 MiB if rows are
    /// [compressed](Builder::compress_rows)) means the same.
    /// [`crate::Stats::rows`] shows what it has and how many gets it answered.
    pub fn row_cache_bytes_max(mut self, bytes: u64) -> Self {
        self.settings.row_cache_bytes_max = Some(bytes);
        self
    }

    /// Compresses the rows that the row cache would drop, so that its memory holds two to three times as many: hot
    /// rows, compressed rows, and the device are then three tiers under one limit. Default: rows are dropped. See
    /// [`alluvium_cache::Compressed`]; at least a tenth of the row cache's memory has rows as they are.
    ///
    /// A get that finds its row compressed takes 2–3 µs. Whether that is a gain depends on what a get from the device
    /// takes, and costs a few microseconds of processor time for each row that is filled while the row cache is full.
    /// Rows of more than 8 KiB are never compressed.
    pub fn compress_rows(mut self, codec: Codec) -> Self {
        self.settings.row_codec = Some(codec);
        self
    }

    /// Like [`Builder::memory_bytes_max`], for the whole process. The database gets the limit minus the code of the
    /// program and its libraries (counted in full, whether used or not), the resident constants, and the memory that
    /// the process has allocated so far. Memory that the program allocates later is not counted. Call this right before
    /// the program opens its only database.
    ///
    /// # Errors
    /// As with [`Builder::memory_bytes_max`]; the minimum is 4 MiB more than what is subtracted.
    pub fn process_memory_bytes_max(mut self, bytes: u64) -> Self {
        let allocated = ProcessMemory::now().map_or(0, |memory| memory.anonymous_bytes);
        self.settings.program_bytes = ProcessMemory::program_bytes().unwrap_or(0) + allocated;
        self.settings.memory_bytes_max = Some(bytes);
        self
    }

    /// Maximum bytes of disk space of the database. Default: no limit. Writes that would exceed it fail with
    /// [`crate::Error::DiskQuota`], with a limit of 0 all of them; removals and reads still work.
    ///
    /// Background work needs space to finish, which is kept free: twice the log, two tables of an eighth of the
    /// database each (1 to 32 MiB), and the live bytes of the largest blob file. Under a limit of less than some 16 MiB
    /// plus twice a log segment, all writes are therefore refused. Files that a repair has moved out of the way count
    /// as well.
    pub fn disk_bytes_max(mut self, bytes: u64) -> Self {
        self.settings.disk_bytes_max = Some(bytes);
        self
    }

    /// Whether the oldest items are dropped where [`Builder::disk_bytes_max`] would refuse writes. Default false. The
    /// database is then a cache on flash, larger than memory, that never refuses a write for its size.
    ///
    /// A piece is the oldest table of the last level, or the oldest run while there is no other level; only what has
    /// reached tables is dropped. A key has its youngest item afterwards, or none: nothing older returns. An item that
    /// the row cache has may be found a while longer. With a plan whose last level consists of runs, items go in the
    /// order in which they were written, by tables of up to 32 MiB; with one whose last level is a single run, tables
    /// of it have items of all ages, and go in the order in which they were made. [`crate::PlanChoice::Auto`] therefore
    /// means `tiered` for new keyspaces, which writes an item three times and takes two bytes of memory per item;
    /// `lsm-trie` writes it up to five times and takes next to no memory. Large values are dropped with their keys, and
    /// their space is collected as usual.
    ///
    /// While a snapshot or an iterator holds what was dropped, its space is not free: writes wait for up to a second,
    /// and are refused then. Where dropping does not keep up, writers are slowed, and wait at the limit, 20 s at most.
    pub fn drop_oldest(mut self, drops_oldest: bool) -> Self {
        self.settings.drops_oldest = drops_oldest;
        self
    }

    /// Maximum bytes of items per second that merges write; 0 counts as 1. Default: no limit. If it is too low for the
    /// rate of writes, hash runs accumulate and writers are slowed down. [`crate::Db::set_background_bytes_per_s_max`]
    /// changes it.
    pub fn background_bytes_per_s_max(mut self, bytes_per_s: u64) -> Self {
        self.settings.background_bytes_per_s_max = Some(bytes_per_s);
        self
    }

    /// Maximum bytes of memory in which a part of a bulk ingest is sorted; two parts are sorted at a time. Default 64
    /// MiB, minimum 4 KiB. A part is 1/256 of the items; parts that need more memory are written to disk once more,
    /// divided into finer ones.
    pub fn ingest_sort_bytes_max(mut self, bytes: u64) -> Self {
        self.settings.ingest_sort_bytes_max = bytes;
        self
    }

    /// Approximate maximum number of tables and finished blob files open at a time in each directory. Other files are
    /// opened when they are used, which takes microseconds, and closed when others are. The default reserves 64 of the
    /// descriptors that the process may have when the database is opened (`ulimit -n`), and takes half of the others:
    /// at least 16, at most 65,536. The other half is for the log, the manifest, files being written, io_uring (one per
    /// thread that reads many pages at once) and the program itself.
    ///
    /// An operation that gets no descriptor returns [`crate::Error::Io`] for that file and can be repeated. With an
    /// [`crate::Environment`] this setting affects only a second directory given by its path.
    #[must_use]
    pub fn open_files_max(mut self, files: usize) -> Self {
        self.settings.open_files_max = Some(files.max(1));
        self
    }

    /// Bytes of a log segment, and those of filters and indexes, under the limit and the plan of this builder. For
    /// predictions; the second is [`u64::MAX`] without a limit.
    #[doc(hidden)]
    pub fn limited_bytes(&self) -> crate::Result<(u64, u64)> {
        let budget = self.settings.memory_budget()?;
        Ok((budget.segment_bytes, budget.index_bytes))
    }
}
