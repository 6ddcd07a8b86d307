//! SkimpyStash: a log whose records are chained on the device from a small directory in memory (SkimpyStash, SIGMOD
//! 2011, §4.5 and §4.6).

use super::skimpy_chain::{reads_of_all, reads_of_one};
use super::{ChainLengths, Component, Cost};
use crate::KeyDistribution;
use crate::error::{ModelError, within};

/// How keys choose their slot of the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainDirectory {
    /// The base design: one hash function; a slot is a pointer.
    Base,
    /// The enhanced design: the shorter of two chains; a slot is a pointer, a count and a Bloom filter.
    Enhanced,
}

/// SkimpyStash's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SkimpyStash {
    /// How keys choose their slot.
    pub directory: ChainDirectory,
    /// k: keys per slot.
    pub chain_length: f64,
    /// m: records of a chain that compaction puts on one page; 1 for no compaction.
    pub records_per_page: f64,
    /// Share of the log that is garbage when cleaning starts, for a store that is updated uniformly; 0 for a store that
    /// is only filled and never cleaned.
    pub garbage_share: f64,
    /// Bytes of a pointer.
    pub pointer_bytes: f64,
    /// Bits of Bloom filter per key, in the enhanced design.
    pub filter_bits: f64,
    /// Bytes of a record without its pointer.
    pub item_bytes: f64,
}

impl SkimpyStash {
    /// The paper's example: 10 keys a slot, pointers of 4 bytes, 8 bits of filter a key, records of 64 bytes, neither
    /// compaction nor cleaning.
    pub fn new(directory: ChainDirectory) -> Self {
        Self {
            directory,
            chain_length: 10.0,
            records_per_page: 1.0,
            garbage_share: 0.0,
            pointer_bytes: 4.0,
            filter_bits: 8.0,
            item_bytes: 64.0,
        }
    }

    /// Reads per get as the paper estimates them: k / 2, or k / 2m with compaction. The exact expectation is in
    /// [`cost`](Self::cost).
    pub fn reads_as_published(&self) -> f64 {
        self.chain_length / (2.0 * self.records_per_page)
    }

    /// What it costs. Gets are as popular as updates; without updates, popularity and number of keys make no
    /// difference.
    pub fn cost(&self, keys: &KeyDistribution) -> Result<Cost, ModelError> {
        self.validate()?;
        let lengths = match self.directory {
            ChainDirectory::Base => ChainLengths::single(self.chain_length),
            ChainDirectory::Enhanced => ChainLengths::two_choice(self.chain_length),
        };
        let compacted = self.compacted_share(&lengths);
        // Cleaning moves each chain once in the time in which the log is written through once. In that time, live
        // records are moved once; updates and their compaction fill the space of the garbage.
        let cleaning =
            if self.garbage_share > 0.0 { (1.0 - self.garbage_share) / self.garbage_share } else { 0.0 };
        let pointer = self.pointer_bytes / self.item_bytes;
        let records = (1.0 + compacted) * (1.0 + cleaning);
        let writes = vec![
            Component::new("log", 1.0),
            Component::new("compaction", compacted),
            Component::new("garbage collection", (1.0 + compacted) * cleaning),
            Component::new("chain pointer", records * pointer),
        ];
        let stored =
            if self.garbage_share > 0.0 { 1.0 / (1.0 - self.garbage_share) } else { 1.0 + compacted };
        let space = vec![
            Component::new("live", 1.0),
            Component::new("garbage", stored - 1.0),
            Component::new("chain pointer", stored * pointer),
        ];
        let mut memory = vec![Component::new("directory", self.pointer_bytes / self.chain_length)];
        if self.directory == ChainDirectory::Enhanced {
            memory.push(Component::new("count", 1.0 / self.chain_length));
            memory.push(Component::new("filter", self.filter_bits / 8.0));
        }
        let (reads_per_get, reads_per_miss) = self.reads(keys, &lengths, compacted, cleaning);
        Ok(Cost { writes, reads_per_get, reads_per_miss, memory, space })
    }

    /// Updates that a key has received when its chain is moved, for each record written then.
    fn updates_per_move(&self, compacted: f64, cleaning: f64) -> f64 {
        if cleaning > 0.0 { 1.0 / cleaning / (1.0 + compacted) } else { 0.0 }
    }

