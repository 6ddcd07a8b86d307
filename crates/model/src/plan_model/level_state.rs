//! [`LevelState`]: one level as it fills and empties.

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LevelState {
    /// Average number of records in the level, including repeats in several runs and tombstones.
    pub records: f64,
    /// Number of parts of the level's runs over the log's shards, each with its own filter and index; 0 if parts are
    /// large and few.
    pub sections: f64,
    /// Share of the entries for which the runs' filters are made that their records take.
    pub filter_crowding: f64,
    /// Average number of runs over a place.
    pub runs: f64,
    /// Share of the records over a place that its newest run has; 0 where all runs are alike.
    pub newest_share: f64,
    /// Share of the places that have any runs.
    pub occupied: f64,
    /// Average number of runs of this level that are younger than the one that holds a key found here.
    pub younger: f64,
    /// Records written into the level per write of the user, including tombstones.
    pub records_written: f64,
    /// Live items written per write of the user: rewrites of a last level.
    pub live_written: f64,
    /// Writes of the user between two times that the level passes on the same key. Infinite for the last level.
    pub interval: f64,
}

impl LevelState {
    /// Number of runs over a place if all were like its newest.
    pub fn runs_like_newest(&self) -> f64 {
        if self.newest_share > 0.0 { 1.0 / self.newest_share } else { self.runs }
    }

    /// A level that holds `records` records in `runs` runs over a place, and takes in none.
    pub fn of_runs(records: f64, runs: f64) -> Self {
        Self {
            records,
            sections: 0.0,
            filter_crowding: 1.0,
            runs,
            newest_share: 0.0,
            occupied: runs.min(1.0),
            younger: 0.0,
            records_written: 0.0,
            live_written: 0.0,
            interval: f64::INFINITY,
        }
    }
}
