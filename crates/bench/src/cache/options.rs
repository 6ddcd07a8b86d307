//! Options of `bench cache`.

use std::path::PathBuf;

use alluvium_cache::{Codec, Eviction};
use clap::ValueEnum;

use super::documents::Documents;

/// Options of `bench cache`.
#[derive(Clone, Debug, clap::Args)]
pub struct CacheOptions {
    /// Sizes of items: 8+8, 16+64, 128+1024 bytes, or all three; --key-size and --value-size override them
    #[arg(long, value_enum, default_value = "all")]
    pub shape: Shape,
    /// Items in the cache; by default 16 million tiny, 4 million small, 1 million large ones
    #[arg(long)]
    pub items: Option<u64>,
    /// Bytes of a key, at least 8
    #[arg(long)]
    pub key_size: Option<usize>,
    /// Bytes of a value, at least 8
    #[arg(long)]
    pub value_size: Option<usize>,
    /// Percent of the requests that are gets; by default 95, then 50
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub get_ratio: Option<u8>,
    /// Zipf exponent of the keys' popularity, 0 for uniform; by default 0, then 0.99
    #[arg(long)]
    pub skew: Option<f64>,
    /// Threads; by default 1, then 2
    #[arg(long)]
    pub threads: Option<usize>,
    /// Requests in one call; by default 1, then 32
    #[arg(long)]
    pub batch: Option<usize>,
    /// Whether the engine forgets items or refuses them
    #[arg(long, value_enum, default_value = "cache")]
    pub mode: Mode,
    /// Which threads may read and write what
    #[arg(long, value_enum, default_value = "concurrent-reads")]
    pub access: AccessMode,
    /// Which items are evicted
    #[arg(long, value_enum, default_value = "s3-fifo")]
    pub eviction: Policy,
    /// Percentage of the items for which there is room
    #[arg(long, default_value_t = 100)]
    pub room: u64,
    /// Requests of each thread in each case
    #[arg(long, default_value_t = 8_000_000)]
    pub requests: usize,
    /// Replay a synthetic trace instead, with each shape, and report miss ratios of all policies
    #[arg(long, value_enum)]
    pub trace: Option<TraceKind>,
    /// Fill a store instead, remove half at random, fill it with items of another size, and so on; report how full it
    /// was each time it first refused an item
    #[arg(long)]
    pub shifts: bool,
    /// Run random operations for this long instead, and check the counters at the end
    #[arg(long, value_name = "SECONDS")]
    pub soak: Option<u64>,
    /// Values of `--mode zexpander`: places, session, metrics, random, or a file whose lines are taken
    #[arg(long, default_value = "places")]
    pub values: Documents,
    /// A memcached beside it, which runs first: the two caches then get as much memory as its process took for items
    #[arg(long, value_name = "PROGRAM", num_args = 0..=1, default_missing_value = "memcached")]
    pub with_memcached: Option<PathBuf>,
    /// Memory of each of its two caches, or of each database of `--mode tiered`
    #[arg(long, default_value = "64MiB", value_parser = alluvium_base::units::parse_bytes)]
    pub memory: u64,
    /// How its blocks are compressed: lz4 unless it is given. With `--mode nvm`, compares a cache in a file that
    /// compresses in this way with one that does not, over `--values`
    #[arg(long, value_enum)]
    pub codec: Option<ZoneCodec>,
    /// Share of the hits that its hot zone should serve, in percent
    #[arg(long, default_value_t = 80, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub hot_percent: u8,
    /// What the cache of `--mode nvm` survives
    #[arg(long, value_enum, default_value = "pmem")]
    pub survive: Loss,
    /// Only that cache with these flushes, instead of all
    #[arg(long, value_enum)]
    pub flush: Option<Flush>,
    /// Memory of its write cache; by default a sixty-fourth of `--memory`
    #[arg(long, value_parser = alluvium_base::units::parse_bytes)]
    pub write_cache: Option<u64>,
    /// Directory of its file; by default /dev/shm, and with `--survive power` that of temporary files. With `--mode
    /// tiered` the directory in which the database gets a subdirectory, by default Cargo's `target` or that of
    /// temporary files
    #[arg(long)]
    pub file_dir: Option<std::path::PathBuf>,
    /// With `--mode tiered`: the database is a cache of this size on flash, which begins empty
    #[arg(long, value_parser = alluvium_base::units::parse_bytes)]
    pub disk_max: Option<u64>,
    /// With `--mode tiered`: the plan of the database, by name
    #[arg(long)]
    pub plan: Option<String>,
    /// Seed of all randomness
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Sizes of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shape {
    /// 8-byte keys, 8-byte values
    Tiny,
    /// 16-byte keys, 64-byte values
    Small,
    /// 128-byte keys, 1024-byte values
    Large,
    /// One after another
    All,
}

/// The two modes of the memory engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Items are evicted for others
    Cache,
    /// Nothing is forgotten
    Store,
    /// A cache with a compressed zone beside one without, with `--trace zipf` or `switch`
    Zexpander,
    /// A database whose row cache compresses, beside one whose row cache does not; `--soak` runs it for a time
    Tiered,
    /// A cache in a file beside one in memory
    #[cfg(target_os = "linux")]
    Nvm,
}