    /// Records that compaction rewrites, per record put: those that fill whole pages.
    ///
    /// If cleaning also moves chains, only records that arrived since the last move are compacted.
    fn compacted_share(&self, lengths: &ChainLengths) -> f64 {
        let page = self.records_per_page;
        if page <= 1.0 {
            return 0.0;
        }
        let whole_pages = |length: f64| (length / page).floor() * page;
        if self.garbage_share == 0.0 {
            return lengths.mean_over_slots(whole_pages) / self.chain_length;
        }
        // More compaction means sooner cleaning, which leaves less to compact.
        let cleaning = (1.0 - self.garbage_share) / self.garbage_share;
        let mut share = 0.5;
        for _ in 0..60 {
            let updates = self.chain_length * self.updates_per_move(share, cleaning);
            let next = ChainLengths::single(updates).mean_over_slots(whole_pages) / updates;
            share = (share + next) / 2.0;
        }
        share
    }

    /// Reads per present and per missing key.
    fn reads(
        &self,
        keys: &KeyDistribution,
        lengths: &ChainLengths,
        compacted: f64,
        cleaning: f64,
    ) -> (f64, f64) {
        let page = self.records_per_page;
        let moved_hit = lengths.mean_over_keys(|length| reads_of_one(length, page));
        let others = lengths.mean_over_keys(|length| length - 1.0);
        let updates = self.updates_per_move(compacted, cleaning);
        // In the time between two moves of a chain, a key that was updated since the last move is behind the updates of
        // other keys that came after its own. A key that was not updated is behind all updates, and then at its place
        // in the moved chain. With a expected updates of the key and n of the others so far, the average number of
        // updates of the others since the last update of the key is n · (1 − e^−a)/a, which includes those before a key
        // without updates.
        let (mut hit, mut longer) = (0.0, 0.0);
        const MOMENTS: u32 = 32;
        for moment in 0..MOMENTS {
            let per_key = updates * (f64::from(moment) + 0.5) / f64::from(MOMENTS);
            let of_others = others * per_key;
            for group in keys.groups() {
                let own = per_key * group.probability * keys.keys();
                let untouched = (-own).exp();
                let since = if own > 0.0 { -(-own).exp_m1() / own } else { 1.0 };
                let reads = packed(of_others * since, page) + (1.0 - untouched) + untouched * moved_hit;
                hit += group.keys * group.probability * reads / f64::from(MOMENTS);
            }
            longer += packed(self.chain_length * per_key, page) / f64::from(MOMENTS);
        }
        match self.directory {
            ChainDirectory::Base => {
                (hit, lengths.mean_over_slots(|length| reads_of_all(length, page)) + longer)
            }
            ChainDirectory::Enhanced => {
                let wasted = lengths.mean_over_slots(|length| {
                    self.false_positive_rate(length) * (reads_of_all(length, page) + longer)
                });
                // Half of the time, the wrong one of the two chains is searched first.
                (hit + wasted / 2.0, 2.0 * wasted)
            }
        }
    }

    /// False positive rate of a slot's filter that is made for k keys and holds `length`.
    fn false_positive_rate(&self, length: f64) -> f64 {
        let bits = self.filter_bits * self.chain_length;
        if bits < 1.0 {
            return 1.0;
        }
        let functions = (self.filter_bits * std::f64::consts::LN_2).round().max(1.0);
        (1.0 - (-functions * length / bits).exp()).powf(functions)
    }

    fn validate(&self) -> Result<(), ModelError> {
        within("chain-length", self.chain_length, 0.01, 255.0)?;
        within("records-per-page", self.records_per_page, 1.0, 4_096.0)?;
        within("garbage-share", self.garbage_share, 0.0, 0.99)?;
        within("pointer-bytes", self.pointer_bytes, 1.0, 8.0)?;
        within("filter-bits", self.filter_bits, 0.0, 64.0)?;
        within("item-bytes", self.item_bytes, 1.0, 1e9)?;
        if self.records_per_page.fract() != 0.0 {
            return Err(ModelError::OutOfRange {
                name: "records-per-page",
                value: self.records_per_page,
                expected: "it is a whole number".to_owned(),
            });
        }
        Ok(())
    }
}

