//! COLA: levels of one table each; the growth factor limits how often a level is merged into (Lim's thesis, §4.4 and
//! Algorithm 4).

use alluvium_model::models::{Component, Cost, Lookup, Stage};
use alluvium_model::{KeyDistribution, ModelError, positive, within};

use super::transition;

/// COLA's parameters. Sizes in items.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cola {
    /// Requests of one write-ahead log.
    pub wal: f64,
    /// Levels below memory, the last of which holds all keys.
    pub levels: u32,
    /// A level takes `growth` − 1 merges before its table is passed on. Usually 2 to 4.
    pub growth: u32,
    /// Bytes of index in memory per item of a table; 0 to leave it out, as in the paper.
    pub index_bytes: f64,
}

impl Cola {
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
            // After j merges the level holds what j intervals wrote; the next merge writes j + 1 of them.
            let written: f64 = (1..self.growth).map(|merges| keys.unique(interval * f64::from(merges))).sum();
            let next = interval * growth;
            writes.push(Component::new(transition(level), written / next));
            // 0 to growth − 1 intervals, uniformly distributed; empty at 0.
            let found = keys.mean_recent_share(next);
            lookup.stages.push(Stage::single(found, (growth - 1.0) / growth, 1.0));
            space.push(Component::new(format!("level {level}"), written / growth / keys.keys()));
            interval = next;
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
        // wal 10, r = 3, L = 3 on 1,000 uniform keys, the sums of the algorithm written out.
        let keys = KeyDistribution::uniform(1_000.0).unwrap();
        let cost = Cola { wal: 10.0, levels: 3, growth: 3, index_bytes: 0.0 }.cost(&keys).unwrap();
        let unique = |requests: f64| 1_000.0 * (1.0 - 0.999f64.powf(requests));
        let first = (keys.merge(unique(10.0), 0.0) + keys.merge(unique(10.0), unique(10.0))) / 30.0;
        let second = (unique(30.0) + keys.merge(unique(30.0), unique(30.0))) / 90.0;
        let expected = 1.0 + first + second + 1_000.0 / 90.0;
        assert!((cost.write_amplification() / expected - 1.0).abs() < 1e-9);
    }

    #[test]
    fn without_repeats_a_level_costs_half_the_growth() {
        // O((r − 1) / 2) rewrites per level if no keys repeat.
        let keys = KeyDistribution::uniform(1e12).unwrap();
        let cost = Cola { wal: 1e4, levels: 4, growth: 4, index_bytes: 0.0 }.cost(&keys).unwrap();
        assert!((cost.writes[1].amount - 6.0 / 4.0).abs() < 1e-3);
        assert!((cost.writes[2].amount - 6.0 / 4.0).abs() < 1e-3);
        assert!((cost.reads_per_miss - (3.0 * 0.75 + 1.0)).abs() < 1e-12);
    }

    #[test]
    fn bad_parameters_are_refused() {
        let keys = KeyDistribution::uniform(1e3).unwrap();
        for cola in [
            Cola { wal: 0.0, levels: 3, growth: 3, index_bytes: 0.0 },
            Cola { wal: 1.0, levels: 0, growth: 3, index_bytes: 0.0 },
            Cola { wal: 1.0, levels: 3, growth: 1, index_bytes: 0.0 },
        ] {
            assert!(cola.cost(&keys).is_err());
        }
    }
}
