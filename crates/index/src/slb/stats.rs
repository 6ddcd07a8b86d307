//! [`Stats`]: counters of a buffer for one thread.

/// Exact counts of one thread's lookups, and the result of its last trial.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    /// Lookups through the table.
    pub lookups: u64,
    /// Lookups among these that the table answered.
    pub hits: u64,
    /// Lookups that went directly to the index, during a bypass or for comparison.
    pub lookups_direct: u64,
    /// Items put into the table.
    pub emitted: u64,
    /// Lookups recorded in the log.
    pub logged: u64,
    /// Trials that ended.
    pub trials: u64,
    /// Whether lookups bypass the buffer.
    pub is_aside: bool,
    /// Number of times that a bypass began.
    pub steps_aside: u64,
    /// Nanoseconds from one lookup to the next through the table in the last trial, including the caller's work between
    /// them; 0 before the first trial.
    pub trial_table_ns: f64,
    /// The same without the table.
    pub trial_direct_ns: f64,
    /// Median of the trial's ratios of the time through the table to the time without: below 1 the buffer pays.
    pub trial_ratio: f64,
}

impl Stats {
    /// Fraction of the lookups through the table that it answered; 0 without any.
    pub fn hit_ratio(&self) -> f64 {
        if self.lookups == 0 { 0.0 } else { self.hits as f64 / self.lookups as f64 }
    }
}
