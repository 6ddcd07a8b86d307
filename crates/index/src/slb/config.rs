//! Settings of a buffer.

/// Settings of a buffer: how large, and how it finds out whether it pays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes of the cache table, 7 items in each 64. The default is 16 MiB: 1.8 million items. It should hold the items
    /// that most lookups are for; what is more costs processor cache.
    pub cache_bytes: usize,
    /// Bytes of the log of lookups that missed, 15 in each 64. The default is that of the cache table.
    pub log_bytes: usize,
    /// When to try what. Most callers leave this alone.
    pub pace: Pace,
}

/// How often and how long a buffer compares lookups through itself with lookups without, in lookups of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Lookups over which a hit ratio is taken.
    pub window: u32,
    /// Lookups that are timed at once; up to 512 such blocks in a row while they get faster.
    pub block: u32,
    /// Nanoseconds that lookups are timed for before a time counts, unless they are 512 blocks by then. The default is
    /// two milliseconds. Short times tell nothing of how fast lookups get when the processor's caches have settled;
    /// long ones make a trial long.
    pub stretch_ns_min: u64,
    /// Pairs of timed blocks of a trial, one through the buffer and one without.
    pub pairs: u32,
    /// Lookups from one trial to the next; the distance doubles as long as the outcome is the same.
    pub interval_min: u64,
    /// The longest such distance: after so many lookups at the latest a change of the workload is noticed. Only where a
    /// trial cost more than a hundredth of it, the distance is longer.
    pub interval_max: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self::with_cache_bytes(16 << 20)
    }
}

impl Config {
    /// A cache table of `bytes` and a log as large.
    pub fn with_cache_bytes(bytes: usize) -> Self {
        Self { cache_bytes: bytes, log_bytes: bytes, pace: Pace::default() }
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            window: 1 << 16,
            block: 1024,
            stretch_ns_min: 2_000_000,
            pairs: 11,
            interval_min: 1 << 21,
            interval_max: 1 << 25,
        }
    }
}
