//! LevelDB: tables of overlapping ranges in level 0, then levels that are merged into the next one table at a time,
//! round-robin (Lim's thesis, §4.3 and Algorithm 3).

use alluvium_model::models::{Component, Cost, Lookup, Stage, bloom_false_positive_rate};
use alluvium_model::{KeyDistribution, ModelError, positive, within};

/// LevelDB's parameters. Sizes in items.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelDb {
    /// Requests of one write-ahead log, after which the memtable becomes a table of level 0. 4 MiB by default in
    /// LevelDB.
    pub wal: f64,
    /// Number of tables of level 0 that starts its compaction (4 in LevelDB).
    pub level0_tables: f64,
    /// Sizes of the levels from 1 on, except the last, which holds all keys. A size that reaches the number of keys
    /// ends the list: that level is the last.
    pub sizes: Vec<f64>,
    /// Bits of Bloom filter per item, 0 for none. Filters and indexes are in memory.
    pub filter_bits: f64,
    /// Bytes of index in memory per item. LevelDB keeps a key for each block of 4 KiB; the default of 4 bytes is a key
    /// of 16 bytes for 4 items of 1,000 bytes.
    pub index_bytes: f64,
}

impl Default for LevelDb {
    /// The defaults of LevelDB for items of 1,000 bytes, and levels 1 to 4.
    fn default() -> Self {
        let mebibyte_items = (1 << 20) as f64 / 1_000.0;
        Self {
            wal: 4.0 * mebibyte_items,
            level0_tables: 4.0,
            sizes: (1..=4).map(|level| 10f64.powi(level) * mebibyte_items).collect(),
            filter_bits: 0.0,
            index_bytes: 4.0,
        }
    }
}

impl LevelDb {
    /// What it costs. About 20 evaluations of a primitive per level.
    pub fn cost(&self, keys: &KeyDistribution) -> Result<Cost, ModelError> {
        self.validate()?;
        let sizes = self.level_sizes(keys.keys());
        let mut writes = vec![
            Component::new("log", 1.0),
            Component::new("memory to level 0", keys.unique(self.wal) / self.wal),
        ];
        // Interval(l): requests between compactions of one key from level l, including what younger levels hold.
        let mut interval = self.wal * self.level0_tables;
        let written = keys.merge(keys.unique(interval), sizes[0]);
        writes.push(Component::new("level 0 to 1", written / interval));

        let rejected = if self.filter_bits > 0.0 { bloom_false_positive_rate(self.filter_bits) } else { 1.0 };
        let mut lookup = Lookup::default();
        lookup.stages.push(Stage::in_memory(keys.mean_recent_share(self.wal)));
        let level0_runs = (self.level0_tables - 1.0) / 2.0;
        lookup.stages.push(Stage::collecting(keys.mean_recent_share(interval), level0_runs, rejected));
        let level0_items = level0_runs * keys.unique(self.wal);
        let mut items = vec![level0_items];
        for (level, pair) in sizes.windows(2).enumerate() {
            interval += keys.dinterval(pair[0]);
            let moved = keys.unique(interval);
            // The second term is false overlaps: tables of the next level that are partly outside the range.
            let written = keys.merge(moved, pair[1]) + moved;
            writes.push(Component::new(format!("level {} to {}", level + 1, level + 2), written / interval));
            lookup.stages.push(Stage::single(keys.mean_recent_share(interval), 1.0, rejected));
            items.push(pair[0]);
        }
        lookup.stages.push(Stage::single(1.0, 1.0, rejected));
        items.push(keys.keys());

        let stored = items.iter().sum::<f64>() / keys.keys();
        let space = items
            .iter()
            .enumerate()
            .map(|(level, &items)| Component::new(format!("level {level}"), items / keys.keys()))
            .collect();
        Ok(Cost {
            writes,
            reads_per_get: lookup.reads_per_get(),
            reads_per_miss: lookup.reads_per_miss(),
            memory: vec![
                Component::new("filter", stored * self.filter_bits / 8.0),
                Component::new("index", stored * self.index_bytes),
            ],
            space,
        })
    }

    /// Write amplification by asymptotic analysis, over `keys` keys: no two requests name the same key, so merging
    /// tables makes one as long as both, and compaction goes evenly over a level (§4.3.4). The thesis uses it for
    /// comparison.
    pub fn worst_case_write_amplification(&self, keys: f64) -> Result<f64, ModelError> {
        self.validate()?;
        positive("keys", keys)?;
        let sizes = self.level_sizes(keys);
        let level0 = self.wal * self.level0_tables;
        let rewrites = |(moved, below): (f64, f64)| (moved + below) / moved;
        let older = sizes.windows(2).map(|pair| (pair[0], pair[1]));
        Ok(2.0 + std::iter::once((level0, sizes[0])).chain(older).map(rewrites).sum::<f64>())
    }

