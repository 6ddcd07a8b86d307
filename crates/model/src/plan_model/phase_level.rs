//! [`PhaseLevel`]: one level while a plan is executed in expectation, and when its places merge.
//!
//! The rules are the engine's (`compact/due.rs` and `compact/level_due.rs` there), in the same order.

use crate::KeyDistribution;
use crate::plan::LAST_GARBAGE_SHARE_MAX;

/// Which keys were written when: first each key once, then keys by their popularity.
#[derive(Debug)]
pub(super) struct Writes {
    keys: KeyDistribution,
    /// The writes before this number were those of the load.
    loaded: f64,
    now: f64,
}

impl Writes {
    pub fn none(keys: KeyDistribution) -> Self {
        Self { keys, loaded: 0.0, now: 0.0 }
    }

    /// Each of the next `writes` writes names a new key.
    pub fn begin_load(&mut self, writes: f64) {
        self.loaded = writes;
    }

    /// Number of keys present.
    pub fn present(&self) -> f64 {
        self.keys(0.0, self.now).max(1.0)
    }

    /// Number of writes so far.
    pub fn now(&self) -> f64 {
        self.now
    }

    pub fn set_now(&mut self, now: f64) {
        self.now = now;
    }

    /// Different keys among the writes `from..to`. When a key was loaded is independent of when it is overwritten.
    pub fn keys(&self, from: f64, to: f64) -> f64 {
        let fresh = (to.min(self.loaded) - from).max(0.0);
        let overwrites = to - from.max(self.loaded);
        if overwrites <= 0.0 {
            return fresh;
        }
        let old = self.keys.unique(overwrites);
        fresh + old - fresh * old / self.keys.keys()
    }

    /// Share of the keys among the writes `from..to` that were also written before.
    pub fn repeats(&self, from: f64, to: f64) -> f64 {
        let keys = self.keys(from, to);
        let new = self.keys(0.0, to) - self.keys(0.0, from);
        if keys > 0.0 { (1.0 - new / keys).clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// What the writes `from..to` left at a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub from: f64,
    pub to: f64,
    /// Share of its records that make older ones obsolete, if that is tracked.
    pub repeats: f64,
}

/// Which place of a level merges next, and how far the level is over its bound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    pub place: usize,
    pub pressure: f64,
    /// How far the level is over its bound, for slowing writers.
    pub slowing: f64,
    /// Whether it merges to drop obsolete versions, so that the place is merged with what the next level has there.
    pub collects: bool,
}

/// The level as gets of present keys see it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Met {
    /// Share of the gets that it answers.
    pub found: f64,
    /// Share of its places that have runs.
    pub occupied: f64,
    /// Average number of runs that are younger than the one that holds the key.
    pub younger: f64,
}

/// Equal parts of the hash space, each with its runs, young to old.
#[derive(Debug)]
pub(super) struct PhaseLevel {
    places: Vec<Vec<Run>>,
}

impl PhaseLevel {
    pub fn new(places: usize) -> Self {
        Self { places: vec![Vec::new(); places] }
    }

    pub fn places(&self) -> usize {
        self.places.len()
    }

    /// A place's share of the hash space.
    pub fn span(&self) -> f64 {
        1.0 / self.places.len() as f64
    }

    /// Records in the level.
    pub fn items(&self, writes: &Writes) -> f64 {
        (0..self.places()).map(|place| self.items_of(writes, place)).sum()
    }

    /// Different keys over each place, summed up.
    pub fn keys(&self, writes: &Writes) -> f64 {
        let filled = self.places.iter().filter_map(|runs| Some((runs.last()?.from, runs.first()?.to)));
        filled.map(|(from, to)| writes.keys(from, to) * self.span()).sum()
    }

    /// Records that have newer ones, as the engine counts them.
    pub fn garbage(&self, writes: &Writes) -> f64 {
        (0..self.places()).map(|place| self.garbage_of(writes, place)).sum()
    }

    pub fn push(&mut self, place: usize, run: Run) {
        self.places[place].insert(0, run);
    }

    pub fn push_everywhere(&mut self, run: Run) {
        self.places.iter_mut().for_each(|runs| runs.insert(0, run));
    }

    /// Empties a place that has runs. Returns the range of writes that its runs hold.
    pub fn take(&mut self, place: usize) -> (f64, f64) {
        let runs = std::mem::take(&mut self.places[place]);
        (runs[runs.len() - 1].from, runs[0].to)
    }

    /// Takes the runs of a place and returns the run that merging them with the writes `from..to` from above makes.
    pub fn joined(&mut self, place: usize, from: f64, to: f64) -> Run {
        let old = std::mem::take(&mut self.places[place]);
        Run { from: old.last().map_or(from, |run| run.from), to, repeats: 0.0 }
    }

    /// The youngest level: the place with most items while the level holds more than `items_max`. `by_garbage` is how
    /// far obsolete versions are over their bound.
    pub fn of_runs(&self, writes: &Writes, runs_max: u32, items_max: f64, by_garbage: f64) -> Option<Due> {
        let by_items = self.items(writes) / items_max.max(1.0);
        let fullest = self.most(|place| self.items_of(writes, place))?;
        let tallest = self.most(|place| self.runs(place))?;
        let foulest = self.most(|place| self.garbage_of(writes, place))?;
        let others =
            [(tallest, self.runs(tallest) / f64::from(runs_max), false), (foulest, by_garbage, true)];
        Some(first_or_more((fullest, by_items), &others, by_items.max(by_garbage)))
    }

