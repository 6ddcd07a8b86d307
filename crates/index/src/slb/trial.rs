//! [`Trial`]: blocks of lookups through the table and without it, timed alternately.

use super::config::Pace;

/// Number of pairs after which a trial may end early.
const PAIRS_CLEAR: usize = 3;

/// A trial ends early only if the ratio of every pair differs from `ratio_asked` by more than this fraction divided by
/// the number of pairs: a tenth after three, a twentieth after six.
const MARGIN_CLEAR: f64 = 0.3;

/// Ratio of a stretch's time per lookup to that of the stretch before, below which the processor's caches are still
/// settling.
const SETTLING_RATIO: f64 = 0.97;

/// Maximum length of a stretch in blocks.
const STRETCH_BLOCKS_MAX: usize = 512;

/// A running trial. The sides of a pair alternate in order, so that a drift favours neither.
///
/// Each side of a pair is a series of stretches, each twice as long as the one before. After lookups of the other side
/// they get faster, while memory that only this side uses comes back to the processor's caches: in the end a side may
/// be twice as fast as in its first few thousand lookups. The stretch that counts is the first that is no faster than
/// the one before, which may take some hundred thousand lookups. Short stretches do not show this: their speed-up is
/// smaller than their random variation.
///
/// A stretch is a series of blocks, each of them timed. Its time is the mean of its faster half, which discards
/// interruptions unrelated to either side: another process on the same processor, or work of the caller other than
/// lookups. Later stretches are longer, so that most pauses are in one that counts.
#[derive(Debug)]
pub(super) struct Trial {
    /// Nanoseconds of a lookup through the table, and of one without.
    pairs: Vec<[f64; 2]>,
    pairs_wanted: usize,
    ratio_asked: f64,
    block: u32,
    stretch_ns_min: u64,
    half: usize,
    /// Number of blocks in the current stretch.
    stretch: usize,
    /// Nanoseconds of its blocks so far.
    blocks_ns: Vec<u64>,
    /// Nanoseconds of a lookup in the stretch before; `None` in a side's first.
    lookup_ns_before: Option<f64>,
    /// Start time of the current block; `None` before the trial's first.
    began_ns: Option<u64>,
}

/// Result of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Verdict {
    /// Median of the time through the table divided by the time without.
    pub ratio: f64,
    /// Median nanoseconds from one lookup to the next, through the table and without.
    pub lookup_ns: [f64; 2],
}

/// The kind and number of the next lookups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub lookups: u32,
    pub uses_table: bool,
}

impl Trial {
    /// Begins a trial of whether the ratio is less than `ratio_asked`. Returns it and its first block, whose time does
    /// not count.
    pub fn begin(pace: &Pace, ratio_asked: f64) -> (Self, Block) {
        let pairs_wanted = pace.pairs.max(1) as usize;
        let trial = Self {
            pairs: Vec::with_capacity(pairs_wanted),
            pairs_wanted,
            ratio_asked,
            block: pace.block.max(2),
            stretch_ns_min: pace.stretch_ns_min,
            half: 0,
            stretch: 1,
            blocks_ns: Vec::with_capacity(STRETCH_BLOCKS_MAX),
            lookup_ns_before: None,
            began_ns: None,
        };
        let block = Block { lookups: trial.block / 2, uses_table: trial.uses_table() };
        (trial, block)
    }

    /// Called after a block: returns the next block, or the verdict.
    pub fn step(&mut self, now_ns: u64) -> Result<Block, Verdict> {
        let Some(began_ns) = self.began_ns.replace(now_ns) else { return Ok(self.next()) };
        self.blocks_ns.push(now_ns.saturating_sub(began_ns));
        if self.blocks_ns.len() < self.stretch {
            return Ok(self.next());
        }
        let block_ns = undisturbed_mean(&mut self.blocks_ns).max(1.0);
        self.blocks_ns.clear();
        let lookup_ns = block_ns / f64::from(self.block);
        let is_settled = block_ns * self.stretch as f64 >= self.stretch_ns_min as f64
            && self.lookup_ns_before.is_some_and(|before| lookup_ns >= SETTLING_RATIO * before);
        if !is_settled && self.stretch < STRETCH_BLOCKS_MAX {
            self.stretch *= 2;
            self.lookup_ns_before = Some(lookup_ns);
            return Ok(self.next());
        }
        let side = usize::from(!self.uses_table());
        if self.half.is_multiple_of(2) {
            self.pairs.push([0.0; 2]);
        }
        if let Some(pair) = self.pairs.last_mut() {
            pair[side] = lookup_ns;
        }
        self.half += 1;
        self.stretch = 1;
        self.lookup_ns_before = None;
        let is_over = self.half == 2 * self.pairs_wanted || self.is_clear();
        if is_over { Err(self.verdict()) } else { Ok(self.next()) }
    }

    fn next(&self) -> Block {
        Block { lookups: self.block, uses_table: self.uses_table() }
    }

    /// Whether enough pairs are done, and all of them are clearly on one side.
    fn is_clear(&self) -> bool {
        let margin = 1.0 + MARGIN_CLEAR / self.pairs.len() as f64;
        let [low, high] = [self.ratio_asked / margin, self.ratio_asked * margin];
        self.half.is_multiple_of(2)
            && self.pairs.len() >= PAIRS_CLEAR
            && (self.ratios().all(|ratio| ratio < low) || self.ratios().all(|ratio| ratio > high))
    }