    /// Sizes of all levels from 1 on; the last holds all keys.
    fn level_sizes(&self, keys: f64) -> Vec<f64> {
        let mut sizes: Vec<f64> = self.sizes.iter().copied().take_while(|&size| size < keys).collect();
        sizes.push(keys);
        sizes
    }

    fn validate(&self) -> Result<(), ModelError> {
        positive("wal", self.wal)?;
        within("level0-tables", self.level0_tables, 1.0, 1e6)?;
        within("filter-bits", self.filter_bits, 0.0, 64.0)?;
        within("index-bytes", self.index_bytes, 0.0, 1e6)?;
        for &size in &self.sizes {
            positive("sizes", size)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amounts(cost: &Cost) -> Vec<f64> {
        cost.writes.iter().map(|component| component.amount).collect()
    }

    fn assert_within(actual: f64, expected: f64, tolerance: f64) {
        assert!((actual / expected - 1.0).abs() <= tolerance, "{actual} instead of {expected}");
    }

    #[test]
    fn table_4_1_without_optimization() {
        let keys = KeyDistribution::uniform(1e8).unwrap();
        let cost = LevelDb::default().cost(&keys).unwrap();
        let published = [1.00, 1.00, 1.62, 4.77, 6.22, 6.32, 4.89];
        for (actual, expected) in amounts(&cost).into_iter().zip(published) {
            assert_within(actual, expected, 0.01);
        }
        assert_within(cost.write_amplification(), 25.82, 0.001);
    }

    #[test]
    fn table_4_1_with_the_best_level_sizes() {
        let keys = KeyDistribution::uniform(1e8).unwrap();
        let sizes = vec![47_891.0, 321_368.0, 2_158_785.0, 14_603_841.0];
        let cost = LevelDb { sizes, ..LevelDb::default() }.cost(&keys).unwrap();
        let published = [1.00, 1.00, 3.85, 4.85, 4.82, 4.65, 3.50];
        for (actual, expected) in amounts(&cost).into_iter().zip(published) {
            assert_within(actual, expected, 0.01);
        }
        assert_within(cost.write_amplification(), 23.67, 0.001);
    }

    #[test]
    fn skew_makes_compaction_cheaper() {
        // Figure 4.9: the estimate falls with the skew, from 25.8 for uniform keys.
        let mut last = f64::INFINITY;
        for skew in [0.0, 0.4, 0.8, 0.99, 1.2] {
            let keys = KeyDistribution::zipf(1e8, skew).unwrap();
            let cost = LevelDb::default().cost(&keys).unwrap().write_amplification();
            assert!(cost < last, "skew {skew}: {cost}");
            last = cost;
        }
    }

    #[test]
    fn asymptotic_analysis_overestimates_by_1_8_to_3_6() {
        // Section 4.3.5.
        let design = LevelDb::default();
        let worst = design.worst_case_write_amplification(1e8).unwrap();
        let ratio = |skew| {
            let keys = KeyDistribution::zipf(1e8, skew).unwrap();
            worst / design.cost(&keys).unwrap().write_amplification()
        };
        assert_within(ratio(0.0), 1.8, 0.02);
        assert_within(ratio(0.99), 3.6, 0.05);
        assert!(design.worst_case_write_amplification(0.0).is_err());
    }

    #[test]
    fn a_small_store_has_fewer_levels_and_filters_save_reads() {
        let keys = KeyDistribution::uniform(1e6).unwrap();
        let plain = LevelDb::default().cost(&keys).unwrap();
        // The sizes of 1.05 and 10.5 million items exceed the number of keys: three levels, the last of which holds all
        // keys.
        assert_eq!(plain.writes.len(), 5);
        assert_eq!(plain.space.last().unwrap().amount, 1.0);
        let filtered = LevelDb { filter_bits: 10.0, ..LevelDb::default() }.cost(&keys).unwrap();
        assert!(filtered.reads_per_miss < 0.05 && filtered.reads_per_get < 1.05);
        assert!(plain.reads_per_get > 1.5 && plain.reads_per_miss > plain.reads_per_get);
        assert!(filtered.bytes_per_item() > plain.bytes_per_item());
        assert!(LevelDb { wal: 0.0, ..LevelDb::default() }.cost(&keys).is_err());
    }
}
