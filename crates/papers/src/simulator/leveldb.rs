//! LevelDB's rules: tables, circular compaction, levels in order of their age (Lim's thesis, §4.3.3 and §4.3.5).

use alluvium_model::models::Component;
use alluvium_model::{ModelError, RequestStream, positive, within};

use super::{SimulatedCost, sets};

/// LevelDB's rules. Sizes in items.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelDbSimulation {
    /// Requests after which the memtable becomes a table of level 0.
    pub wal: u64,
    /// Number of tables of level 0 that starts its compaction.
    pub level0_tables: usize,
    /// Sizes of the levels from level 1 on, except the last, at which a level is compacted.
    pub sizes: Vec<u64>,
    /// Maximum number of items of a table (2 MiB in LevelDB).
    pub table_items: usize,
    /// Number of tables of the level after next that a table may overlap (10 in LevelDB).
    pub overlapped_tables: usize,
}

/// Keys of a table, sorted.
type Table = Vec<u32>;

#[derive(Debug)]
struct Levels<'a> {
    rules: &'a LevelDbSimulation,
    /// Level 0 by age, old to young; the others by key.
    tables: Vec<Vec<Table>>,
    /// Items of each level.
    items: Vec<u64>,
    /// Last key of the table that was compacted last.
    last_key: Vec<Option<u32>>,
    /// Items written to each level.
    written: Vec<u64>,
}

impl LevelDbSimulation {
    /// Inserts all keys once in random order, then counts over `requests` requests.
    pub fn run(&self, stream: &mut RequestStream, requests: u64) -> Result<SimulatedCost, ModelError> {
        positive("wal", self.wal as f64)?;
        within("table-items", self.table_items as f64, 1.0, 1e9)?;
        within("level0-tables", self.level0_tables as f64, 1.0, 1e6)?;
        let levels = self.sizes.len() + 2;
        let mut state = Levels {
            rules: self,
            tables: vec![Vec::new(); levels],
            items: vec![0; levels],
            last_key: vec![None; levels],
            written: vec![0; levels],
        };
        let mut memtable = Vec::new();
        for rank in 0..stream.keys() {
            state.insert(&mut memtable, stream.key_of_rank(rank));
        }
        state.written.fill(0);
        let (mut records, mut runs, mut samples) = (0.0, 0.0, 0.0);
        for request in 0..requests {
            state.insert(&mut memtable, stream.next_key());
            if request % self.wal == 0 {
                records += state.items.iter().sum::<u64>() as f64;
                runs += (state.tables[0].len() + self.sizes.len()) as f64;
                samples += 1.0;
            }
        }
        let per_request = |written: u64| written as f64 / requests as f64;
        let mut writes = vec![
            Component::new("log", 1.0),
            Component::new("memory to level 0", per_request(state.written[0])),
        ];
        for (level, &written) in state.written.iter().enumerate().skip(1) {
            writes.push(Component::new(format!("level {} to {level}", level - 1), per_request(written)));
        }
        Ok(SimulatedCost {
            writes,
            records_per_key: records / samples / stream.keys() as f64,
            runs: runs / samples,
        })
    }
}

