//! SILT: a log, hash tables with filters, one sorted table (Lim's thesis, §4.5 and Algorithm 5).

use alluvium_model::models::{Component, Cost, Lookup, Stage};
use alluvium_model::{KeyDistribution, ModelError, positive, within};

/// The parameters of one instance of SILT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Silt {
    /// Slots of the hash table of LogStore and HashStore.
    pub table: f64,
    /// Share of the slots that are filled when the LogStore is converted.
    pub occupancy: f64,
    /// Number of HashStores that are merged together into the SortedStore.
    pub hash_stores: f64,
    /// Bits of a tag: it can distinguish at most 2^(bits + 2) slots, and a filter errs in 8 of 2^bits cases.
    pub tag_bits: u32,
    /// Bytes of index per item of the SortedStore: 0.4 in SILT.
    pub sorted_bytes: f64,
}

impl Default for Silt {
    /// The example of Lim's thesis: tables of 2¹⁷ slots filled to 93 %, 62 HashStores.
    fn default() -> Self {
        Self { table: 131_072.0, occupancy: 0.93, hash_stores: 62.0, tag_bits: 15, sorted_bytes: 0.4 }
    }
}

impl Silt {
    /// What it costs over the keys of one instance.
    pub fn cost(&self, keys: &KeyDistribution) -> Result<Cost, ModelError> {
        positive("table", self.table)?;
        within("occupancy", self.occupancy, 1e-6, 1.0)?;
        within("hash-stores", self.hash_stores, 1.0, 1e9)?;
        within("tag-bits", f64::from(self.tag_bits), 3.0, 60.0)?;
        within("sorted-bytes", self.sorted_bytes, 0.0, 1e6)?;
        let entries = self.table * self.occupancy;
        if entries >= keys.keys() {
            return Err(ModelError::OutOfRange {
                name: "table",
                value: self.table,
                expected: format!("filled slots are fewer than the {} keys", keys.keys()),
            });
        }
        // Requests that fill a LogStore, and those between merges.
        let conversion = keys.unique_inverse(entries);
        let merge = conversion * self.hash_stores;
        // 0 to hash_stores tables, uniformly distributed: half of them on average (SILT Eq. 5).
        let runs = self.hash_stores / 2.0;
        let false_positives = 8.0 / 2f64.powi(self.tag_bits as i32);
        let log = keys.mean_recent_share(conversion);
        let lookup = Lookup {
            stages: vec![
                Stage::single(log, 1.0, false_positives),
                Stage::collecting(keys.mean_recent_share(merge), runs, false_positives),
                Stage::single(1.0, 1.0, 1.0),
            ],
        };
        let per_item = |bytes: f64| bytes / keys.keys();
        let tag_bytes = f64::from(self.tag_bits) / 8.0;
        // An entry of the LogStore has a valid bit and a pointer of 4 bytes in addition to the tag.
        let log_entry_bytes = f64::from(self.tag_bits + 1) / 8.0 + 4.0;
        Ok(Cost {
            writes: vec![
                Component::new("log", 1.0),
                Component::new("LogStore to HashStore", self.table / conversion),
                Component::new("HashStore to SortedStore", keys.keys() / merge),
            ],
            reads_per_get: lookup.reads_per_get(),
            reads_per_miss: lookup.reads_per_miss(),
            memory: vec![
                Component::new("log index", per_item(log_entry_bytes * self.table)),
                Component::new("filter", per_item(tag_bytes * self.table * runs)),
                Component::new("index", self.sorted_bytes),
            ],
            space: vec![
                Component::new("LogStore", per_item(conversion / 2.0)),
                Component::new("HashStore", per_item(self.table * runs)),
                Component::new("SortedStore", 1.0),
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_section_4_5() {
        let uniform = Silt::default().cost(&KeyDistribution::uniform(25e6).unwrap()).unwrap();
        assert!((uniform.write_amplification() - 5.4).abs() < 0.05, "{}", uniform.write_amplification());
        assert!((uniform.reads_per_miss - 1.008).abs() < 5e-4, "{}", uniform.reads_per_miss);
        assert!((uniform.bytes_per_item() - 0.73).abs() < 0.01, "{}", uniform.bytes_per_item());

        let skewed = KeyDistribution::zipf(25e6, 0.99).unwrap();
        let cost = Silt::default().cost(&skewed).unwrap();
        assert!((cost.write_amplification() - 3.0).abs() < 0.05, "{}", cost.write_amplification());
        // 25 HashStores suffice for the same rewrites, with 0.56 bytes an item.
        let fewer = Silt { hash_stores: 25.0, ..Silt::default() }.cost(&skewed).unwrap();
        assert!((fewer.write_amplification() - 5.4).abs() < 0.15, "{}", fewer.write_amplification());
        assert!((fewer.bytes_per_item() - 0.56).abs() < 0.01, "{}", fewer.bytes_per_item());
    }

    #[test]
    fn a_table_larger_than_the_store_is_refused() {
        let keys = KeyDistribution::uniform(1e5).unwrap();
        let error = Silt::default().cost(&keys).unwrap_err();
        assert!(error.to_string().contains("fewer than the 100000 keys"), "{error}");
    }
}
