//! [`PhaseLevel`]: one level while a plan is executed in expectation. When its places merge is the policy's to say.

use crate::KeyDistribution;
use crate::policy::{Choice, Shape};

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

    /// The level as the merge policy sees it.
    pub fn shape<'a>(&'a self, writes: &'a Writes) -> LevelShape<'a> {
        let filled = (0..self.places()).filter(|&place| !self.places[place].is_empty()).collect();
        LevelShape { level: self, writes, filled }
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

    /// Share of the level's records that the newest runs of its places have.
    pub fn newest_share(&self, writes: &Writes) -> f64 {
        let newest = self.places.iter().filter_map(|runs| runs.first());
        let items: f64 = newest.map(|run| writes.keys(run.from, run.to) * self.span()).sum();
        items / self.items(writes).max(f64::MIN_POSITIVE)
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
}

/// The places of a level that have runs.
#[derive(Debug)]
pub(super) struct LevelShape<'a> {
    level: &'a PhaseLevel,
    writes: &'a Writes,
    filled: Vec<usize>,
}

impl LevelShape<'_> {
    /// The choice with its position among all places of the level.
    pub fn locate(&self, choice: Choice) -> Choice {
        Choice { place: self.filled[choice.place], ..choice }
    }
}

impl Shape for LevelShape<'_> {
    fn places(&self) -> usize {
        self.filled.len()
    }

    fn runs(&self, place: usize) -> f64 {
        self.level.runs(self.filled[place])
    }

    fn items(&self, place: usize) -> f64 {
        self.level.items_of(self.writes, self.filled[place])
    }

    /// Sizes of items are not modelled here.
    fn bytes(&self, _: usize) -> f64 {
        0.0
    }

    fn obsolete(&self, place: usize) -> f64 {
        self.level.garbage_of(self.writes, self.filled[place])
    }

    fn span(&self, _: usize) -> f64 {
        self.level.span()
    }

    fn runs_full(&self, place: usize, runs_max: u32) -> f64 {
        staggered(runs_max, self.filled[place])
    }
}

/// Number of runs at which a place of a last level is full: from three quarters of `runs_max` to all.
fn staggered(runs_max: u32, place: usize) -> f64 {
    let spread = (place as f64 * 0.618_033_988_749_894_9).fract();
    let less = (spread * f64::from(runs_max / 4 + 1)).floor();
    (f64::from(runs_max) - less).max(2.0)
}