    /// A tiering level in between: the place with most runs while the average number of runs exceeds that of staggered
    /// places.
    pub fn of_tiering(&self, writes: &Writes, runs_max: u32, by_garbage: f64) -> Option<Due> {
        let runs_max = f64::from(runs_max);
        let tallest = self.most(|place| self.runs(place))?;
        let mean = self.runs_mean();
        let is_worth_it = self.runs(tallest) >= (runs_max / 2.0 + 1.0).floor().max(2.0);
        let mean_max = mean_runs(runs_max, self.places() as f64);
        let by_mean = if is_worth_it { mean / mean_max } else { 0.0 };
        let by_height = self.runs(tallest) / (runs_max - 0.5);
        let foulest = self.most(|place| self.garbage_of(writes, place))?;
        let slowing = by_mean.max(self.runs(tallest) / runs_max).max(by_garbage);
        Some(first_or_more((tallest, by_mean.max(by_height)), &[(foulest, by_garbage, true)], slowing))
    }

    /// A last level that tiers: the place that exceeds its number of runs or its share of garbage most.
    pub fn of_last_tiering(&self, writes: &Writes, runs_max: u32) -> Option<Due> {
        let over = |place: usize| {
            let runs = self.runs(place);
            if runs < 2.0 {
                return 0.0;
            }
            let garbage = self.garbage_of(writes, place) / self.items_of(writes, place).max(1.0);
            (garbage / LAST_GARBAGE_SHARE_MAX).max(runs / (staggered(runs_max, place) - 0.5))
        };
        let worst = self.most(over)?;
        let slowing = self.runs(worst) / f64::from(runs_max);
        Some(Due { place: worst, pressure: over(worst), slowing, collects: false })
    }

    /// A leveling level in between: the place with most items while the level is larger than its ratio allows.
    pub fn of_leveling(&self, writes: &Writes, items_max: f64) -> Option<Due> {
        let place = self.most(|place| self.items_of(writes, place))?;
        let pressure = self.items(writes) / items_max.max(1.0);
        Some(Due { place, pressure, slowing: pressure, collects: false })
    }

    /// Runs at a place.
    pub fn runs(&self, place: usize) -> f64 {
        self.places[place].len() as f64
    }

    /// Average number of runs over a place.
    pub fn runs_mean(&self) -> f64 {
        (0..self.places()).map(|place| self.runs(place) * self.span()).sum()
    }

    /// Records at a place.
    pub fn items_of(&self, writes: &Writes, place: usize) -> f64 {
        self.places[place].iter().map(|run| writes.keys(run.from, run.to) * self.span()).sum()
    }

    /// The level as gets of present keys see it, where all keys are equally likely.
    pub fn met(&self, writes: &Writes) -> Met {
        let mut met = Met::default();
        let now = writes.now();
        for runs in &self.places {
            met.occupied += if runs.is_empty() { 0.0 } else { self.span() };
            for (younger, run) in runs.iter().enumerate() {
                let here = writes.keys(run.from, now) - writes.keys(run.to, now);
                let share = here / writes.present() * self.span();
                met.found += share;
                met.younger += share * younger as f64;
            }
        }
        met.younger /= met.found.max(f64::MIN_POSITIVE);
        met
    }

    fn garbage_of(&self, writes: &Writes, place: usize) -> f64 {
        let repeated = self.places[place].iter().filter(|run| run.repeats > 0.0);
        repeated.map(|run| writes.keys(run.from, run.to) * self.span() * run.repeats).sum()
    }

    /// The place of the largest weight among the places that have runs.
    fn most(&self, weight: impl Fn(usize) -> f64) -> Option<usize> {
        let filled = (0..self.places()).filter(|&place| !self.places[place].is_empty());
        let weighed = filled.map(|place| (place, weight(place)));
        weighed.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(place, _)| place)
    }
}

/// The place with the highest pressure. `others` count only if they are due.
fn first_or_more(first: (usize, f64), others: &[(usize, f64, bool)], slowing: f64) -> Due {
    let due = others.iter().filter(|(_, pressure, _)| *pressure > 1.0);
    let first = (first.0, first.1, false);
    let most = due.fold(first, |most, &other| if other.1 > most.1 { other } else { most });
    Due { place: most.0, pressure: most.1, slowing, collects: most.2 }
}

/// The mean number of runs over `places` places that are staggered evenly between 0 (a place just merged) and
/// `runs_full`.
pub(super) fn mean_runs(runs_full: f64, places: f64) -> f64 {
    runs_full * (1.0 + 1.0 / places) / 2.0 - 0.5
}

/// The inverse of [`mean_runs`]: its `runs_full`.
pub(super) fn runs_full(mean_runs: f64, places: f64) -> f64 {
    (2.0 * mean_runs + 1.0) / (1.0 + 1.0 / places)
}

/// Number of runs at which a place of a last level is full: from three quarters of `runs_max` to all.
fn staggered(runs_max: u32, place: usize) -> f64 {
    let spread = (place as f64 * 0.618_033_988_749_894_9).fract();
    let less = (spread * f64::from(runs_max / 4 + 1)).floor();
    (f64::from(runs_max) - less).max(2.0)
}
