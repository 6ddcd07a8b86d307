//! SILT's closed forms for uniform updates (Lim's thesis, §2.4, Eq. 2.4 to 2.8; Eq. 4 to 8 in the SOSP paper).

use alluvium_model::models::{Component, Cost};
use alluvium_model::{ModelError, positive, within};

/// The parameters of the closed forms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SiltClosedForm {
    /// N: items of all instances.
    pub items: f64,
    /// P: instances.
    pub instances: f64,
    /// d: maximum number of items in the HashStores of an instance, at which they are merged.
    pub merge_items: f64,
    /// k: bits of a tag.
    pub tag_bits: u32,
}

impl Default for SiltClosedForm {
    /// Table 2.4.
    fn default() -> Self {
        Self { items: 100e6, instances: 4.0, merge_items: 7.5e6, tag_bits: 15 }
    }
}

impl SiltClosedForm {
    /// H, Eq. 2.5: average number of HashStores of an instance.
    pub fn hash_stores(&self) -> f64 {
        0.134 * self.merge_items / 2f64.powi(self.tag_bits as i32)
    }

    /// Eq. 2.4, 2.6 and 2.7. Reads are those of the worst case, a lookup that ends in the SortedStore.
    pub fn cost(&self) -> Result<Cost, ModelError> {
        positive("items", self.items)?;
        positive("instances", self.instances)?;
        positive("merge-items", self.merge_items)?;
        within("tag-bits", f64::from(self.tag_bits), 3.0, 60.0)?;
        let tags = 2f64.powi(self.tag_bits as i32);
        let tag_bits = f64::from(self.tag_bits);
        let instances_per_item = self.instances / self.items;
        let reads = 8.0 / tags + 1.07 * self.merge_items / (tags * tags) + 1.0;
        Ok(Cost {
            writes: vec![
                Component::new("log", 1.0),
                Component::new("LogStore to HashStore", 1.075),
                Component::new("HashStore to SortedStore", self.items / (self.merge_items * self.instances)),
            ],
            reads_per_get: reads,
            reads_per_miss: reads,
            memory: vec![
                Component::new("log index", (16.5 + 0.5 * tag_bits) * tags * instances_per_item),
                Component::new("filter", 0.067 * tag_bits * self.merge_items * instances_per_item),
                Component::new("index", 0.4),
            ],
            space: vec![
                Component::new("LogStore", 0.93 * 4.0 * tags * instances_per_item),
                Component::new("HashStore", self.merge_items / 2.0 * instances_per_item / 0.93),
                Component::new("SortedStore", 1.0),
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alluvium_model::models::Wear;

    #[test]
    fn the_example_of_section_2_4() {
        let example = SiltClosedForm::default();
        let cost = example.cost().unwrap();
        assert!((example.hash_stores() - 31.0).abs() < 0.5);
        assert!((cost.write_amplification() - 5.4).abs() < 0.01);
        assert!((cost.reads_per_get - 1.008).abs() < 5e-4);
        assert!((cost.bytes_per_item() - 0.73).abs() < 0.005);
        assert!((cost.device_lifetime_years(&Wear::default()) - 3.15).abs() < 0.01);
    }

    #[test]
    fn more_memory_buys_fewer_rewrites() {
        // Figure 2.8: along d, write amplification falls as memory grows.
        let mut last = (f64::INFINITY, 0.0);
        for merge_items in [1e6, 3e6, 7.5e6, 15e6] {
            let cost = SiltClosedForm { merge_items, ..SiltClosedForm::default() }.cost().unwrap();
            let point = (cost.write_amplification(), cost.bytes_per_item());
            assert!(point.0 < last.0 && point.1 > last.1);
            last = point;
        }
        assert!(SiltClosedForm { items: 0.0, ..SiltClosedForm::default() }.cost().is_err());
    }
}
