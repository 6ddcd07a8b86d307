//! [`Pilot`]: decides for one thread whether its lookups go through the table.
//!
//! ```text
//!            hit ratio rises no more              pays                      after an interval, or
//!  warming ────────────────────────► trial ───────────────► engaged ──────────────────────────────► trial
//!                                     │                                   the hit ratio fell
//!                                     │ does not pay
//!                                     ▼         after an interval
//!                                  bypass ──────────────────────► learning: warming, every miss logged ──► trial
//! ```
//!
//! A trial is an experiment on the caller's own lookups (see `trial`), so it measures what counts: time from one lookup
//! to the next, whatever the index is, however much of it is in the processor's caches, and whatever else runs.
//! The caller's work between lookups adds to both sides alike, or is rare and left out.
//!
//! *Hysteresis.* To become engaged, the table has to take less than [`RATIO_IN`] of the time of direct lookups; to stay
//! engaged, less than [`RATIO_STAY`]. *Price.* A trial knows its cost: the number of lookups that went the slower way,
//! times the difference that it found. The interval after it is long enough that the cost is at most [`PRICE_MAX`] of
//! it. The interval also doubles while verdicts stay the same.
//! verdicts stay the same.

use super::clock::Clock;
use super::config::Pace;
use super::stats::Stats;
use super::trial::{Block, Trial, Verdict};

/// Ratio of the time through the table to the time without it, below which a buffer that is not engaged becomes so. A
/// trial favours the table by some percent: its direct lookups share the processor's caches with the table, which later
/// direct lookups do not.
const RATIO_IN: f64 = 0.9;

/// The same ratio, below which an engaged buffer stays engaged.
const RATIO_STAY: f64 = 0.99;

/// Minimum rise of the hit ratio from one window to the next while the table is still warming.
const RISE_MIN: f64 = 0.01;

/// Maximum fall of the hit ratio since the last trial before the next one is due.
const FALL_MAX: f64 = 0.05;

/// Maximum fraction of all time that trials may cost.
const PRICE_MAX: f64 = 0.01;

/// Maximum number of windows of learning between a bypass and a trial.
const LEARNING_WINDOWS: u64 = 4;

/// While a table is filled each window is twice as long as the one before, up to this multiple of the first.
const WINDOW_GROWTH_MAX: u32 = 16;

/// Maximum number of lookups that fill a table, as a multiple of its entries.
const FILLING_MAX: u64 = 4;

/// Average number of lookups for each sampled one: 5 % are sampled (§2.3.3.3).
const SAMPLE_EVERY: u64 = 20;

/// See the module.
#[derive(Debug)]
pub(super) struct Pilot<C> {
    /// Direct lookups until the next decision; 0 while lookups go through the table.
    left_direct: u32,
    /// Lookups through the table until the next decision; 0 while lookups bypass it.
    left_table: u32,
    uses_table: bool,
    until_sample: u32,
    is_learning: bool,
    random: u64,
    misses: u64,
    emitted: u64,
    logged: u64,
    block: u32,
    stage: Stage,
    /// Lookups of the current stage that are not yet in a block.
    ahead: u64,
    interval: u64,
    lookups: u64,
    lookups_direct: u64,
    window: Window,
    /// Numbers of lookups through the table and without it when the current attempt to engage, or the trial, began.
    attempt: [u64; 2],
    /// Hit ratio of the window before the last trial.
    hit_ratio_at_trial: f64,
    last: Option<(Verdict, bool)>,
    trials: u64,
    steps_aside: u64,
    pace: Pace,
    clock: C,
}

#[derive(Debug)]
enum Stage {
    Warming { lookups_left: u64, window: u32, hit_ratio: f64 },
    Trial(Trial),
    Engaged,
    Aside,
}

/// The counts at which a window began.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    lookups: u64,
    misses: u64,
}

impl<C: Clock> Pilot<C> {
    /// A pilot for a table of `capacity` entries; `seed` may be anything.
    pub fn new(pace: Pace, capacity: usize, seed: u64, clock: C) -> Self {
        let window = pace.window.max(1);
        Self {
            left_direct: 0,
            left_table: window,
            uses_table: true,
            until_sample: 1,
            is_learning: false,
            random: seed | 1,
            misses: 0,
            emitted: 0,
            logged: 0,
            block: window,
            stage: Stage::Warming { lookups_left: FILLING_MAX * capacity as u64, window, hit_ratio: 0.0 },
            ahead: 0,
            interval: pace.interval_min,
            lookups: 0,
            lookups_direct: 0,
            window: Window::default(),
            attempt: [0; 2],
            hit_ratio_at_trial: 0.0,
            last: None,
            trials: 0,
            steps_aside: 0,
            pace,
            clock,
        }
    }

