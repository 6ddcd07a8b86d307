//! SlimDB's cost model: each level has one of eight layouts, with its memory, reads and writes (SlimDB, VLDB 2017, §4,
//! Table 1).

use alluvium_model::models::{Component, Cost};
use alluvium_model::{KeyDistribution, ModelError, positive, within};

/// A level's layout: the number of a row of Table 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlimDbLayout(u8);

/// Rows of Table 1 by their names in the paper.
const NAMES: [&str; 8] = ["LSM", "LSM+CF", "LSM+CF+TL", "LSM+TL", "SM", "SM+MLCF", "SM+MLCF+TL", "SM+TL"];
/// Bits of memory per entry of each row.
const MEMORY_BITS: [f64; 8] = [0.0, 13.0, 15.0, 2.0, 0.0, 15.0, 17.0, 2.0];

impl SlimDbLayout {
    /// All rows of Table 1.
    pub const ALL: [Self; 8] = [Self(0), Self(1), Self(2), Self(3), Self(4), Self(5), Self(6), Self(7)];

    /// The row of that number (0 to 7).
    pub fn new(number: u32) -> Result<Self, ModelError> {
        within("layout", f64::from(number), 0.0, 7.0)?;
        Ok(Self(number as u8))
    }

    /// The number of the row.
    pub fn number(self) -> u32 {
        u32::from(self.0)
    }

    /// The paper's name: LSM or SM (stepped merge), with CF (cuckoo filter), MLCF (multi-level cuckoo filter), TL
    /// (three-level index).
    pub fn name(self) -> &'static str {
        NAMES[usize::from(self.0)]
    }

    /// Bits of memory per entry.
    pub fn memory_bits(self) -> f64 {
        MEMORY_BITS[usize::from(self.0)]
    }

    fn is_stepped(self) -> bool {
        self.0 >= 4
    }
}

/// Shares of operations; they need not add up to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlimDbMix {
    /// Gets of present keys.
    pub positive: f64,
    /// Gets of missing keys.
    pub negative: f64,
    /// Puts.
    pub write: f64,
}

/// The parameters of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlimDb {
    /// Levels, the first of which is level 0.
    pub levels: u32,
    /// r: growth factor.
    pub growth: f64,
    /// N₀: entries of level 0.
    pub level0_items: f64,
    /// B: entries of a block of 4 KiB.
    pub block_items: f64,
    /// w: time to write a block sequentially, relative to a random read of one.
    pub block_write: f64,
    /// f: false positive rate of a filter.
    pub false_positive_rate: f64,
    /// Zipf skew of puts and gets of present keys: popular keys are young. 0 in the paper.
    pub skew: f64,
}

impl Default for SlimDb {
    /// Figure 9: five levels, r = 8, N₀ = 2¹⁷; entries of 272 bytes; w as measured in the paper, f as stated there.
    fn default() -> Self {
        Self {
            levels: 5,
            growth: 8.0,
            level0_items: 131_072.0,
            block_items: 15.0,
            block_write: 0.146,
            false_positive_rate: 0.001,
            skew: 0.0,
        }
    }
}

/// What a choice of layouts costs.
#[derive(Clone, Debug, PartialEq)]
pub struct SlimDbCost {
    /// The layouts, young to old.
    pub layouts: Vec<SlimDbLayout>,
    /// Memory of all levels.
    pub memory_bytes: f64,
    /// Cost of an average operation, in random reads (C in the paper).
    pub operation: f64,
    /// Reads, writes and memory in the same form as for other designs.
    pub cost: Cost,
}

impl SlimDb {
    /// The layout of Figure 4, which Figure 9 gives for budgets from 256 to 900 MB: three stepped levels, one with a
    /// filter, one without.
    pub fn published_layouts() -> [SlimDbLayout; 5] {
        [SlimDbLayout(6), SlimDbLayout(6), SlimDbLayout(6), SlimDbLayout(2), SlimDbLayout(3)]
    }