/// Reads of `records` records that arrived one by one, if every `per_page` of them are put on one page.
fn packed(records: f64, per_page: f64) -> f64 {
    records.min(records / per_page + (per_page - 1.0) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> KeyDistribution {
        KeyDistribution::uniform(1e6).unwrap()
    }

    #[test]
    fn memory_as_section_4_5_says() {
        // Figure 4: 4 / k bytes, and 1 + 5 / k.
        for chain_length in [1.0, 2.0, 4.0, 10.0, 32.0] {
            let base = SkimpyStash { chain_length, ..SkimpyStash::new(ChainDirectory::Base) };
            assert!((base.cost(&keys()).unwrap().bytes_per_item() - 4.0 / chain_length).abs() < 1e-12);
            let enhanced = SkimpyStash { chain_length, ..SkimpyStash::new(ChainDirectory::Enhanced) };
            assert!(
                (enhanced.cost(&keys()).unwrap().bytes_per_item() - (1.0 + 5.0 / chain_length)).abs() < 1e-12
            );
        }
    }

    #[test]
    fn reads_are_one_more_than_half_a_chain() {
        let base = SkimpyStash::new(ChainDirectory::Base);
        assert_eq!(base.reads_as_published(), 5.0);
        let cost = base.cost(&keys()).unwrap();
        assert!((cost.reads_per_get - 6.0).abs() < 1e-9, "{}", cost.reads_per_get);
        assert!((cost.reads_per_miss - 10.0).abs() < 1e-9);
        // Two choices make chain lengths even: 5.55, and a small addition for wrong filters.
        let enhanced = SkimpyStash { filter_bits: 40.0, ..SkimpyStash::new(ChainDirectory::Enhanced) };
        assert!((enhanced.cost(&keys()).unwrap().reads_per_get - 5.55).abs() < 0.02);
        let enhanced = SkimpyStash::new(ChainDirectory::Enhanced).cost(&keys()).unwrap();
        assert!(enhanced.reads_per_get < 5.75 && enhanced.reads_per_miss < 0.6);
    }

    #[test]
    fn compaction_divides_reads_and_doubles_writes() {
        let plain = SkimpyStash { chain_length: 32.0, ..SkimpyStash::new(ChainDirectory::Enhanced) };
        let packed = SkimpyStash { records_per_page: 8.0, ..plain };
        let (plain, packed) = (plain.cost(&keys()).unwrap(), packed.cost(&keys()).unwrap());
        assert!(packed.reads_per_get < plain.reads_per_get / 2.5);
        let (before, after) = (plain.write_amplification(), packed.write_amplification());
        assert!(after > 1.7 * before && after < 2.0 * before, "{before} {after}");
    }

    #[test]
    fn cleaning_costs_the_inverse_of_the_garbage() {
        let design = SkimpyStash { garbage_share: 0.25, ..SkimpyStash::new(ChainDirectory::Base) };
        let cost = design.cost(&keys()).unwrap();
        let without_pointers = cost.write_amplification() / (1.0 + 4.0 / 64.0);
        assert!((without_pointers - 4.0).abs() < 1e-9);
        // Obsolete versions in the chain increase reads a little.
        assert!(cost.reads_per_get > 6.0 && cost.reads_per_get < 7.0);
        assert!(cost.reads_per_miss > 10.0);
        // A popular key is near the head of its chain.
        let skewed = design.cost(&KeyDistribution::zipf(1e6, 0.99).unwrap()).unwrap();
        assert!(skewed.reads_per_get < cost.reads_per_get - 0.3, "{}", skewed.reads_per_get);
        assert!((cost.space[0].amount + cost.space[1].amount - 4.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn bad_parameters_are_refused() {
        let design = SkimpyStash::new(ChainDirectory::Base);
        assert!(SkimpyStash { chain_length: 0.0, ..design }.cost(&keys()).is_err());
        assert!(SkimpyStash { records_per_page: 2.5, ..design }.cost(&keys()).is_err());
        assert!(SkimpyStash { garbage_share: 1.0, ..design }.cost(&keys()).is_err());
    }
}
