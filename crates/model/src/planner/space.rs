//! [`Space`]: the plans among which the planner chooses.

use crate::plan::{
    ChainedDirectory, ChainedSpec, Filter, Growth, Index, LevelSpec, LogSpec, Sharding, TableLayout,
};

/// Maximum number of runs of a level that is bounded by its share of the items. Under a memory limit the log is small,
/// and the share takes many of its runs.
const RUNS_MAX_OF_SHARES: u32 = 128;

/// Sets of values; the planner considers each legal plan made of them.
///
/// Growths: any number of tiering levels with one number of runs, then any number of leveling levels with one ratio. A
/// store whose last level is tiering has a separate number of runs for it. The space thus contains all the papers'
/// designs. It excludes a tiering level below a leveling level: that would give up the few reads of the older, larger
/// level for fewer writes of the younger, cheaper one.
///
/// Log and shards stay at their defaults: the model does not contain the additional costs of a small log (many small
/// runs, each with its file and a partly unused page).
#[derive(Clone, Debug, PartialEq)]
pub struct Space {
    /// Maximum number of tiering levels.
    pub tiering_levels_max: usize,
    /// Maximum number of leveling levels.
    pub leveling_levels_max: usize,
    /// Runs of a tiering level.
    pub runs: Vec<u32>,
    /// Shares of the first level.
    pub shares: Vec<f64>,
    /// Ratios of leveling levels.
    pub ratios: Vec<f64>,
    /// Runs of a last level that is tiering.
    pub last_runs: Vec<u32>,
    /// Bits of a tag in cuckoo filters.
    pub tag_bits: Vec<u32>,
    /// Bits of static filters, which are offered for bucketed tables only. Elsewhere they would save memory compared
    /// with tags, but building them takes ten times as long, and the model does not price processor time.
    pub static_bits: Vec<u32>,
    /// Bits of fragments, offered with dense tries. Default none: static filters in buckets beat them. At equal shares
    /// of false positives fragments save a bit an item compared with tags, but a lookup in a dense trie takes several
    /// times as long, and the model does not price processor time.
    pub fragment_bits: Vec<u32>,
    /// Lengths of chains.
    pub chain_lengths: Vec<f64>,
    /// Shares of garbage in the log of a chained plan. More garbage always means fewer rewrites, and the planner does
    /// not price space, so these bound the space, too: with 0.4 a log takes 1.7 times its live items.
    pub chain_garbage_shares: Vec<f64>,
    /// How the hash space is cut.
    pub sharding: Sharding,
    /// The log in front.
    pub log: LogSpec,
}

impl Default for Space {
    fn default() -> Self {
        Self {
            tiering_levels_max: 5,
            leveling_levels_max: 5,
            runs: vec![2, 4, 8, 16, 32, 64],
            shares: vec![
                0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.095, 0.1, 0.105, 0.11, 0.115,
                0.12, 0.125, 0.13, 0.135, 0.14, 0.15, 0.16, 0.17, 0.18, 0.2, 0.22, 0.24, 0.26, 0.28, 0.3,
                0.33, 0.36,
            ],
            ratios: vec![3.0, 4.0, 6.0, 8.0, 10.0, 15.0, 20.0],
            last_runs: vec![8, 32, 128],
            tag_bits: vec![6, 8, 10, 12, 13, 14, 15],
            static_bits: vec![4, 7, 10, 13],
            fragment_bits: Vec::new(),
            chain_lengths: vec![1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 20.0, 30.0, 50.0],
            chain_garbage_shares: vec![0.1, 0.25, 0.4],
            sharding: Sharding::default(),
            log: LogSpec::default(),
        }
    }
}

impl Space {
    /// The growths of all levels, for each plan of levels. No sequence occurs twice.
    pub(super) fn growths(&self) -> Vec<Vec<Growth>> {
        let mut all = vec![Vec::new()];
        for &runs_max in &self.runs {
            let tier = Growth::Tiering { runs_max, share: Growth::ANY_SHARE };
            all.extend((1..=self.tiering_levels_max).map(|levels| vec![tier; levels]));
        }
        if self.tiering_levels_max > 0 {
            let shared = |&share: &f64| vec![Growth::Tiering { runs_max: RUNS_MAX_OF_SHARES, share }];
            all.extend(self.shares.iter().map(shared));
        }
        all.iter().flat_map(|young| self.continued(young)).collect()
    }