    /// Entries of each level.
    pub fn level_items(&self) -> Vec<f64> {
        (0..self.levels).map(|level| self.level0_items * self.growth.powi(level as i32)).collect()
    }

    /// What these layouts cost under `mix`.
    pub fn cost(&self, layouts: &[SlimDbLayout], mix: &SlimDbMix) -> Result<SlimDbCost, ModelError> {
        self.validate(mix)?;
        within("number of layouts", layouts.len() as f64, f64::from(self.levels), f64::from(self.levels))?;
        let items = self.level_items();
        let found = self.found_shares()?;
        let all: f64 = items.iter().sum();
        let (mut present, mut absent, mut memory_bits) = (0.0, 0.0, 0.0);
        let mut writes = Vec::new();
        for (level, (&layout, &here)) in layouts.iter().zip(&items).enumerate() {
            present += found[level] * (self.present_reads(layout) + absent);
            absent += self.absent_reads(layout);
            memory_bits += here * layout.memory_bits();
            // An entry that is in a level was written by every level down to it.
            let reaching: f64 = items[level..].iter().sum::<f64>() / all;
            writes.push(Component::new(format!("level {level}"), reaching * self.rewrites(layout)));
        }
        let block_write = self.block_write / self.block_items;
        let write: f64 = writes.iter().map(|component| component.amount * block_write).sum();
        let space = items.iter().enumerate();
        let space = space.map(|(level, here)| Component::new(format!("level {level}"), here / all)).collect();
        Ok(SlimDbCost {
            layouts: layouts.to_vec(),
            memory_bytes: memory_bits / 8.0,
            operation: mix.positive * present + mix.negative * absent + mix.write * write,
            cost: Cost {
                writes,
                reads_per_get: present,
                reads_per_miss: absent,
                memory: vec![Component::new("index and filter", memory_bits / 8.0 / all)],
                space,
            },
        })
    }

    /// Share of the gets of present keys that each level answers: its share of the entries if all are equally popular;
    /// else younger levels hold the most recently put keys.
    pub(super) fn found_shares(&self) -> Result<Vec<f64>, ModelError> {
        let items = self.level_items();
        let keys = KeyDistribution::zipf(items.iter().sum::<f64>().max(1.0), self.skew)?;
        let (mut held, mut found) = (0.0, 0.0);
        let shares = items.iter().enumerate().map(|(level, here)| {
            held += here;
            let is_last = level + 1 == items.len();
            let before = found;
            found = if is_last { 1.0 } else { keys.cache_hit_share(held) };
            found - before
        });
        Ok(shares.collect())
    }

    /// C_PR of Table 1: reads of a level that holds the key.
    pub(super) fn present_reads(&self, layout: SlimDbLayout) -> f64 {
        match layout.0 {
            0 | 1 | 5 => 2.0,
            4 => self.growth + 1.0,
            7 => (self.growth + 1.0) / 2.0,
            _ => 1.0,
        }
    }

    /// C_NR: reads of a level that does not.
    pub(super) fn absent_reads(&self, layout: SlimDbLayout) -> f64 {
        match layout.0 {
            0 => 2.0,
            1 | 5 => 2.0 * self.false_positive_rate,
            2 | 6 => self.false_positive_rate,
            3 => 1.0,
            4 => 2.0 * self.growth,
            _ => self.growth,
        }
    }

    /// C_W, in writes of the entry: r in a level of one run, 1 in one of r runs.
    pub(super) fn rewrites(&self, layout: SlimDbLayout) -> f64 {
        if layout.is_stepped() { 1.0 } else { self.growth }
    }

