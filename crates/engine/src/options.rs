//! The settings of a database. Each has a default that suits most programs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use alluvium_base::PrefixFunction;
use alluvium_cache::Codec;
use alluvium_io::{ReadWait, Storage};
use alluvium_model::Plan;

use crate::environment::Environment;
use crate::table::ITEM_BYTES_MAX;
use crate::table_sizes::TableSizes;
use crate::workload::Workload;
use crate::young_directory::YoungLevels;

/// When a write is acknowledged. This determines which writes a power cut can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Acknowledged when it is in memory. A crash of the process or the machine loses the writes since the last
    /// [`crate::Db::persist`] or freeze of the log. Fastest.
    Buffered,
    /// Acknowledged when the operating system has it: a crash of the process loses nothing, a power cut or a crash of
    /// the machine what it loses with [`Durability::Buffered`]. Costs a call of the system, about a microsecond;
    /// writers that wait at the same time share one. Large items are written to the device first, in whole blocks.
    Process,
    /// Acknowledged when it is in memory, and synced in the background at this interval: a crash loses at most the
    /// writes of approximately that long. Sensible are 1 ms to 1 s. Shorter intervals count as 1 ms, longer ones than a
    /// day as a day.
    Interval(Duration),
    /// Acknowledged when it is on the device. Writers that wait at the same time share one sync. The default.
    Sync,
}

/// Settings and components of a database about to be opened. Made by [`crate::Db::builder`].
#[derive(Debug, Clone)]
pub struct Builder {
    pub(crate) path: PathBuf,
    pub(crate) settings: Settings,
    pub(crate) environment: Option<Environment>,
    pub(crate) young: Option<YoungLevels>,
}

/// The source of the plan for keyspaces to be created, and for those that follow the database's plan. Stored in the
/// manifest.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum PlanChoice {
    /// The best plan that the engine executes: for [`Builder::expected_items`] items, with up to half a byte of memory
    /// per item, or 50 MB if that is more ([`Builder::index_bytes_per_item`]), under the [`Builder::workload`], on the
    /// device as measured by `alluvium calibrate` if that was run. When a keyspace has at least 100,000 items and 1.5
    /// times as many as its plan was made for, the planner makes a new plan for twice its present items; it replaces
    /// the old one if that pays off before the items have doubled ([`crate::Stats::plan_decisions`]). Keyspaces whose
    /// plan was given explicitly keep it.
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

/// The settings that are plain values, which can be printed and stored.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub plan: PlanChoice,
    pub durability: Durability,
    pub expected_items: u64,
    pub workload: Option<Workload>,
    pub index_bytes_per_item: Option<f64>,
    pub background: bool,
    pub create: bool,
    pub inline_bytes_max: usize,
    pub blob_file_bytes_max: u64,
    /// Minimum content of a blob record whose body is stored in blocks of its own.
    pub blob_aligned_bytes_min: usize,
    /// Minimum bytes of garbage in blob files that are collected.
    pub blob_garbage_bytes_min: u64,
    /// Minimum bytes of expired and removed items in a unit or container that is rewritten for them. Less garbage is
    /// left to merges and compactions.
    pub garbage_bytes_min: u64,
    /// A directory of chains is saved when its keyspace has written this number of times its bytes to the log.
    pub directory_log_factor: u64,
    pub read_only: bool,
    pub memory_bytes_max: Option<u64>,
    /// The part of a limit for the whole process that is not available to the database.
    pub program_bytes: u64,
    /// Maximum bytes of the row cache; `None` for the default.
    pub row_cache_bytes_max: Option<u64>,
    /// How rows that the row cache would drop are compressed; `None` if it drops them.
    pub row_codec: Option<Codec>,
    pub disk_bytes_max: Option<u64>,
    /// Whether the oldest items are dropped where the disk limit would refuse writes.
    pub drops_oldest: bool,
    pub background_bytes_per_s_max: Option<u64>,
    pub log_retention_bytes: u64,
    pub log_hold_bytes_max: u64,
    pub ingest_sort_bytes_max: u64,
    pub table_sizes: TableSizes,
    pub read_wait: ReadWait,
    pub open_files_max: Option<usize>,
    /// Functions that find prefixes, for the keyspaces that refer to them by name.
    pub prefix_functions: Vec<PrefixFunction>,
    /// The first number for files of a database about to be created.
    pub first_file: u64,
}

