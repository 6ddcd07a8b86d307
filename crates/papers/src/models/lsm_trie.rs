//! LSM-trie: a trie of containers with several runs each, rewritten once per level, and a last level that only
//! collects runs (Wu's thesis, §4.2.3 and §4.2.4).

use alluvium_model::models::{Component, Cost, Lookup, Stage, bloom_false_positive_rate};
use alluvium_model::{KeyDistribution, ModelError, positive, within};

/// LSM-trie's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LsmTrie {
    /// Number of children of a container, and thus the ratio of the size of a run of the next level to one of this
    /// level.
    pub growth: u32,
    /// Average number of runs over a place at each level but the last (the paper's sub-levels; the number varies from 0
    /// to twice the average).
    pub runs: u32,
    /// Maximum number of levels above the last one. A small store has fewer.
    pub upper_levels: u32,
    /// Size of an HTable, which is a run of level 0.
    pub table_bytes: f64,
    /// Share of an HTable that is filled.
    pub fill: f64,
    /// Mean bytes of an item.
    pub item_bytes: f64,
    /// Bits of Bloom filter per item.
    pub filter_bits: f64,
    /// Reads to fetch an item from an HTable: more than 1, since some items are in another bucket.
    pub bucket_reads: f64,
    /// Share of the buckets whose migrations are remembered in memory, 8 bytes each.
    pub remembered_share: f64,
    /// Whether items are first written to a log.
    pub log: bool,
    /// Share of the last level that is garbage when one of its containers is collected; 0 if keys are only inserted and
    /// nothing is ever collected.
    pub garbage_share: f64,
}

impl Default for LsmTrie {
    /// The prototype: five levels of fan-out 8, 32 MiB tables, 16 bits of filter, no log, items of 64 bytes.
    fn default() -> Self {
        Self {
            growth: 8,
            runs: 8,
            upper_levels: 4,
            table_bytes: (32u64 << 20) as f64,
            fill: 0.95,
            item_bytes: 64.0,
            filter_bits: 16.0,
            bucket_reads: 1.01,
            remembered_share: 0.2,
            log: false,
            garbage_share: 0.0,
        }
    }
}

impl LsmTrie {
    /// What it costs when all keys are in the store. Filters and remembered migrations of the upper levels are in
    /// memory; the last level's filters are clustered on the device: one read for all filters of a key.
    pub fn cost(&self, keys: &KeyDistribution) -> Result<Cost, ModelError> {
        self.validate()?;
        let growth = f64::from(self.growth);
        let runs = f64::from(self.runs);
        let run0_items = self.table_bytes / self.item_bytes;
        let upper_levels = self.upper_levels_used(keys.keys());
        let false_positives = bloom_false_positive_rate(self.filter_bits);

        let mut writes = Vec::new();
        if self.log {
            writes.push(Component::new("log", 1.0));
        }
        let mut lookup = Lookup::default();
        let mut space = Vec::new();
        let (mut upper_items, mut interval) = (0.0, run0_items * self.fill);
        for level in 0..upper_levels {
            // Each run is written once; a key that repeats within it is written once.
            let run_items = keys.unique(interval);
            writes.push(Component::new(format!("level {level}"), run_items / interval));
            upper_items += runs * run_items;
            space.push(Component::new(format!("level {level}"), runs * run_items / keys.keys() / self.fill));
            // The number of runs varies from 0 to twice its mean, so twice the mean gather before they are merged.
            interval *= growth;
            let found = keys.mean_recent_share(2.0 * runs / growth * interval);
            lookup.stages.push(Stage {
                reads_present: self.bucket_reads,
                ..Stage::collecting(found, runs, false_positives)
            });
        }
        let run_items = keys.unique(interval);
        writes.push(Component::new(format!("level {upper_levels}"), run_items / interval));
        let live = (keys.keys() - upper_items).max(0.0);
        let last_items = live / (1.0 - self.garbage_share);
        let last_runs = last_items / (run0_items * growth.powi(upper_levels as i32));
        if self.garbage_share > 0.0 {
            // A collection rewrites the live share to free the garbage's space for as many new items.
            let rewritten = (1.0 - self.garbage_share) / self.garbage_share;
            writes.push(Component::new("garbage collection", rewritten * run_items / interval));
        }
        let has_filters_on_device = upper_levels == self.upper_levels;
        lookup.stages.push(Stage {
            reads_present: self.bucket_reads,
            // A place has this many runs at the end of the load, not on average over time.
            younger: ((last_runs - 1.0) / 2.0).max(0.0),
            reads_before: if has_filters_on_device { 1.0 } else { 0.0 },
            ..Stage::single(1.0, last_runs, false_positives)
        });
        space.push(Component::new(format!("level {upper_levels}"), last_items / keys.keys() / self.fill));

        let in_memory = if has_filters_on_device { upper_items } else { upper_items + last_items };
        let bucket_items = 4_096.0 * self.fill / self.item_bytes;
        let per_key = in_memory / keys.keys();
        Ok(Cost {
            writes,
            reads_per_get: lookup.reads_per_get(),
            reads_per_miss: lookup.reads_per_miss(),
            memory: vec![
                Component::new("filter", per_key * self.filter_bits / 8.0),
                Component::new("migrations", per_key * self.remembered_share * 8.0 / bucket_items),
            ],
            space,
        })
    }