    /// Whether [`turn`](Self::turn) is due before the next lookup.
    #[inline(always)]
    pub fn is_turn_due(&self) -> bool {
        self.left() == 0
    }

    /// Number of lookups before the next turn.
    #[inline(always)]
    pub fn left(&self) -> usize {
        (self.left_direct + self.left_table) as usize
    }

    /// Counts a direct lookup; false if the lookup must go through the table, or a turn is due. This is the only cost
    /// of a lookup while the buffer is bypassed.
    #[inline(always)]
    pub fn count_direct(&mut self) -> bool {
        // One subtraction in memory and a branch on its carry, which direct lookups do not take. Not
        // `left -= u32::from(left != 0)`, whose store the compiler loses (rustc 1.95, LLVM 22.1).
        let (left, is_used_up) = self.left_direct.overflowing_sub(1);
        self.left_direct = left;
        if is_used_up {
            off_the_straight_way();
            self.left_direct = 0;
        }
        !is_used_up
    }

    /// Counts `lookups` direct lookups. At least that many must be [left](Self::left).
    #[inline(always)]
    pub fn count_direct_many(&mut self, lookups: usize) {
        self.left_direct -= lookups as u32;
    }

    /// Whether lookups up to the next turn go through the table.
    #[inline(always)]
    pub fn uses_table(&self) -> bool {
        self.uses_table
    }

    /// Counts a lookup through the table.
    #[inline(always)]
    pub fn count_through(&mut self) {
        self.left_table -= 1;
    }

    /// Whether this lookup is sampled, that is, counted and logged.
    #[inline(always)]
    pub fn is_sampled(&mut self) -> bool {
        self.until_sample -= 1;
        self.until_sample == 0
    }