    /// Tiering levels with each possible ending.
    fn continued(&self, young: &[Growth]) -> Vec<Vec<Growth>> {
        let mut endings: Vec<Vec<Growth>> = Vec::new();
        for levels in 1..=self.leveling_levels_max {
            // The last level ignores its ratio.
            let ratios =
                if levels == 1 { &self.ratios[..1.min(self.ratios.len())] } else { &self.ratios[..] };
            endings.extend(ratios.iter().map(|&ratio| vec![Growth::Leveling { ratio }; levels]));
        }
        if young.len() < self.tiering_levels_max {
            let last = |&runs_max| vec![Growth::Tiering { runs_max, share: Growth::ANY_SHARE }];
            endings.extend(self.last_runs.iter().map(last));
        }
        endings.iter().map(|ending| [young, ending].concat()).collect()
    }

    /// Every legal table of a level with that growth that is worth considering.
    pub(super) fn layouts(&self, growth: Growth) -> Vec<LevelSpec> {
        let mut filters = vec![
            Filter::None,
            Filter::BloomCluster { on_flash: false },
            Filter::BloomCluster { on_flash: true },
        ];
        for &tag_bits in &self.tag_bits {
            filters.push(Filter::Cuckoo { tag_bits });
            filters.push(Filter::MultiLevelCuckoo { tag_bits });
        }
        filters.extend(self.static_bits.iter().map(|&bits| Filter::Static { bits }));
        filters.extend(self.fragment_bits.iter().map(|&bits| Filter::Fragments { bits }));
        let tables = [TableLayout::Hash, TableLayout::Bucketed, TableLayout::Sorted];
        let indexes = [Index::Implicit, Index::Trie, Index::TrieDense, Index::Fences, Index::ThreeLevel];
        let mut layouts = Vec::new();
        for table in tables {
            for index in indexes {
                layouts.extend(filters.iter().map(|&filter| LevelSpec { growth, table, filter, index }));
            }
        }
        let is_offered = |level: &LevelSpec| {
            !matches!(level.filter, Filter::Static { .. }) || level.table == TableLayout::Bucketed
        };
        // Without fragments a dense trie is larger than one over pages, and leads to the same page.
        let is_dense = |level: &LevelSpec| level.index == Index::TrieDense;
        let has_fragments = |level: &LevelSpec| matches!(level.filter, Filter::Fragments { .. });
        layouts.retain(|level| is_dense(level) == has_fragments(level));
        layouts.retain(|level| is_offered(level) && level.validate().is_ok());
        layouts
    }

    pub(super) fn chains(&self) -> impl Iterator<Item = ChainedSpec> + '_ {
        let directories = [ChainedDirectory::Base, ChainedDirectory::default()];
        let of_directory = move |directory| {
            self.chain_lengths.iter().flat_map(move |&chain_length_mean| {
                let spec = ChainedSpec { directory, ..ChainedSpec::of_length(chain_length_mean) };
                let shares = self.chain_garbage_shares.iter();
                shares.map(move |&garbage_share_max| ChainedSpec { garbage_share_max, ..spec })
            })
        };
        directories.into_iter().flat_map(of_directory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LevelsPlan, Plan};

    #[test]
    fn every_plan_is_legal_and_there_once() {
        let space = Space::default();
        let growths = space.growths();
        for (number, growth) in growths.iter().enumerate() {
            assert!(!growths[..number].contains(growth), "{growth:?}");
        }
        let LevelsPlan { sharding, log, .. } = LevelsPlan::silt();
        for growth in growths.iter().flatten() {
            for level in space.layouts(*growth) {
                Plan::Levels(LevelsPlan { sharding, log, levels: vec![level] }).validate().unwrap();
            }
        }
    }

    #[test]
    fn named_plans_are_among_them() {
        let space = Space::default();
        let growths = space.growths();
        for name in ["silt", "slimdb-tiering", "slimdb", "leveled"] {
            let Plan::Levels(LevelsPlan { levels, .. }) = Plan::named(name).unwrap() else { unreachable!() };
            let wanted: Vec<Growth> = levels.iter().map(|level| level.growth).collect();
            let is_there = growths.iter().any(|growths| {
                growths.len() == wanted.len()
                    && growths.iter().zip(&wanted).enumerate().all(|(number, (growth, wanted))| {
                        match (growth, wanted) {
                            // The last level ignores its ratio.
                            (Growth::Leveling { .. }, Growth::Leveling { .. }) => {
                                growth == wanted || number + 1 == growths.len()
                            }
                            _ => growth == wanted,
                        }
                    })
            });
            assert!(is_there, "{name}");
            assert!(levels.iter().all(|level| space.layouts(level.growth).contains(level)), "{name}");
        }
    }
}