    fn ratios(&self) -> impl Iterator<Item = f64> + '_ {
        self.pairs.iter().map(|pair| pair[0] / pair[1])
    }

    /// Table, direct, direct, table, table ...
    fn uses_table(&self) -> bool {
        matches!(self.half % 4, 0 | 3)
    }

    fn verdict(&self) -> Verdict {
        let each = |side: usize| median(self.pairs.iter().map(|pair| pair[side]).collect());
        Verdict { ratio: median(self.ratios().collect()), lookup_ns: [each(0), each(1)] }
    }
}

/// The mean of the smaller half. A quantile would jump if the fraction of disturbed blocks is near the one it excludes.
fn undisturbed_mean(numbers: &mut [u64]) -> f64 {
    numbers.sort_unstable();
    let half = &numbers[..numbers.len().div_ceil(2)];
    half.iter().sum::<u64>() as f64 / half.len().max(1) as f64
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Lookups that take `ns` nanoseconds through the table and without. After a lookup of the other side, those
    /// without take four times as long; half of the excess disappears with each `settling` lookups.
    #[derive(Clone, Copy)]
    struct Lookups {
        ns: [u64; 2],
        settling: f64,
        /// A pause of this many nanoseconds comes with each `pause_every` lookups.
        pause_ns: u64,
        pause_every: u64,
    }

    impl Lookups {
        /// Lookups without anything to settle, and without pauses.
        fn steady(ns: [u64; 2]) -> Self {
            Self { ns, settling: 0.01, pause_ns: 0, pause_every: 1 }
        }

        fn settling(ns: [u64; 2], settling: f64) -> Self {
            Self { settling, ..Self::steady(ns) }
        }

        /// Runs a trial of these lookups, with stretches of at least `stretch_ns_min` nanoseconds, after `before`
        /// lookups. Also returns the number of lookups that each side was given.
        fn try_out(self, stretch_ns_min: u64, before: u64) -> (Verdict, [u32; 2]) {
            let pace = Pace { block: 100, stretch_ns_min, pairs: 5, ..Pace::default() };
            let (mut trial, mut block) = Trial::begin(&pace, 0.95);
            let (mut now, mut count, mut given) = (7, before, [0; 2]);
            let mut excess = 0.0;
            loop {
                let side = usize::from(!block.uses_table);
                given[side] += block.lookups;
                for _ in 0..block.lookups {
                    excess = if side == 0 { 3.0 } else { excess * 0.5_f64.powf(1.0 / self.settling) };
                    let unsettled = if side == 0 { 0.0 } else { excess };
                    now += self.ns[side] + (unsettled * self.ns[side] as f64) as u64;
                    now += if count.is_multiple_of(self.pause_every) { self.pause_ns } else { 0 };
                    count += 1;
                }
                match trial.step(now) {
                    Ok(next) => block = next,
                    Err(verdict) => return (verdict, given),
                }
            }
        }
    }

    #[test]
    fn a_trial_finds_the_ratio_and_gives_both_sides_as_many_lookups() {
        let (verdict, given) = Lookups::steady([45, 50]).try_out(0, 0);
        assert_eq!(verdict, Verdict { ratio: 0.9, lookup_ns: [45.0, 50.0] });
        assert_eq!(given, [1550, 1500]);
    }

    #[test]
    fn what_the_other_side_left_in_the_caches_does_not_count() {
        for settling in [20.0, 100.0, 300.0, 1000.0] {
            let (verdict, _) = Lookups::settling([45, 50], settling).try_out(0, 0);
            assert!((0.85..=0.9).contains(&verdict.ratio), "{settling}: {verdict:?}");
        }
    }

    #[test]
    fn what_goes_too_slowly_to_be_seen_in_short_stretches_does_not_count_either() {
        // Half of the excess disappears with sixty blocks: a fiftieth from the first stretch to the second.
        let slow = Lookups::settling([45, 50], 6_000.0);
        let [(short, _), (long, _)] = [0, 800_000].map(|stretch_ns_min| slow.try_out(stretch_ns_min, 0));
        assert!(short.ratio < 0.3 && (0.85..=0.9).contains(&long.ratio), "{short:?} {long:?}");
    }

    #[test]
    fn a_clear_trial_ends_early() {
        for (through_ns, pairs) in [(20, 3), (43, 3), (45, 5), (50, 5), (53, 3), (100, 3)] {
            let (verdict, given) = Lookups::steady([through_ns, 50]).try_out(0, 0);
            let ratio = through_ns as f64 / 50.0;
            assert_eq!((verdict.ratio, given), (ratio, [50 + 300 * pairs, 300 * pairs]));
        }
    }

    #[test]
    fn what_the_caller_does_now_and_then_does_not_count() {
        // As long as 6,000 lookups in each 10,000: most stretches of 6,400 have one.
        let lookups = Lookups { pause_ns: 300_000, pause_every: 10_000, ..Lookups::steady([45, 50]) };
        for before in (0..10_000).step_by(300) {
            let (verdict, _) = lookups.try_out(200_000, before);
            assert_eq!(verdict.ratio, 0.9, "{before}");
        }
    }

    #[test]
    fn what_the_caller_does_in_each_block_counts() {
        let lookups = Lookups { pause_ns: 5_000, pause_every: 50, ..Lookups::steady([25, 50]) };
        let (verdict, _) = lookups.try_out(200_000, 0);
        assert_eq!(verdict.lookup_ns, [125.0, 150.0]);
    }

    #[test]
    fn what_the_caller_does_in_half_of_all_blocks_counts_on_both_sides_or_neither() {
        // With pauses on one side only, it would be 1.0 or 0.33.
        for pause_every in 150..250 {
            let lookups = Lookups { pause_ns: 5_000, pause_every, ..Lookups::steady([25, 50]) };
            let (verdict, _) = lookups.try_out(200_000, 0);
            assert!((0.45..0.8).contains(&verdict.ratio), "{pause_every}: {verdict:?}");
        }
    }
}