    /// Draws a random number after a sampled lookup. It also determines when the next lookup is sampled.
    pub fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let skipped = self.random % (2 * SAMPLE_EVERY - 1);
        self.until_sample = if self.is_learning { 1 } else { 1 + skipped as u32 };
        self.random >> 16
    }

    pub fn count_miss(&mut self) {
        self.misses += 1;
    }

    pub fn count_emission(&mut self) {
        self.emitted += 1;
    }

    pub fn count_logged(&mut self) {
        self.logged += 1;
    }

    /// Whether lookups bypass the table, for longer than a comparison.
    pub fn is_aside(&self) -> bool {
        matches!(self.stage, Stage::Aside)
    }

    /// Decides where the next lookups go.
    #[cold]
    #[inline(never)]
    pub fn turn(&mut self) {
        self.account();
        if self.ahead > 0 {
            self.advance();
            return;
        }
        match &mut self.stage {
            Stage::Warming { .. } => self.end_window_of_warming(),
            Stage::Trial(trial) => match trial.step(self.clock.now_ns()) {
                Ok(block) => self.begin_block(block),
                Err(verdict) => self.decide(verdict),
            },
            Stage::Engaged => {
                self.attempt = [self.lookups, self.lookups_direct];
                self.begin_trial();
            }
            Stage::Aside => {
                self.attempt = [self.lookups, self.lookups_direct];
                self.is_learning = true;
                self.until_sample = 1;
                let hit_ratio = self.hit_ratio_at_trial;
                let window = self.pace.window.max(1);
                let lookups_left = LEARNING_WINDOWS * u64::from(window);
                self.stage = Stage::Warming { lookups_left, window, hit_ratio };
                self.begin_window(window);
            }
        }
    }

    /// Adds the block that ended to the totals.
    fn account(&mut self) {
        let passed = u64::from(self.block) - self.left() as u64;
        *(if self.uses_table { &mut self.lookups } else { &mut self.lookups_direct }) += passed;
        self.block = self.left_direct + self.left_table;
    }

    fn begin_block(&mut self, block: Block) {
        let lookups = block.lookups;
        (self.left_direct, self.left_table) = if block.uses_table { (0, lookups) } else { (lookups, 0) };
        self.block = block.lookups;
        self.uses_table = block.uses_table;
    }

    fn begin_window(&mut self, lookups: u32) {
        self.window = Window { lookups: self.lookups, misses: self.misses };
        self.begin_block(Block { lookups, uses_table: true });
    }

    fn window_hit_ratio(&self) -> f64 {
        let lookups = self.lookups - self.window.lookups;
        1.0 - (self.misses - self.window.misses) as f64 / lookups.max(1) as f64
    }

    fn end_window_of_warming(&mut self) {
        let now = self.window_hit_ratio();
        if let Stage::Warming { lookups_left, window, hit_ratio } = &mut self.stage {
            let is_rising = now > *hit_ratio + RISE_MIN;
            *lookups_left = lookups_left.saturating_sub(u64::from(*window));
            *hit_ratio = now;
            if is_rising && *lookups_left > 0 {
                if !self.is_learning {
                    let longest = self.pace.window.max(1).saturating_mul(WINDOW_GROWTH_MAX);
                    *window = window.saturating_mul(2).min(longest);
                }
                let lookups = *window;
                self.begin_window(lookups);
                return;
            }
        }
        self.hit_ratio_at_trial = now;
        if self.trials == 0 {
            // The first filling of the table is not a cost that recurs.
            self.attempt = [self.window.lookups, self.lookups_direct];
        }
        self.begin_trial();
    }

    fn begin_trial(&mut self) {
        self.is_learning = false;
        let (trial, block) = Trial::begin(&self.pace, self.ratio_max());
        self.stage = Stage::Trial(trial);
        self.begin_block(block);
    }

    /// Whether the last trial found that the table pays.
    fn was_engaged(&self) -> bool {
        self.last.is_some_and(|(_, pays)| pays)
    }

    /// The ratio that a trial must stay below for lookups to go through the table.
    fn ratio_max(&self) -> f64 {
        if self.was_engaged() { RATIO_STAY } else { RATIO_IN }
    }

    fn decide(&mut self, verdict: Verdict) {
        let was_engaged = self.was_engaged();
        let pays = verdict.ratio < self.ratio_max();
        let is_same = self.last.is_some_and(|(_, engaged)| engaged == pays);
        self.interval = if is_same { self.interval.saturating_mul(2) } else { self.pace.interval_min };
        self.interval = self.interval.clamp(1, self.pace.interval_max.max(1));
        self.interval = self.interval.max((self.spent(verdict, pays) / PRICE_MAX) as u64);
        self.steps_aside += u64::from(!pays && (was_engaged || self.last.is_none()));
        self.trials += 1;
        self.last = Some((verdict, pays));
        self.stage = if pays { Stage::Engaged } else { Stage::Aside };
        self.ahead = self.interval;
        self.window = Window { lookups: self.lookups, misses: self.misses };
        self.begin_stretch(pays);
    }

    /// The cost of the attempt that ends with this verdict, in lookups of the faster way.
    fn spent(&self, verdict: Verdict, pays: bool) -> f64 {
        let (slower, excess) = match pays {
            true => (self.lookups_direct - self.attempt[1], 1.0 / verdict.ratio - 1.0),
            false => (self.lookups - self.attempt[0], verdict.ratio - 1.0),
        };
        slower as f64 * excess.max(0.0)
    }

    /// Begins the next block of a stage that lasts for an interval.
    fn begin_stretch(&mut self, uses_table: bool) {
        let most = if uses_table { self.pace.window.max(1) } else { u32::MAX };
        let lookups = u64::from(most).min(self.ahead) as u32;
        self.ahead -= u64::from(lookups);
        self.begin_block(Block { lookups, uses_table });
    }

    fn advance(&mut self) {
        let uses_table = matches!(self.stage, Stage::Engaged);
        if uses_table {
            let hit_ratio = self.window_hit_ratio();
            if hit_ratio < self.hit_ratio_at_trial - FALL_MAX {
                self.ahead = 0;
                self.interval = self.pace.interval_min;
                self.attempt = [self.lookups, self.lookups_direct];
                self.hit_ratio_at_trial = hit_ratio;
                self.begin_trial();
                return;
            }
            self.hit_ratio_at_trial = self.hit_ratio_at_trial.max(hit_ratio);
            self.window = Window { lookups: self.lookups, misses: self.misses };
        }
        self.begin_stretch(uses_table);
    }

    pub fn stats(&self) -> Stats {
        let passed = u64::from(self.block) - self.left() as u64;
        let (through, direct) = if self.uses_table { (passed, 0) } else { (0, passed) };
        let lookups = self.lookups + through;
        let verdict = self.last.map(|(verdict, _)| verdict);
        Stats {
            lookups,
            hits: lookups - self.misses,
            lookups_direct: self.lookups_direct + direct,
            emitted: self.emitted,
            logged: self.logged,
            trials: self.trials,
            is_aside: self.is_aside(),
            steps_aside: self.steps_aside,
            trial_table_ns: verdict.map_or(0.0, |verdict| verdict.lookup_ns[0]),
            trial_direct_ns: verdict.map_or(0.0, |verdict| verdict.lookup_ns[1]),
            trial_ratio: verdict.map_or(0.0, |verdict| verdict.ratio),
        }
    }
}

/// Tells the compiler to lay out the code at the call as a rare path.
#[cold]
#[inline(always)]
fn off_the_straight_way() {}
