//! SAMT: levels that collect tables side by side and merge them together into the next level (Lim's thesis, §4.4 and
//! Algorithm 4).

use alluvium_model::models::{Component, Cost, Lookup, Stage};
use alluvium_model::{KeyDistribution, ModelError, positive, within};

use super::transition;

/// SAMT's parameters. Sizes in items.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Samt {
    /// Requests of one write-ahead log.
    pub wal: f64,
    /// Levels below memory, the last of which holds all keys in one table.
    pub levels: u32,
    /// Tables that a level collects.
    pub growth: u32,
    /// Bytes of index in memory per item of a table; 0 to leave it out, as in the paper.
    pub index_bytes: f64,
}

impl Samt {
    /// What it costs. Tables are indexed in memory and have no filters.
    pub fn cost(&self, keys: &KeyDistribution) -> Result<Cost, ModelError> {
        positive("wal", self.wal)?;
        within("levels", f64::from(self.levels), 1.0, 64.0)?;
        within("growth", f64::from(self.growth), 2.0, 1_000.0)?;
        within("index-bytes", self.index_bytes, 0.0, 1e6)?;
        let growth = f64::from(self.growth);
        let mut writes = vec![Component::new("log", 1.0)];
        let mut space = vec![Component::new(format!("level {}", self.levels), 1.0)];
        let mut lookup = Lookup { stages: vec![Stage::in_memory(keys.mean_recent_share(self.wal))] };
        let mut interval = self.wal;
        for level in 1..self.levels {
            let table_items = keys.unique(interval);
            writes.push(Component::new(transition(level), table_items / interval));
            interval *= growth;
            let runs = (growth - 1.0) / 2.0;
            lookup.stages.push(Stage::collecting(keys.mean_recent_share(interval), runs, 1.0));
            space.push(Component::new(format!("level {level}"), runs * table_items / keys.keys()));
        }
        writes.push(Component::new(transition(self.levels), keys.keys() / interval));
        lookup.stages.push(Stage::single(1.0, 1.0, 1.0));
        let stored: f64 = space.iter().map(|component| component.amount).sum();
        Ok(Cost {
            writes,
            reads_per_get: lookup.reads_per_get(),
            reads_per_miss: lookup.reads_per_miss(),
            memory: vec![Component::new("index", stored * self.index_bytes)],
            space,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn algorithm_4_line_by_line() {
        let keys = KeyDistribution::zipf(1_000.0, 0.99).unwrap();
        let cost = Samt { wal: 10.0, levels: 3, growth: 4, index_bytes: 0.0 }.cost(&keys).unwrap();
        let expected =
            1.0 + 4.0 * keys.unique(10.0) / 40.0 + 4.0 * keys.unique(40.0) / 160.0 + 1_000.0 / 160.0;
        assert!((cost.write_amplification() / expected - 1.0).abs() < 1e-12);
        assert!((cost.reads_per_miss - (1.5 + 1.5 + 1.0)).abs() < 1e-12);
        assert!(cost.reads_per_get < cost.reads_per_miss);
    }

    #[test]
    fn one_level_rewrites_everything_at_every_log() {
        let keys = KeyDistribution::uniform(1e4).unwrap();
        let cost = Samt { wal: 100.0, levels: 1, growth: 4, index_bytes: 0.0 }.cost(&keys).unwrap();
        assert!((cost.write_amplification() - 101.0).abs() < 1e-9);
        assert!(Samt { wal: f64::NAN, levels: 1, growth: 4, index_bytes: 0.0 }.cost(&keys).is_err());
    }
}