    /// Probability that any filter is wrong among the `runs` runs of all levels over a key whose lookup reaches the
    /// last level, as Table 4.1 counts it.
    pub fn false_positive_rate(&self, runs: f64) -> f64 {
        runs * bloom_false_positive_rate(self.filter_bits)
    }

    /// Number of upper levels that `items` items fill.
    fn upper_levels_used(&self, items: f64) -> u32 {
        let run0_items = self.table_bytes / self.item_bytes;
        let mut filled = 0.0;
        for level in 0..self.upper_levels {
            filled += f64::from(self.runs) * run0_items * f64::from(self.growth).powi(level as i32);
            if items <= filled {
                return level;
            }
        }
        self.upper_levels
    }

    fn validate(&self) -> Result<(), ModelError> {
        within("growth", f64::from(self.growth), 2.0, 1_000.0)?;
        within("runs", f64::from(self.runs), 1.0, 1_000.0)?;
        within("upper-levels", f64::from(self.upper_levels), 0.0, 20.0)?;
        positive("table-bytes", self.table_bytes)?;
        within("fill", self.fill, 0.01, 1.0)?;
        within("item-bytes", self.item_bytes, 1.0, self.table_bytes)?;
        within("filter-bits", self.filter_bits, 0.0, 64.0)?;
        within("bucket-reads", self.bucket_reads, 1.0, 100.0)?;
        within("remembered-share", self.remembered_share, 0.0, 1.0)?;
        within("garbage-share", self.garbage_share, 0.0, 0.99)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERABYTE: f64 = (1u64 << 40) as f64;

    #[test]
    fn table_4_1() {
        let published = [
            (10.0, [0.4095, 0.8190, 1.2285]),
            (12.0, [0.1570, 0.3140, 0.4710]),
            (14.0, [0.0600, 0.1200, 0.1800]),
            (16.0, [0.0230, 0.0459, 0.0689]),
            (18.0, [0.0088, 0.0176, 0.0264]),
        ];
        for (filter_bits, row) in published {
            let design = LsmTrie { filter_bits, ..LsmTrie::default() };
            for (runs, expected) in [50.0, 100.0, 150.0].into_iter().zip(row) {
                let rate = design.false_positive_rate(runs);
                assert!((rate / expected - 1.0).abs() < 0.01, "{filter_bits} bits, {runs} runs: {rate}");
            }
        }
    }

    #[test]
    fn ten_terabytes_as_section_4_2_4_says() {
        let items = (10.0 * TERABYTE / 64.0).round();
        let keys = KeyDistribution::uniform(items).unwrap();
        let cost = LsmTrie::default().cost(&keys).unwrap();
        // Five levels, each written once. Few keys are written twice on the way.
        let total = cost.write_amplification();
        assert!(total <= 5.0 && total > 4.9, "{total}");
        // At most 2.05 reads: a BloomCluster, the item, and 5 % for the filters of 112 runs.
        assert!((cost.reads_per_miss - 1.05).abs() < 0.01, "{}", cost.reads_per_miss);
        assert!(cost.reads_per_get <= 2.06 && cost.reads_per_get > 1.95, "{}", cost.reads_per_get);
        // 4.5 GB of filters for the first 32 runs, 5 GB in all.
        let filters = cost.memory[0].amount * items / (1u64 << 30) as f64;
        assert!((4.2..4.6).contains(&filters), "{filters}");
        assert!(cost.bytes_per_item() * items < 5e9 * 1.074);
        let log = LsmTrie { log: true, ..LsmTrie::default() }.cost(&keys).unwrap();
        assert!(log.write_amplification() <= 6.1);
        let wide = LsmTrie { log: true, growth: 16, runs: 16, upper_levels: 3, ..LsmTrie::default() };
        assert!(wide.cost(&keys).unwrap().write_amplification() <= 5.0);
    }

    #[test]
    fn rewrites_step_up_where_a_level_begins_and_then_stay() {
        // Figure 4.11: items of 116 bytes, steps near 0.12 and 1.0 billion items.
        let design = LsmTrie { item_bytes: 116.0, ..LsmTrie::default() };
        let at = |items: f64| {
            let keys = KeyDistribution::uniform(items).unwrap();
            design.cost(&keys).unwrap().writes.len()
        };
        assert_eq!([at(0.1e9), at(0.2e9), at(1.0e9), at(1.6e9), at(90e9)], [3, 4, 4, 5, 5]);
    }

    #[test]
    fn repeats_are_dropped_on_the_way_and_garbage_costs_rewrites() {
        let uniform = KeyDistribution::uniform(8e9).unwrap();
        let zipf = KeyDistribution::zipf(8e9, 0.99).unwrap();
        let design = LsmTrie { item_bytes: 116.0, garbage_share: 0.2, ..LsmTrie::default() };
        let (uniform, zipf) = (design.cost(&uniform).unwrap(), design.cost(&zipf).unwrap());
        assert!(zipf.write_amplification() < 0.7 * uniform.write_amplification());
        assert!(uniform.writes.last().unwrap().amount > 3.0);
        assert!(LsmTrie { fill: 0.0, ..design }.cost(&KeyDistribution::uniform(1e3).unwrap()).is_err());
    }
}
