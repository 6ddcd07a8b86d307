//! [`Trial`]: blocks of lookups through the table and without it, timed in turns.

use super::config::Pace;

/// Pairs after which a trial may end early.
const PAIRS_CLEAR: usize = 3;

/// Ratios below or above which, if all pairs agree, the outcome is clear.
const RATIOS_CLEAR: [f64; 2] = [0.8, 1.2];

/// What a stretch must take less than, in terms of the time per lookup of the one before, for the processor's caches to
/// be still settling.
const SETTLING_RATIO: f64 = 0.97;

/// The longest stretch, in blocks.
const STRETCH_BLOCKS_MAX: u32 = 256;

/// A trial that is going on. Which of a pair comes first alternates, so that a drift favours neither.
///
/// Each side of a pair is a row of stretches, each twice as long as the one before. After lookups of the other side
/// they get faster, while memory that only this side uses comes back to the processor's caches: in the end a side may
/// be twice as fast as in its first few thousand lookups. What counts is the first stretch that is no faster than the
/// one before, which it may be only after some hundred thousand lookups. Short stretches tell nothing of that: what
/// they get faster by is less than they differ by chance.
#[derive(Debug)]
pub(super) struct Trial {
    /// Nanoseconds of a lookup through the table, and of one without.
    pairs: Vec<[f64; 2]>,
    pairs_wanted: usize,
    block: u32,
    stretch_ns_min: u64,
    half: usize,
    /// Blocks in the present stretch.
    stretch: u32,
    /// Nanoseconds of a lookup in the stretch before; none in a side's first.
    lookup_ns_before: Option<f64>,
    /// When the present stretch began; none before the trial's first.
    began_ns: Option<u64>,
}

/// What a trial found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Verdict {
    /// Median of the time through the table divided by the time without.
    pub ratio: f64,
    /// Median nanoseconds from one lookup to the next, through the table and without.
    pub lookup_ns: [f64; 2],
}

/// What lookups come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub lookups: u32,
    pub uses_table: bool,
}

impl Trial {
    /// A trial, and its first block, whose time doesn't count.
    pub fn begin(pace: &Pace) -> (Self, Block) {
        let pairs_wanted = pace.pairs.max(1) as usize;
        let trial = Self {
            pairs: Vec::with_capacity(pairs_wanted),
            pairs_wanted,
            block: pace.block.max(2),
            stretch_ns_min: pace.stretch_ns_min,
            half: 0,
            stretch: 1,
            lookup_ns_before: None,
            began_ns: None,
        };
        let block = Block { lookups: trial.block / 2, uses_table: trial.uses_table() };
        (trial, block)
    }

    /// After a block: the next one, or what was found.
    pub fn step(&mut self, now_ns: u64) -> Result<Block, Verdict> {
        let Some(began_ns) = self.began_ns.replace(now_ns) else { return Ok(self.next()) };
        let elapsed_ns = now_ns.saturating_sub(began_ns).max(1);
        let lookup_ns = elapsed_ns as f64 / f64::from(self.stretch_len());
        let is_settled = elapsed_ns >= self.stretch_ns_min
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
        Block { lookups: self.stretch_len(), uses_table: self.uses_table() }
    }

    fn stretch_len(&self) -> u32 {
        self.block.saturating_mul(self.stretch)
    }

    /// Whether enough pairs are done, and all of them far on one side.
    fn is_clear(&self) -> bool {
        let [low, high] = RATIOS_CLEAR;
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

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Nothing that would have to settle.
    const NONE: f64 = 0.01;

    /// Runs a trial in which lookups take so many nanoseconds through the table and without. After one of the other
    /// side those without take four times as many; half of the excess goes with each `settling` lookups. A block in
    /// `outliers` is interrupted.
    fn run(ns: [u64; 2], settling: f64, outliers: &[usize]) -> (Verdict, [u32; 2]) {
        run_for(0, ns, settling, outliers)
    }

    /// The same in stretches of so many nanoseconds at least.
    fn run_for(stretch_ns_min: u64, ns: [u64; 2], settling: f64, outliers: &[usize]) -> (Verdict, [u32; 2]) {
        let pace = Pace { block: 100, stretch_ns_min, pairs: 5, ..Pace::default() };
        let (mut trial, mut block) = Trial::begin(&pace);
        let (mut now, mut lookups, mut steps) = (7, [0; 2], 0);
        let mut excess = 0.0;
        loop {
            let side = usize::from(!block.uses_table);
            lookups[side] += block.lookups;
            for _ in 0..block.lookups {
                excess = if side == 0 { 3.0 } else { excess * 0.5_f64.powf(1.0 / settling) };
                now += ns[side] + if side == 0 { 0 } else { (excess * ns[side] as f64) as u64 };
            }
            now += if outliers.contains(&steps) { 1_000_000 } else { 0 };
            steps += 1;
            match trial.step(now) {
                Ok(next) => block = next,
                Err(verdict) => return (verdict, lookups),
            }
        }
    }

    #[test]
    fn a_trial_finds_the_ratio_and_gives_both_sides_as_many_lookups() {
        let (verdict, lookups) = run([45, 50], NONE, &[]);
        assert_eq!(verdict, Verdict { ratio: 0.9, lookup_ns: [45.0, 50.0] });
        assert_eq!(lookups, [1550, 1500]);
    }

    #[test]
    fn what_the_other_side_left_in_the_caches_does_not_count() {
        for settling in [20.0, 100.0, 300.0, 1000.0] {
            let (verdict, _) = run([45, 50], settling, &[]);
            assert!((0.85..=0.9).contains(&verdict.ratio), "{settling}: {verdict:?}");
        }
    }

    #[test]
    fn what_goes_too_slowly_to_be_seen_in_short_stretches_does_not_count_either() {
        // Half of the excess goes with thirty blocks: a fortieth from the first stretch to the second.
        let (short, _) = run([45, 50], 3_000.0, &[]);
        let (long, _) = run_for(800_000, [45, 50], 3_000.0, &[]);
        assert!(short.ratio < 0.3 && (0.85..=0.9).contains(&long.ratio), "{short:?} {long:?}");
    }

    #[test]
    fn a_clear_trial_ends_early() {
        for (through_ns, ratio) in [(20, 0.4), (100, 2.0)] {
            let (verdict, lookups) = run([through_ns, 50], NONE, &[]);
            assert_eq!((verdict.ratio, lookups), (ratio, [950, 900]));
        }
    }

    #[test]
    fn a_few_interruptions_change_nothing() {
        let (verdict, _) = run([45, 50], NONE, &[1, 5]);
        assert_eq!(verdict.ratio, 0.9);
    }
}