impl Levels<'_> {
    fn insert(&mut self, memtable: &mut Vec<u32>, key: u32) {
        memtable.push(key);
        if memtable.len() as u64 >= self.rules.wal {
            let table = sets::sorted(std::mem::take(memtable));
            self.add(0, vec![table]);
            while let Some(level) = self.due() {
                self.compact(level);
            }
        }
    }

    /// The youngest level that exceeds its size.
    fn due(&self) -> Option<usize> {
        if self.tables[0].len() >= self.rules.level0_tables {
            return Some(0);
        }
        let over = |&(number, &size): &(usize, &u64)| self.items[number + 1] > size;
        self.rules.sizes.iter().enumerate().find(over).map(|(number, _)| number + 1)
    }

    fn add(&mut self, level: usize, tables: Vec<Table>) {
        let items: u64 = tables.iter().map(|table| table.len() as u64).sum();
        self.items[level] += items;
        self.written[level] += items;
        self.tables[level].extend(tables);
        if level > 0 {
            self.tables[level].sort_unstable_by_key(|table| table[0]);
        }
    }

    fn compact(&mut self, level: usize) {
        let moved: Vec<Table> = if level == 0 {
            std::mem::take(&mut self.tables[0])
        } else {
            let at = self.next_table(level);
            let table = self.tables[level].remove(at);
            self.last_key[level] = table.last().copied();
            vec![table]
        };
        self.items[level] -= moved.iter().map(|table| table.len() as u64).sum::<u64>();
        let first = moved.iter().map(|table| table[0]).min().unwrap_or(0);
        let last = moved.iter().filter_map(|table| table.last().copied()).max().unwrap_or(0);
        let overlapping = overlap(&self.tables[level + 1], first, last);
        let replaced: Vec<Table> = self.tables[level + 1].drain(overlapping).collect();
        self.items[level + 1] -= replaced.iter().map(|table| table.len() as u64).sum::<u64>();
        // Tables of a level do not overlap: together they are one sorted set.
        let below: Vec<u32> = replaced.concat();
        let mut inputs: Vec<&[u32]> = moved.iter().map(Vec::as_slice).collect();
        inputs.push(&below);
        let merged = sets::union(&inputs);
        let tables = self.cut(&merged, level + 2);
        self.add(level + 1, tables);
    }

    /// The first table after the last one compacted, in circular order.
    fn next_table(&self, level: usize) -> usize {
        let Some(last) = self.last_key[level] else { return 0 };
        let at = self.tables[level].partition_point(|table| table[0] <= last);
        if at == self.tables[level].len() { 0 } else { at }
    }

    /// Tables of limited size and limited overlap with level `grandchild`.
    fn cut(&self, keys: &[u32], grandchild: usize) -> Vec<Table> {
        let none = Vec::new();
        let below = self.tables.get(grandchild).unwrap_or(&none);
        let mut tables = Vec::new();
        let mut rest = keys;
        while !rest.is_empty() {
            let mut len = rest.len().min(self.rules.table_items);
            let first = overlap(below, rest[0], rest[0]).start;
            if let Some(beyond) = below.get(first + self.rules.overlapped_tables) {
                len = len.min(rest.partition_point(|&key| key < beyond[0]).max(1));
            }
            tables.push(rest[..len].to_vec());
            rest = &rest[len..];
        }
        tables
    }
}

/// Which of the tables, sorted and disjoint, hold keys within `first..=last`.
fn overlap(tables: &[Table], first: u32, last: u32) -> std::ops::Range<usize> {
    let start = tables.partition_point(|table| table.last().is_some_and(|&key| key < first));
    let end = tables.partition_point(|table| table[0] <= last);
    start..end.max(start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::LevelDb;
    use alluvium_model::KeyDistribution;

    /// LevelDB's proportions at a hundredth of the size of Table 4.1.
    fn rules() -> LevelDbSimulation {
        LevelDbSimulation {
            wal: 420,
            level0_tables: 4,
            sizes: vec![1_049, 10_486, 104_858],
            table_items: 210,
            overlapped_tables: 10,
        }
    }

    #[test]
    fn the_model_agrees_within_five_percent() {
        for skew in [0.0, 0.99] {
            let rules = rules();
            let mut requests = RequestStream::new(500_000, skew, 3).unwrap();
            let simulated = rules.run(&mut requests, 1_500_000).unwrap();
            let sizes = rules.sizes.iter().map(|&size| size as f64).collect();
            let design = LevelDb { wal: 420.0, level0_tables: 4.0, sizes, ..LevelDb::default() };
            let model = design.cost(&KeyDistribution::zipf(5e5, skew).unwrap()).unwrap();
            let ratio = model.write_amplification() / simulated.write_amplification();
            assert!((ratio - 1.0).abs() < 0.05, "skew {skew}: {ratio}\n{model:?}\n{simulated:?}");
        }
    }

    #[test]
    fn nothing_is_lost_and_levels_stay_sorted() {
        let rules = LevelDbSimulation { wal: 20, sizes: vec![50, 300], table_items: 10, ..rules() };
        let mut state = Levels {
            rules: &rules,
            tables: vec![Vec::new(); 4],
            items: vec![0; 4],
            last_key: vec![None; 4],
            written: vec![0; 4],
        };
        let mut requests = RequestStream::new(2_000, 0.8, 5).unwrap();
        let mut expected = std::collections::BTreeSet::new();
        let mut memtable = Vec::new();
        for _ in 0..5_000 {
            let key = requests.next_key();
            expected.insert(key);
            state.insert(&mut memtable, key);
        }
        let stored: std::collections::BTreeSet<u32> =
            state.tables.iter().flatten().flatten().chain(&memtable).copied().collect();
        assert_eq!(stored, expected);
        for level in &state.tables[1..] {
            let keys: Vec<u32> = level.concat();
            assert!(keys.is_sorted_by(|a, b| a < b));
        }
        for (tables, &items) in state.tables.iter().zip(&state.items) {
            assert_eq!(tables.iter().map(|table| table.len() as u64).sum::<u64>(), items);
        }
        assert!(state.items[1] <= 50 && state.items[2] <= 300);
    }
}