/// What the content of a file survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Loss {
    /// The end of the process
    Process,
    /// A loss of power, in persistent memory, which ordinary memory stands for here
    Pmem,
    /// A loss of power, on any device
    Power,
}

/// When lines are flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Flush {
    /// Where an older item could come back otherwise
    Needed,
    /// The same, and items that are set often are in memory, with `--survive pmem`
    WriteCache,
    /// With each set the item and then the descriptor, as without checksums
    EverySet,
}

/// Access modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AccessMode {
    /// EREW: each thread has a cache of its own
    Exclusive,
    /// CREW: all read, each partition has one writer
    ConcurrentReads,
    /// CRCW: all read and write
    Concurrent,
}

/// Eviction policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Policy {
    /// Probation, main log, memory of evicted keys
    S3Fifo,
    /// Evicts the oldest item
    Fifo,
    /// Evicts the item not used for the longest time
    Lru,
    /// Lim's approximation of LRU
    ApproximateLru,
}

/// Synthetic traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TraceKind {
    /// Popularity by Zipf's law, exponent 0.99
    Zipf,
    /// The same, with runs of keys that are never requested again; only the other requests count
    Scan,
    /// The same, but every million requests the ranks move by 5 % of the keys
    Drift,
    /// By Zipf's law, then all keys alike, then by Zipf's law again; for `--mode zexpander`
    Switch,
    /// One after another
    All,
}

/// Codecs of the compressed zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ZoneCodec {
    /// LZ4
    Lz4,
    /// zstd with a dictionary that is learned from the items
    #[cfg(feature = "zstd")]
    Zstd,
    /// No compression
    None,
}

impl CacheOptions {
    /// The codec of a zone.
    pub fn zone_codec(&self) -> Codec {
        self.codec.unwrap_or(ZoneCodec::Lz4).codec()
    }
}

impl ZoneCodec {
    /// The cache's name for the codec.
    pub fn codec(self) -> Codec {
        match self {
            Self::Lz4 => Codec::Lz4,
            #[cfg(feature = "zstd")]
            Self::Zstd => Codec::Zstd,
            Self::None => Codec::None,
        }
    }
}

impl Policy {
    /// The cache's name for the policy.
    pub fn eviction(self) -> Eviction {
        match self {
            Self::S3Fifo => Eviction::S3Fifo,
            Self::Fifo => Eviction::Fifo,
            Self::Lru => Eviction::Lru,
            Self::ApproximateLru => Eviction::ApproximateLru,
        }
    }
}

/// The items of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    /// The shape's name.
    pub name: &'static str,
    /// Items.
    pub items: u64,
    /// Bytes of a key.
    pub key_bytes: usize,
    /// Bytes of a value.
    pub value_bytes: usize,
}

impl CacheOptions {
    /// The requested shapes.
    pub fn cases(&self) -> Vec<Case> {
        let of = |name, items, key_bytes, value_bytes| Case {
            name,
            items: self.items.unwrap_or(items).clamp(1, u64::from(super::requests::IS_SET)),
            key_bytes: self.key_size.unwrap_or(key_bytes).max(8),
            value_bytes: self.value_size.unwrap_or(value_bytes).max(8),
        };
        let shapes = [
            (Shape::Tiny, of("tiny", 16 << 20, 8, 8)),
            (Shape::Small, of("small", 4 << 20, 16, 64)),
            (Shape::Large, of("large", 1 << 20, 128, 1024)),
        ];
        let wanted = shapes.into_iter().filter(|(shape, _)| [*shape, Shape::All].contains(&self.shape));
        wanted.map(|(_, case)| case).collect()
    }
}
