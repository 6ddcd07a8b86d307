//! Designs whose stages are passed on whole: COLA, SAMT, and SILT's stores (Lim's thesis, §4.1.1).

use alluvium_model::models::Component;
use alluvium_model::{ModelError, RequestStream, positive, within};

use super::{SimulatedCost, sets};

/// What a level does with an arriving table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageRule {
    /// COLA: merges it into its only table.
    Merge,
    /// SAMT and SILT: puts it beside the others.
    Collect,
}

/// The rules of the stages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StagesSimulation {
    /// What all levels but the last do.
    pub rule: StageRule,
    /// Requests of the log after which memory becomes a table.
    pub wal: u64,
    /// Number of levels; the last merges all arrivals into one table of all keys.
    pub levels: u32,
    /// Number of tables that a level takes before it is passed on.
    pub growth: u32,
}

#[derive(Clone, Debug, Default)]
struct Level {
    tables: Vec<Vec<u32>>,
    taken: u32,
}

impl StagesSimulation {
    /// Starts with all keys in the last level, runs one round of all levels, then counts over `rounds` rounds. A round
    /// is the time between merges into the last level.
    pub fn run(&self, stream: &mut RequestStream, rounds: u32) -> Result<SimulatedCost, ModelError> {
        positive("wal", self.wal as f64)?;
        within("levels", f64::from(self.levels), 1.0, 20.0)?;
        within("growth", f64::from(self.growth), 2.0, 1_000.0)?;
        let keys = stream.keys();
        let above_last = self.levels as usize - 1;
        let mut levels = vec![Level::default(); above_last];
        let mut written = vec![0u64; self.levels as usize];
        let (mut records, mut runs) = (0u64, 0u64);
        let logs_per_round = u64::from(self.growth).pow(above_last as u32);
        let logs = logs_per_round * u64::from(rounds);
        for log in 0..logs_per_round + logs {
            if log == logs_per_round {
                (records, runs) = (0, 0);
                written.fill(0);
            }
            let mut moving = Some(sets::sorted((0..self.wal).map(|_| stream.next_key()).collect()));
            for (level, written) in levels.iter_mut().zip(&mut written) {
                if let Some(table) = moving {
                    moving = level.take(table, self, written);
                }
            }
            if moving.is_some() {
                // All keys were there before and stay there.
                written[above_last] += keys;
            }
            let tables = levels.iter().flat_map(|level| &level.tables);
            records += keys + tables.clone().map(|table| table.len() as u64).sum::<u64>();
            runs += tables.count() as u64;
        }
        let requests = (logs * self.wal) as f64;
        let mut writes = vec![Component::new("log", 1.0)];
        writes.extend(written.iter().enumerate().map(|(level, &written)| {
            let name = if level == 0 {
                "memory to level 1".to_owned()
            } else {
                format!("level {level} to {}", level + 1)
            };
            Component::new(name, written as f64 / requests)
        }));
        Ok(SimulatedCost {
            writes,
            records_per_key: records as f64 / logs as f64 / keys as f64,
            runs: runs as f64 / logs as f64,
        })
    }
}

impl Level {
    /// Takes a table in. Returns all that the level holds when it is full, else `None`.
    fn take(&mut self, table: Vec<u32>, rules: &StagesSimulation, written: &mut u64) -> Option<Vec<u32>> {
        self.taken += 1;
        let is_full = self.taken == rules.growth;
        // COLA's last merge of a level is passed on at once; SAMT writes each table when it arrives.
        if rules.rule == StageRule::Collect || !is_full {
            let merged = match rules.rule {
                StageRule::Merge => match self.tables.pop() {
                    Some(before) => sets::union(&[&before, &table]),
                    None => table,
                },
                StageRule::Collect => table,
            };
            *written += merged.len() as u64;
            self.tables.push(merged);
            if !is_full {
                return None;
            }
        } else {
            self.tables.push(table);
        }
        self.taken = 0;
        let tables = std::mem::take(&mut self.tables);
        let slices: Vec<&[u32]> = tables.iter().map(Vec::as_slice).collect();
        Some(sets::union(&slices))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{Cola, Samt, Silt};
    use alluvium_model::KeyDistribution;
    use alluvium_model::models::Cost;

    fn assert_agrees(model: &Cost, simulated: &SimulatedCost, tolerance: f64) {
        assert_eq!(model.writes.len(), simulated.writes.len());
        for (expected, counted) in model.writes.iter().zip(&simulated.writes) {
            let ratio = expected.amount / counted.amount;
            assert!((ratio - 1.0).abs() < tolerance, "{}: {expected:?} {counted:?}", counted.name);
        }
    }

    #[test]
    fn cola_and_samt_are_as_modelled() {
        for skew in [0.0, 0.99] {
            let keys = KeyDistribution::zipf(50_000.0, skew).unwrap();
            for (wal, levels, growth) in [(200, 4, 3), (1_000, 3, 4)] {
                let mut requests = RequestStream::new(50_000, skew, 9).unwrap();
                let rules = StagesSimulation { rule: StageRule::Merge, wal, levels, growth };
                let cola = Cola { wal: wal as f64, levels, growth, index_bytes: 0.0 }.cost(&keys).unwrap();
                assert_agrees(&cola, &rules.run(&mut requests, 4).unwrap(), 0.02);
                let rules = StagesSimulation { rule: StageRule::Collect, ..rules };
                let samt = Samt { wal: wal as f64, levels, growth, index_bytes: 0.0 }.cost(&keys).unwrap();
                let simulated = rules.run(&mut requests, 4).unwrap();
                assert_agrees(&samt, &simulated, 0.02);
                assert!((simulated.records_per_key / samt.space_amplification() - 1.0).abs() < 0.01);
                assert!((simulated.runs + 1.0) / samt.reads_per_miss - 1.0 < 0.01);
            }
        }
    }

    #[test]
    fn silt_is_as_modelled() {
        for skew in [0.0, 0.99] {
            let keys = KeyDistribution::zipf(100_000.0, skew).unwrap();
            let wal = keys.unique_inverse(1_000.0).round();
            let rules = StagesSimulation { rule: StageRule::Collect, wal: wal as u64, levels: 2, growth: 20 };
            let simulated = rules.run(&mut RequestStream::new(100_000, skew, 4).unwrap(), 3).unwrap();
            let silt = Silt { table: 1_000.0, occupancy: 0.999_999, hash_stores: 20.0, ..Silt::default() };
            assert_agrees(&silt.cost(&keys).unwrap(), &simulated, 0.02);
        }
    }
}