impl Builder {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            settings: Settings {
                plan: PlanChoice::Auto,
                durability: Durability::Sync,
                expected_items: 0,
                workload: None,
                index_bytes_per_item: None,
                background: true,
                create: true,
                inline_bytes_max: ITEM_BYTES_MAX,
                blob_file_bytes_max: 256 << 20,
                blob_aligned_bytes_min: 1 << 20,
                blob_garbage_bytes_min: 1 << 20,
                garbage_bytes_min: 256 << 10,
                directory_log_factor: 8,
                read_only: false,
                memory_bytes_max: None,
                program_bytes: 0,
                row_cache_bytes_max: None,
                row_codec: None,
                disk_bytes_max: None,
                drops_oldest: false,
                background_bytes_per_s_max: None,
                log_retention_bytes: 0,
                log_hold_bytes_max: 1 << 30,
                ingest_sort_bytes_max: 64 << 20,
                table_sizes: TableSizes::default(),
                read_wait: ReadWait::default(),
                open_files_max: None,
                prefix_functions: Vec::new(),
                first_file: 1,
            },
            environment: None,
            young: None,
        }
    }

    /// The plan of keyspaces: a [`Plan`] or a [`PlanChoice`]. Default [`PlanChoice::Auto`]. A plan given here applies
    /// to keyspaces created from now on and to existing ones, as with [`crate::Db::change_plan`].
    pub fn plan(mut self, plan: impl Into<PlanChoice>) -> Self {
        self.settings.plan = plan.into();
        self
    }

    /// When writes are acknowledged. Default [`Durability::Sync`].
    pub fn durability(mut self, durability: Durability) -> Self {
        self.settings.durability = durability;
        self
    }

    /// Number of items that the database will hold, if known. Default 0 (unknown), maximum 10¹²; higher numbers count
    /// as the maximum.
    ///
    /// The share of items that the plan keeps in filtered runs is a share of this number or of the items present,
    /// whichever is larger. A load of known size is therefore merged less often while it is still small, at the cost of
    /// filter memory early; the final state is the same. Plans whose runs stay (`silt-tiering`) divide the hash space
    /// for this number of items from the beginning, in every keyspace.
    pub fn expected_items(mut self, items: u64) -> Self {
        self.settings.expected_items = items;
        self
    }

    /// What the program does with its items, as far as it knows: automatic plans are the best ones for that. Other
    /// plans do not depend on it.
    ///
    /// If it is not given, a keyspace counts the gets that its tables answer. When the share of absent keys among them
    /// has changed by a fifth, a new plan is made, and replaces the old one if that pays off. The default is assumed
    /// otherwise: how many gets there are for each put is not taken from what was counted, since many programs load
    /// their items first.
    pub fn workload(mut self, workload: Workload) -> Self {
        self.settings.workload = Some(workload);
        self
    }

    /// Maximum bytes of memory that an automatic plan takes to find items, per item: log index, filters and indexes.
    /// Default 0.5, and 50 MB at least. From about 2.5 on, a plan can have filters for all items, so that gets of
    /// absent keys read nothing; it prefers such a plan if the [workload](Builder::workload) has such gets.
    pub fn index_bytes_per_item(mut self, bytes: f64) -> Self {
        self.settings.index_bytes_per_item = Some(bytes);
        self
    }

    /// Whether threads do the background work: one writes and syncs the log, one converts frozen segments, one merges,
    /// one collects garbage in blob files, one gives space back. Default true. Without them the program calls
    /// [`crate::Db::run_background_job`] itself; the same calls in the same order then have the same effects.
    pub fn background(mut self, background: bool) -> Self {
        self.settings.background = background;
        self
    }

    /// Whether to create the database if the directory is empty or absent. Default true.
    pub fn create(mut self, create: bool) -> Self {
        self.settings.create = create;
        self
    }

    /// A function that finds the prefixes of keys, for keyspaces created with the
    /// [`alluvium_base::PrefixRule::Function`] of this name. A database stores only the name, so the function must be
    /// given at each opening. Call this once for each function.
    pub fn prefix_function(mut self, function: PrefixFunction) -> Self {
        self.settings.prefix_functions.push(function);
        self
    }

    /// Maximum bytes of an item that is stored in the log and in tables: key, value and some 3 more. Larger items are
    /// stored in blob files, and a get of one costs a second read. Default and maximum 2039, so that two items fit in a
    /// page; higher numbers count as the maximum. With a lower number merges rewrite less, and items above it become
    /// more expensive to read. It may change from one opening to the next.
    pub fn inline_bytes_max(mut self, bytes: usize) -> Self {
        self.settings.inline_bytes_max = bytes;
        self
    }

    /// Size at which a blob file ends, minimum size of records with blocks of their own, and minimum garbage that is
    /// collected. Small sizes are for simulations.
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

    /// Approximate minimum and maximum bytes of tables of the levels below the youngest; tables are smaller than the
    /// minimum if there is not enough data. Default 1 and 32 MiB. For tests and simulations.
    #[doc(hidden)]
    pub fn table_sizes(mut self, bytes_min: u64, bytes_max: u64) -> Self {
        self.settings.table_sizes = TableSizes { bytes_min, bytes_max };
        self
    }

    /// Minimum bytes of expired and removed items in a unit or container that is rewritten in the background for them.
    /// Default 256 KiB. For tests and simulations.
    #[doc(hidden)]
    pub fn garbage_bytes_min(mut self, bytes: u64) -> Self {
        self.settings.garbage_bytes_min = bytes;
        self
    }

    /// How many times the bytes of its directory a chained keyspace writes to the log before the directory is saved
    /// again. Default 8. For tests and simulations.
    #[doc(hidden)]
    pub fn directory_log_factor(mut self, factor: u64) -> Self {
        self.settings.directory_log_factor = factor;
        self
    }

    /// Whether to open for reading only, as [`crate::Db::open_read_only`] does. Default false.
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.settings.read_only = read_only;
        self
    }

    /// A second directory, usually on another device, for the tables of the first `levels` levels of each keyspace's
    /// plan. It is created if it does not exist. Default: all files are in one directory.
    ///
    /// Young levels are rewritten many times as often as the last one, which wears a device unevenly. A small device of
    /// high endurance can take these writes off a large one. The log, large items and the manifest stay in the
    /// database's directory.
    ///
    /// The directory must be given at each opening, also for reading only; both directories are locked. A change of
    /// `levels` moves no tables: existing ones are read where they are, and merges write to the directory that now
    /// applies. With `levels` 0 merges therefore empty the second directory, completely after [`crate::Db::compact`];
    /// then the database opens without it. If the second directory is lost, all tables in it are lost. Checkpoints and
    /// backups are complete databases of one directory each. [`Builder::disk_bytes_max`] limits the sum of both
    /// directories.
    ///
    /// # Errors
    /// Opening returns [`crate::Error::YoungDirectory`] if the directory belongs to another database or contains other
    /// files, and if a database with tables in a second directory is opened without it.
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

    /// What threads do while they wait for the reads of a lookup or a scan. Default: [`ReadWait::Adapt`], they poll for
    /// some of their reads, as long as processors have nothing else to do. With [`ReadWait::Poll`] each takes a
    /// processor, and few threads complete more reads per second (15–30 % more than asleep with 8 threads on a virtual
    /// disk). [`crate::Db::set_read_wait`] changes it later.
    #[must_use]
    pub fn read_wait(mut self, wait: ReadWait) -> Self {
        self.settings.read_wait = wait;
        self
    }

    /// Storage, clock and randomness from outside. Default: the directory given, the system's clock.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = Some(environment);
        self
    }
}
