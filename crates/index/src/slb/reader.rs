//! [`Reader`]: one thread's lookups in buffers.

/// Average number of lookups for each sampled one: 5 % are sampled (§2.3.3.3).
const SAMPLE_EVERY: u64 = 20;

/// One thread's lookups: their counters, and which of them are sampled.
///
/// It belongs to no buffer, so that a thread can keep it beside a shared pointer to one. Lookups are correct with any
/// reader.
#[derive(Debug)]
pub struct Reader {
    until_sample: u32,
    random: u64,
    pub(super) stats: Stats,
}

/// Exact counts of one reader's lookups through tables; lookups of a bypassed buffer are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Lookups through the table.
    pub lookups: u64,
    /// Lookups among these that the table did not answer.
    pub misses: u64,
    /// Items put into the table.
    pub emitted: u64,
    /// Lookups recorded in the log.
    pub logged: u64,
}

impl Stats {
    /// Fraction of the lookups through the table that it answered; 0 without any.
    pub fn hit_ratio(&self) -> f64 {
        let hits = self.lookups - self.misses;
        if self.lookups == 0 { 0.0 } else { hits as f64 / self.lookups as f64 }
    }
}

impl Default for Reader {
    fn default() -> Self {
        Self::with_seed(1)
    }
}

impl Reader {
    /// A reader whose sampling follows from `seed`.
    pub fn with_seed(seed: u64) -> Self {
        Self { until_sample: 1, random: seed | 1, stats: Stats::default() }
    }

    /// The counters.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Whether this lookup is sampled: a hit is then counted in the table, a miss logged.
    #[inline(always)]
    pub(super) fn is_sampled(&mut self) -> bool {
        self.until_sample -= 1;
        self.until_sample == 0
    }

    /// Draws a random number after a sampled lookup. It also determines when the next lookup is sampled.
    pub(super) fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.until_sample = 1 + (self.random % (2 * SAMPLE_EVERY - 1)) as u32;
        self.random >> 16
    }
}
