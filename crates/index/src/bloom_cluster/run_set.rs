//! [`RunSet`]: which runs may hold a key.

use super::column::RUNS_MAX;

const WORDS: usize = (RUNS_MAX as usize).div_ceil(64);

/// A set of runs by their number in the cluster, from 0 for the oldest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunSet {
    words: [u64; WORDS],
}

impl RunSet {
    /// Adds `run`.
    #[inline(always)]
    pub fn insert(&mut self, run: u32) {
        if let Some(word) = self.words.get_mut((run / 64) as usize) {
            *word |= 1 << (run % 64);
        }
    }

    /// Whether `run` is in the set.
    pub fn contains(&self, run: u32) -> bool {
        self.words.get((run / 64) as usize).is_some_and(|word| word >> (run % 64) & 1 == 1)
    }

    /// Number of runs.
    pub fn len(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words == [0; WORDS]
    }

    /// The runs, young to old: the order in which a lookup reads them.
    pub fn young_to_old(&self) -> impl Iterator<Item = u32> + use<> {
        let mut words = self.words;
        std::iter::from_fn(move || {
            let place = words.iter().rposition(|word| *word != 0)?;
            let bit = words[place].ilog2();
            words[place] ^= 1 << bit;
            Some(place as u32 * 64 + bit)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_a_set(runs in prop::collection::btree_set(0..RUNS_MAX, 0..30)) {
            let mut set = RunSet::default();
            runs.iter().for_each(|run| set.insert(*run));
            prop_assert_eq!(set.young_to_old().collect::<BTreeSet<u32>>(), runs.clone());
            prop_assert!(set.young_to_old().is_sorted_by(|a, b| a > b));
            prop_assert!((0..RUNS_MAX + 100).all(|run| set.contains(run) == runs.contains(&run)));
            prop_assert_eq!((set.len() as usize, set.is_empty()), (runs.len(), runs.is_empty()));
        }
    }
}
