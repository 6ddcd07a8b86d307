//! How a database is opened. Every field has a default that suits most programs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use alluvium_base::PrefixFunction;
use alluvium_io::{Clock, ProcessMemory, ReadWait, Storage, SystemClock};
use alluvium_model::Plan;

use crate::compact::TableSizes;
use crate::db::Db;
use crate::error::Result;
use crate::planted_race::PlantedRace;
use crate::table::ITEM_BYTES_MAX;
use crate::young_directory::YoungLevels;

/// When a write is acknowledged, and so what a power cut can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Acknowledged when it is in memory. A crash of the process or the machine loses the writes since the last
    /// [`Db::persist`] or freeze of the log. Fastest.
    Buffered,
    /// Acknowledged when it is in memory; synced in the background at this interval, so a crash loses at most about
    /// that much time. 1 ms to 1 s is sensible; shorter intervals count as 1 ms, longer ones than a day as a day.
    Interval(Duration),
    /// Acknowledged when it is on the device. Writers that wait at the same time share one sync. The default.
    Sync,
}

/// Settings and components of a database about to be opened. Made by [`Db::builder`].
#[derive(Debug, Clone)]
pub struct Builder {
    pub(crate) path: PathBuf,
    pub(crate) settings: Settings,
    pub(crate) environment: Option<Environment>,
    pub(crate) young: Option<YoungLevels>,
}

/// Where the layout of keyspaces comes from: of those to be created, and of those that follow the database's. It is
/// kept in the manifest.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum PlanChoice {
    /// The best plan that the engine executes: within half a byte of memory per item, for
    /// [`Builder::expected_items`] items, on the device as `alluvium calibrate` measured it, if it did. When there are
    /// half as many items again as it was made for, and 100,000 at least, it is made anew for twice those that are
    /// there, and takes the old one's place if that pays before the items have doubled
    /// ([`crate::Stats::plan_decisions`]). Keyspaces that have a plan that was given keep it.
    #[default]
    Auto,
    /// This plan.
    Fixed(Plan),
}

impl From<Plan> for PlanChoice {
    fn from(plan: Plan) -> Self {
        Self::Fixed(plan)
    }
}

/// Plain values that one can print and store.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub plan: PlanChoice,
    pub durability: Durability,
    pub expected_items: u64,
    pub background: bool,
    pub create: bool,
    pub inline_bytes_max: usize,
    pub blob_file_bytes_max: u64,
    /// Records of so much content and more get a body of their own blocks.
    pub blob_aligned_bytes_min: usize,
    /// Garbage below this is not collected.
    pub blob_garbage_bytes_min: u64,
    /// Expired and removed items of one place that take less are left to merges and compactions.
    pub garbage_bytes_min: u64,
    pub read_only: bool,
    pub memory_bytes_max: Option<u64>,
    /// What a limit for the whole process leaves to others than the database.
    pub program_bytes: u64,
    pub disk_bytes_max: Option<u64>,
    pub background_bytes_per_s_max: Option<u64>,
    pub ingest_sort_bytes_max: u64,
    pub table_sizes: TableSizes,
    pub read_wait: ReadWait,
    pub open_files_max: Option<usize>,
    /// Functions that find prefixes, for the keyspaces that name them.
    pub prefix_functions: Vec<PrefixFunction>,
}

/// What the database takes from outside: storage, time and randomness. The simulation passes its own.
#[derive(Debug, Clone)]
pub struct Environment {
    /// Where files live.
    pub storage: Arc<dyn Storage>,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Source of the database's secret hash key and file seeds. Used when a database or keyspace is created.
    pub random_seed: u64,
    /// Bugs for the simulation to catch. Empty in any other use.
    #[doc(hidden)]
    pub planted_bugs: PlantedBugs,
}

/// Bugs that can be planted, to show that the simulation would catch them.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PlantedBugs {
    /// Acknowledge synced writes before the sync.
    pub acknowledge_before_sync: bool,
    /// Believe log records whose checksum is wrong.
    pub ignore_record_checksum: bool,
    /// Forget to keep other threads away.
    pub race: Option<PlantedRace>,
}

