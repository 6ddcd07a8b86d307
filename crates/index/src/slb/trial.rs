//! [`Trial`]: blocks of lookups through the table and without it, timed in turns.

use super::config::Pace;

/// Pairs after which a trial may end early.
const PAIRS_CLEAR: usize = 3;

/// Ratios below or above which, if all pairs agree, the outcome is clear.
const RATIOS_CLEAR: [f64; 2] = [0.8, 1.2];

/// A trial that is going on. Which of a pair comes first alternates, so that a drift favours neither.
#[derive(Debug)]
pub(super) struct Trial {
    /// Nanoseconds of a block through the table, and of one without.
    pairs: Vec<[u64; 2]>,
    pairs_wanted: usize,
    block: u32,
    half: usize,
    /// When the block that is timed began; none while lookups settle the processor's caches before it.
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
    /// A trial, and its first block.
    pub fn begin(pace: &Pace) -> (Self, Block) {
        let pairs_wanted = pace.pairs.max(1) as usize;
        let trial = Self {
            pairs: Vec::with_capacity(pairs_wanted),
            pairs_wanted,
            block: pace.block.max(2),
            half: 0,
            began_ns: None,
        };
        let block = trial.settling();
        (trial, block)
    }

    /// After a block: the next one, or what was found.
    pub fn step(&mut self, now_ns: u64) -> Result<Block, Verdict> {
        let Some(began_ns) = self.began_ns else {
            self.began_ns = Some(now_ns);
            return Ok(Block { lookups: self.block, uses_table: self.uses_table() });
        };
        let elapsed_ns = now_ns.saturating_sub(began_ns).max(1);
        let side = usize::from(!self.uses_table());
        if self.half.is_multiple_of(2) {
            self.pairs.push([0; 2]);
        }
        if let Some(pair) = self.pairs.last_mut() {
            pair[side] = elapsed_ns;
        }
        self.half += 1;
        self.began_ns = None;
        let is_over = self.half == 2 * self.pairs_wanted || self.is_clear();
        if is_over { Err(self.verdict()) } else { Ok(self.settling()) }
    }

    /// Whether enough pairs are done, and all of them far on one side.
    fn is_clear(&self) -> bool {
        let [low, high] = RATIOS_CLEAR;
        self.half.is_multiple_of(2)
            && self.pairs.len() >= PAIRS_CLEAR
            && (self.ratios().all(|ratio| ratio < low) || self.ratios().all(|ratio| ratio > high))
    }

    fn ratios(&self) -> impl Iterator<Item = f64> + '_ {
        self.pairs.iter().map(|pair| pair[0] as f64 / pair[1] as f64)
    }

    fn settling(&self) -> Block {
        Block { lookups: self.block / 2, uses_table: self.uses_table() }
    }

    /// Table, direct, direct, table, table ...
    fn uses_table(&self) -> bool {
        matches!(self.half % 4, 0 | 3)
    }

    fn verdict(&self) -> Verdict {
        let each = |side: usize| {
            let of_block: Vec<f64> = self.pairs.iter().map(|pair| pair[side] as f64).collect();
            median(of_block) / f64::from(self.block)
        };
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

    /// Runs a trial in which lookups take so many nanoseconds through the table and without; a block in `outliers` is
    /// interrupted.
    fn run(through_ns: u64, without_ns: u64, outliers: &[usize]) -> (Verdict, [u32; 2]) {
        let pace = Pace { block: 100, pairs: 5, ..Pace::default() };
        let (mut trial, mut block) = Trial::begin(&pace);
        let (mut now, mut lookups, mut steps) = (7, [0; 2], 0);
        loop {
            let side = usize::from(!block.uses_table);
            lookups[side] += block.lookups;
            now += u64::from(block.lookups) * [through_ns, without_ns][side];
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
        let (verdict, lookups) = run(45, 50, &[]);
        assert_eq!(verdict, Verdict { ratio: 0.9, lookup_ns: [45.0, 50.0] });
        assert_eq!(lookups, [750, 750]);
    }

    #[test]
    fn a_clear_trial_ends_early() {
        for (through_ns, ratio) in [(20, 0.4), (100, 2.0)] {
            let (verdict, lookups) = run(through_ns, 50, &[]);
            assert_eq!((verdict.ratio, lookups), (ratio, [450, 450]));
        }
    }

    #[test]
    fn a_few_interruptions_change_nothing() {
        let (verdict, _) = run(45, 50, &[1, 5]);
        assert_eq!(verdict.ratio, 0.9);
    }
}
