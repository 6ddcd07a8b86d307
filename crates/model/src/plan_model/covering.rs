//! The cost of filters that name one of the runs of a container: they keep spare room, and each new table has a filter
//! that covers all runs (docs/decisions/0022).

use crate::plan::{Filter, Growth, LevelSpec};

use super::evaluate::PlanModel;

/// Bits of the run number stored with each fingerprint.
const RUN_BITS: u32 = 3;
/// Bits of an entry of the secondary table: hash, run, and where groups begin.
const SECONDARY_BITS: f64 = 140.0;

/// Room of the filters of a container, as a multiple of its number of keys, averaged over its possible numbers of runs,
/// which are equally frequent: from three runs on, a rebuilt filter has room for an even number of runs.
fn room(growth: Growth) -> f64 {
    let Growth::Tiering { runs_max, .. } = growth else { return 1.0 };
    let (mut keys, mut slots) = (0, 0);
    for runs in 1..=runs_max {
        keys += runs;
        slots += if runs > 2 { runs.next_multiple_of(2) } else { runs };
    }
    f64::from(slots) / f64::from(keys)
}

impl PlanModel {
    /// Bits per key of a filter with fingerprints of `fingerprint_bits` bits.
    pub(super) fn multi_level_bits(&self, fingerprint_bits: u32) -> f64 {
        let fill = self.rules.filter_fill;
        // Keys whose fingerprint is already in one of eight slots.
        let secondary = SECONDARY_BITS * 4.0 * fill / 2f64.powi(fingerprint_bits as i32);
        f64::from(fingerprint_bits + RUN_BITS) / fill + secondary
    }

    /// Bits in memory per key of the filters of a level with this growth, including their room.
    pub(super) fn multi_level_memory_bits(&self, growth: Growth, fingerprint_bits: u32) -> f64 {
        self.multi_level_bits(fingerprint_bits) * self.multi_level_room(growth)
    }

    /// Entries for which these filters have room, for each entry that they hold.
    pub(super) fn multi_level_room(&self, growth: Growth) -> f64 {
        if self.rules.stored_indexes { room(growth) } else { 1.0 }
    }

    /// What a new table writes for the filters of `items` items below it, as the number of items whose Bloom filters
    /// take as many bytes.
    pub(super) fn covered_as_bloom_items(&self, level: &LevelSpec, items: f64) -> f64 {
        match level.filter {
            Filter::MultiLevelCuckoo { tag_bits } => {
                items * self.multi_level_memory_bits(level.growth, tag_bits) / self.rules.bloom_bits
            }
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plan;
    use crate::plan_model::{ItemSize, Workload};

    #[test]
    fn bits_are_those_of_the_filter_itself() {
        let item = ItemSize { key_bytes: 16.0, value_bytes: 100.0, deviation_bytes: 0.0 };
        let model = PlanModel::new(Plan::slimdb_tiering(), Workload::load(1e6, item).unwrap());
        // crates/index/src/multi_level_filter/mod.rs: 15.8 and 0.13.
        assert!((model.multi_level_bits(12) - 15.92).abs() < 0.01);
        let growth = |runs_max| Growth::Tiering { runs_max, share: Growth::ANY_SHARE };
        assert_eq!(room(growth(2)), 1.0);
        assert_eq!(room(growth(8)), 39.0 / 36.0);
    }
}
