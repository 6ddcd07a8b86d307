//! [`Stats`]: what a buffer did for one thread.

/// Counts of one thread's lookups, exact, and what its last trial found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    /// Lookups through the table.
    pub lookups: u64,
    /// Of these, lookups that the table answered.
    pub hits: u64,
    /// Lookups that went to the index at once, aside or for comparison.
    pub lookups_direct: u64,
    /// Items put into the table.
    pub emitted: u64,
    /// Lookups that the log took note of.
    pub logged: u64,
    /// Trials that ended.
    pub trials: u64,
    /// Whether the buffer has stepped aside.
    pub is_aside: bool,
    /// How often it has stepped aside.
    pub steps_aside: u64,
    /// Of the last trial: nanoseconds from one lookup to the next through the table, what the caller does between them
    /// included; 0 before the first trial.
    pub trial_table_ns: f64,
    /// The same without the table.
    pub trial_direct_ns: f64,
    /// Median of the trial's ratios, through the table by without: below 1 the buffer pays.
    pub trial_ratio: f64,
}

impl Stats {
    /// Share of the lookups through the table that it answered; 0 without any.
    pub fn hit_ratio(&self) -> f64 {
        if self.lookups == 0 { 0.0 } else { self.hits as f64 / self.lookups as f64 }
    }
}
