//! Settings of a buffer.

/// Settings of a buffer: its size, and how it measures whether it pays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes of the cache table, 7 items in each 64. The default is 16 MiB: 1.8 million items. It should hold the items
    /// that get most lookups; anything larger wastes processor cache.
    pub cache_bytes: usize,
    /// Bytes of the log of lookups that missed, 15 in each 64. The default is that of the cache table.
    pub log_bytes: usize,
    /// When to compare. Most callers leave this alone.
    pub pace: Pace,
}

/// How often and for how long a buffer compares lookups through itself with lookups without, in lookups of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Number of lookups over which a hit ratio is measured.
    pub window: u32,
    /// Number of lookups that are timed together; up to 512 such blocks in a row while they get faster.
    pub block: u32,
    /// Minimum nanoseconds that lookups are timed for before a time counts, unless 512 blocks come first. The default
    /// is two milliseconds. Short times do not show how fast lookups get when the processor's caches have settled;
    /// long ones make a trial long.
    pub stretch_ns_min: u64,
    /// Number of pairs of timed blocks in a trial, one through the buffer and one without.
    pub pairs: u32,
    /// Lookups from one trial to the next; doubles as long as the outcome is the same.
    pub interval_min: u64,
    /// Maximum of this distance: a change of the workload is noticed after at most this many lookups. The distance is
    /// longer only if a trial cost more than a hundredth of it.
    pub interval_max: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self::with_cache_bytes(16 << 20)
    }
}

impl Config {
    /// A cache table of `bytes` and a log of the same size.
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