impl PlantedBugs {
    /// Whether this race is planted.
    #[inline]
    pub(crate) fn has(&self, race: PlantedRace) -> bool {
        self.race == Some(race)
    }
}

impl Environment {
    /// The given storage, the system's clock, and a seed from the operating system's randomness.
    pub fn over(storage: Arc<dyn Storage>) -> Self {
        use std::hash::{BuildHasher, Hasher};
        // `RandomState` is seeded by the operating system.
        let random_seed = std::collections::hash_map::RandomState::new().build_hasher().finish();
        Self {
            storage,
            clock: Arc::new(SystemClock::default()),
            random_seed,
            planted_bugs: PlantedBugs::default(),
        }
    }
}

impl Builder {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            settings: Settings {
                plan: PlanChoice::Auto,
                durability: Durability::Sync,
                expected_items: 0,
                background: true,
                create: true,
                inline_bytes_max: ITEM_BYTES_MAX,
                blob_file_bytes_max: 256 << 20,
                blob_aligned_bytes_min: 1 << 20,
                blob_garbage_bytes_min: 1 << 20,
                garbage_bytes_min: 256 << 10,
                read_only: false,
                memory_bytes_max: None,
                program_bytes: 0,
                disk_bytes_max: None,
                background_bytes_per_s_max: None,
                ingest_sort_bytes_max: 64 << 20,
                table_sizes: TableSizes::default(),
                read_wait: ReadWait::default(),
                open_files_max: None,
                prefix_functions: Vec::new(),
            },
            environment: None,
            young: None,
        }
    }

    /// The layout of keyspaces: a [`Plan`] or a [`PlanChoice`]. Default [`PlanChoice::Auto`]. A plan is given to those
    /// created from now on and to those that are there, as [`Db::change_plan`] does it.
    pub fn plan(mut self, plan: impl Into<PlanChoice>) -> Self {
        self.settings.plan = plan.into();
        self
    }

    /// When writes are acknowledged. Default [`Durability::Sync`].
    pub fn durability(mut self, durability: Durability) -> Self {
        self.settings.durability = durability;
        self
    }

    /// How many items the database will hold, if that is known. Default 0 (unknown). The share of items that the plan
    /// keeps in filtered runs is taken of the larger of this and the items present: so a load of known size is merged
    /// less often while it is still small. Costs filter memory early, changes nothing at the end. Plans whose runs stay
    /// (`silt-tiering`) cut the hash space for so many items from the beginning, in every keyspace. More than 10¹²
    /// count as 10¹².
    pub fn expected_items(mut self, items: u64) -> Self {
        self.settings.expected_items = items;
        self
    }

    /// Whether threads work in the background: one keeps the log, one converts frozen segments, one merges. Default
    /// true. Without them the program calls [`Db::run_background_job`] itself, and the same calls in the same order
    /// do the same.
    pub fn background(mut self, background: bool) -> Self {
        self.settings.background = background;
        self
    }

    /// Whether to create the database when the directory is empty or absent. Default true.
    pub fn create(mut self, create: bool) -> Self {
        self.settings.create = create;
        self
    }

    /// A function that finds the prefixes of keys, for keyspaces that were created with
    /// [`alluvium_base::PrefixRule::Function`] of this name. Given at each opening: databases keep the name only. To be
    /// called once for each function.
    pub fn prefix_function(mut self, function: PrefixFunction) -> Self {
        self.settings.prefix_functions.push(function);
        self
    }

    /// Most bytes of memory that the database may take: log segments and their indexes, filters, indexes, the buffers
    /// of merges and lookups, what snapshots and iterators hold. Default: as many as it needs for speed. A process
    /// takes [`crate::resident_bytes_beyond_limit`] and its code besides.
    ///
    /// A smaller log is frozen more often, so that puts cost more rewrites, and where filters or indexes have no room
    /// lookups cost more reads; large reads wait for each other. Iterators are the only thing to be refused, with
    /// [`crate::Error::MemoryBusy`], from some tens of open ones on. [`crate::Stats::memory_limit`] tells what a limit
    /// costs. Log that a crash left under a larger limit takes its size until it is converted. Values in the program's
    /// hands don't count.
    ///
    /// What filters and indexes leave of their share, a third of the limit, is for pages that scans of prefixes have
    /// read, of the smallest runs first: the next scans, and gets, don't read those. Without a limit none are kept.
    ///
    /// With glibc's allocator a limit also makes the process give freed blocks of 64 KiB and more back at once.
    /// [`Db::set_memory_bytes_max`] changes it.
    ///
    /// # Errors
    /// Opening gives [`crate::Error::MemoryLimit`], with the minimum, for a limit under 4 MiB.
    pub fn memory_bytes_max(mut self, bytes: u64) -> Self {
        self.settings.memory_bytes_max = Some(bytes);
        self.settings.program_bytes = 0;
        self
    }

    /// Largest item that lies in the log and in tables, in bytes of key and value and about 3 more; larger ones lie in
    /// blob files, and reading one costs a second read. Default and most: 2039, so that two fit in a page. Less makes
    /// merges rewrite less and reads of the items in between dearer. May differ from opening to opening.
    pub fn inline_bytes_max(mut self, bytes: usize) -> Self {
        self.settings.inline_bytes_max = bytes;
        self
    }

    /// Sizes at which blob files end, records get blocks of their own, and garbage is worth collecting: small ones for
    /// simulations.
    #[doc(hidden)]
    pub fn blob_sizes(
        mut self,
        file_bytes_max: u64,
        aligned_bytes_min: usize,
        garbage_bytes_min: u64,
    ) -> Self {
        self.settings.blob_file_bytes_max = file_bytes_max;
        self.settings.blob_aligned_bytes_min = aligned_bytes_min;
        self.settings.blob_garbage_bytes_min = garbage_bytes_min;
        self
    }

    /// Bytes of tables of the levels below the youngest: at least, as far as there is enough for them, and at most,
    /// about. Default 1 and 32 MiB. For tests and simulations.
    #[doc(hidden)]
    pub fn table_sizes(mut self, bytes_min: u64, bytes_max: u64) -> Self {
        self.settings.table_sizes = TableSizes { bytes_min, bytes_max };
        self
    }

    /// Bytes of expired and removed items in one place from which on it may be rewritten in the background. Default
    /// 256 KiB. For tests and simulations.
    #[doc(hidden)]
    pub fn garbage_bytes_min(mut self, bytes: u64) -> Self {
        self.settings.garbage_bytes_min = bytes;
        self
    }

    /// Like [`Builder::memory_bytes_max`], for the whole process, of which the database gets what is left: less the
    /// code of the program and its libraries (as if all of it were used), the constants that are resident, and what the
    /// process has allocated so far. What the program allocates later is up to it. To be called when it is about to
    /// open its one database.
    ///
    /// # Errors
    /// As with [`Builder::memory_bytes_max`]; the minimum is 4 MiB more than what is taken off.
    pub fn process_memory_bytes_max(mut self, bytes: u64) -> Self {
        let allocated = ProcessMemory::now().map_or(0, |memory| memory.anonymous_bytes);
        self.settings.program_bytes = ProcessMemory::program_bytes().unwrap_or(0) + allocated;
        self.settings.memory_bytes_max = Some(bytes);
        self
    }

    /// Most bytes of disk that the database may take. Default: as many as there are. Writes that would cross the limit
    /// give [`crate::Error::DiskQuota`], with 0 all; removals and reads go on. What background work needs to finish is
    /// kept free: twice the log, two tables of an eighth of the database (1 to 32 MiB each), and what is live of the
    /// largest blob file. So a limit under about 16 MiB plus twice a log segment takes no writes at all. Files that a
    /// repair set aside count too.
    pub fn disk_bytes_max(mut self, bytes: u64) -> Self {
        self.settings.disk_bytes_max = Some(bytes);
        self
    }

    /// Most bytes of items a second that merges write; 0 counts as 1. Default: no limit. When it is too low for the
    /// rate of writes, hash runs gather and writers are slowed down. [`Db::set_background_bytes_per_s_max`] changes it.
    pub fn background_bytes_per_s_max(mut self, bytes_per_s: u64) -> Self {
        self.settings.background_bytes_per_s_max = Some(bytes_per_s);
        self
    }

    /// Whether to open for reading only, as [`Db::open_read_only`] does. Default false.
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.settings.read_only = read_only;
        self
    }

    /// Most memory for sorting a part of a bulk ingest, of which two are sorted at a time. Default 64 MiB, at least
    /// 4 KiB. Parts are
    /// 1/256 of the items; those that take more are written to disk once more, in finer parts.
    pub fn ingest_sort_bytes_max(mut self, bytes: u64) -> Self {
        self.settings.ingest_sort_bytes_max = bytes;
        self
    }

    /// A second directory, on another device as a rule, for the tables of the first `levels` levels of each keyspace's
    /// plan. It is created where it is missing. Default: everything lies in one directory.
    ///
    /// Young levels are rewritten many times as often as the last one, which wears a device unevenly: a small device
    /// that stands many writes can take them off a large one. The log, large items and the manifest stay in the
    /// database's directory.
    ///
    /// To be given at each opening, also for reading only; both directories are locked. Other `levels` than last time
    /// move nothing: tables are read where they are, and merges write to where they belong now. So 0 empties the
    /// second directory, after [`Db::compact`] altogether, and then the database opens without it. Without the second
    /// directory all of its tables are lost. Checkpoints and backups are whole databases of one directory each.
    /// [`Builder::disk_bytes_max`] is for both together.
    ///
    /// # Errors
    /// Opening gives [`crate::Error::YoungDirectory`] when the directory is another database's or holds other files,
    /// and when a database that has tables in a second directory is opened without it.
    pub fn young_levels_dir(mut self, path: impl Into<PathBuf>, levels: usize) -> Self {
        self.young = Some(YoungLevels::Directory(path.into(), levels));
        self
    }

    /// Like [`Builder::young_levels_dir`], in any storage.
    #[doc(hidden)]
    pub fn young_levels_storage(mut self, storage: Arc<dyn Storage>, levels: usize) -> Self {
        self.young = Some(YoungLevels::Storage(storage, levels));
        self
    }

    /// What threads do while they read for a lookup or a scan: [`ReadWait::Poll`] takes a processor for each and gives
    /// more reads per second with few threads (by 15–30 % with 8 of them on a virtual disk). Default: they sleep.
    /// [`Db::set_read_wait`] changes it later.
    #[must_use]
    pub fn read_wait(mut self, wait: ReadWait) -> Self {
        self.settings.read_wait = wait;
        self
    }

    /// Tables and finished blob files that are open at a time, about, in each directory; the others are opened when
    /// they are used, which takes microseconds, and closed when others are. Default: half of the descriptors that the
    /// process may have when the database is opened (`ulimit -n`), less 64; 16 at least. The other half is for the log,
    /// the manifest, files being written, io_uring (one a thread that reads many pages at once) and the program's own.
    ///
    /// An operation that finds no descriptor gives [`crate::Error::Io`] of that file and can be repeated. Means nothing
    /// with an [`Environment`] of its own.
    #[must_use]
    pub fn open_files_max(mut self, files: usize) -> Self {
        self.settings.open_files_max = Some(files.max(1));
        self
    }

    /// Storage, clock and randomness from outside. Default: the directory given, the system's clock.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = Some(environment);
        self
    }

    /// Opens the database.
    ///
    /// Reads the manifest and the log after its last converted position, and finds out whether all tables are there.
    /// The directories of tables are read when their keyspace is first used, and damage in them is noticed then.
    pub fn open(self) -> Result<Db> {
        Db::open_with(self)
    }
}