    pub(super) fn validate(&self, mix: &SlimDbMix) -> Result<(), ModelError> {
        within("levels", f64::from(self.levels), 1.0, 20.0)?;
        within("growth", self.growth, 1.1, 1_000.0)?;
        positive("level0-items", self.level0_items)?;
        positive("block-items", self.block_items)?;
        within("block-write", self.block_write, 0.0, 1e6)?;
        within("false-positive-rate", self.false_positive_rate, 0.0, 1.0)?;
        within("positive", mix.positive, 0.0, 1e6)?;
        within("negative", mix.negative, 0.0, 1e6)?;
        within("write", mix.write, 0.0, 1e6)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIX: SlimDbMix = SlimDbMix { positive: 0.5, negative: 0.25, write: 0.25 };

    #[test]
    fn the_published_layout_takes_267_mebibytes() {
        let design = SlimDb::default();
        // "About a half billion entries": exactly 2^17 · (8^5 − 1) / 7.
        assert_eq!(design.level_items().iter().sum::<f64>(), 613_548_032.0);
        let cost = design.cost(&SlimDb::published_layouts(), &MIX).unwrap();
        assert!((cost.memory_bytes / 1_048_576.0 - 267.0).abs() < 0.5, "{}", cost.memory_bytes);
        // One read for a present key, only the last level for a missing one.
        assert!((cost.cost.reads_per_get - 1.004).abs() < 0.001);
        assert!((cost.cost.reads_per_miss - 1.004).abs() < 1e-9);
    }

    #[test]
    fn table_1_line_by_line() {
        let design = SlimDb { levels: 1, ..SlimDb::default() };
        let f = design.false_positive_rate;
        let rows = [
            (0.0, 2.0, 2.0, 8.0),
            (13.0, 2.0, 2.0 * f, 8.0),
            (15.0, 1.0, f, 8.0),
            (2.0, 1.0, 1.0, 8.0),
            (0.0, 9.0, 16.0, 1.0),
            (15.0, 2.0, 2.0 * f, 1.0),
            (17.0, 1.0, f, 1.0),
            (2.0, 4.5, 8.0, 1.0),
        ];
        for (layout, (bits, present, absent, rewrites)) in SlimDbLayout::ALL.into_iter().zip(rows) {
            let cost = design.cost(&[layout], &MIX).unwrap();
            assert_eq!(cost.memory_bytes * 8.0 / design.level0_items, bits, "{}", layout.name());
            assert_eq!(
                (cost.cost.reads_per_get, cost.cost.reads_per_miss),
                (present, absent),
                "{}",
                layout.name()
            );
            assert_eq!(cost.cost.write_amplification(), rewrites);
            assert_eq!(SlimDbLayout::new(layout.number()).unwrap(), layout);
        }
        assert!(SlimDbLayout::new(8).is_err());
        assert!(design.cost(&[], &MIX).is_err());
    }

    #[test]
    fn skew_finds_keys_in_young_levels() {
        let layouts = SlimDbLayout::ALL.map(|_| SlimDbLayout(7));
        let reads = |skew: f64| {
            let design = SlimDb { skew, ..SlimDb::default() };
            design.cost(&layouts[..5], &MIX).unwrap().cost.reads_per_get
        };
        // By entries, seven in eight keys are behind four levels of eight runs. The closed form gives the same.
        let design = SlimDb::default();
        let all: f64 = design.level_items().iter().sum();
        let by_entries: f64 = design
            .level_items()
            .iter()
            .enumerate()
            .map(|(level, here)| here / all * (4.5 + 8.0 * level as f64))
            .sum();
        assert!((reads(0.0) / by_entries - 1.0).abs() < 1e-9);
        assert!(reads(0.99) < 0.6 * reads(0.0));
    }

    #[test]
    fn all_tiering_costs_about_a_rewrite_per_level() {
        // Table 7: 3.74 for four stepped levels; log_r N = 4 is the bound.
        let design = SlimDb { levels: 4, ..SlimDb::default() };
        let cost = design.cost(&[SlimDbLayout(6); 4], &MIX).unwrap().cost;
        assert!((cost.write_amplification() - 3.74).abs() < 0.2, "{}", cost.write_amplification());
    }
}
