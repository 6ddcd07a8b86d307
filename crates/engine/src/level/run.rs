//! A run of hash sections: what one freeze made of one keyspace's part of the log, with one section per shard.

use std::sync::Arc;

use alluvium_base::{HashRange, KeyHash};
use alluvium_index::prefetch_element;
use alluvium_io::sync::atomic::{AtomicBool, Ordering};

use super::table_file::TableFile;
use crate::table::{Section, SectionRange};

/// A run of hash sections. A section is `None` if it was merged or had no items.
#[derive(Debug)]
pub(crate) struct Run {
    pub file: Arc<TableFile>,
    pub shard_bits: u32,
    /// Estimated share of the items that had obsolete versions in tables when the run was made; 0 if that was not
    /// determined.
    pub repeats: f64,
    pub sections: Vec<Option<Arc<RunSection>>>,
}

/// One section of a run. Once it is merged and nobody reads it any more, its filter leaves memory and its space goes
/// back to the file system, long before the other sections of its file are merged.
#[derive(Debug)]
pub(crate) struct RunSection {
    pub section: Arc<Section>,
    file: Arc<TableFile>,
    merged: AtomicBool,
}

impl RunSection {
    pub fn new(section: Arc<Section>, file: Arc<TableFile>) -> Arc<Self> {
        Arc::new(Self { section, file, merged: AtomicBool::new(false) })
    }

    pub fn set_merged(&self) {
        self.merged.store(true, Ordering::Release);
    }

    /// Gives the space back. Nobody may read it any more.
    pub fn give_back(&self) {
        self.file.reclaim(self.section.page_offset(0), self.section.extent_bytes());
    }
}

impl Drop for RunSection {
    fn drop(&mut self) {
        if self.merged.load(Ordering::Acquire) {
            // The table refers to the section as long as the file exists.
            self.section.drop_index();
            self.give_back();
        }
    }
}

impl Run {
    /// The run made of `own`, the sections of one keyspace in `file`.
    pub fn of_sections(
        file: &Arc<TableFile>,
        own: &[Arc<Section>],
        shard_bits: u32,
        repeats: f64,
    ) -> Arc<Self> {
        let mut sections = vec![None; 1 << shard_bits];
        for section in own {
            let shard = if shard_bits == 0 { 0 } else { section.range().low >> (128 - shard_bits) };
            sections[shard as usize] = Some(RunSection::new(section.clone(), file.clone()));
        }
        Arc::new(Self { file: file.clone(), shard_bits, repeats, sections })
    }

    /// The section whose range includes `hash`.
    #[inline]
    pub fn section(&self, hash: KeyHash) -> Option<&Arc<RunSection>> {
        self.sections[hash.prefix(self.shard_bits) as usize].as_ref()
    }

    /// Starts loading what [`Run::section`] reads.
    #[inline]
    pub fn prefetch(&self, hash: KeyHash) {
        prefetch_element(&self.sections, hash.prefix(self.shard_bits) as usize);
    }

    /// The sections that overlap `range`, ascending.
    pub fn sections_within(&self, range: HashRange) -> impl Iterator<Item = &Arc<Section>> {
        self.sections[range.parts(self.shard_bits)].iter().flatten().map(|section| &section.section)
    }

    /// The content in `range`, ascending.
    pub fn stream_within(&self, range: HashRange) -> Vec<SectionRange> {
        let sections = self.sections.iter().flatten();
        sections.filter_map(|section| SectionRange::of(&section.section, range)).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.sections.iter().all(Option::is_none)
    }

    /// Items in the sections in use, tombstones included.
    pub fn item_count(&self) -> u64 {
        self.sections.iter().flatten().map(|section| section.section.item_count()).sum()
    }

    /// The same run without these shards.
    pub fn without(&self, shards: &[u32]) -> Self {
        let mut sections = self.sections.clone();
        for &shard in shards {
            sections[shard as usize] = None;
        }
        Self { file: self.file.clone(), shard_bits: self.shard_bits, repeats: self.repeats, sections }
    }

    /// Shards of this run within the `index`-th of 2^`bits` parts of the hash space; `bits <= self.shard_bits`.
    pub(super) fn shards_within(&self, bits: u32, index: u64) -> std::ops::Range<usize> {
        let shift = self.shard_bits - bits;
        (index << shift) as usize..((index + 1) << shift) as usize
    }
}

/// The `index`-th of 2^`bits` parts of the hash space.
pub(crate) fn shard_range(bits: u32, index: u64) -> HashRange {
    if bits == 0 {
        return HashRange::ALL;
    }
    let low = u128::from(index) << (128 - bits);
    HashRange::new(low, low | (u128::MAX >> bits))
}

/// A part of the hash space whose run sections are merged together: as small as the sections allow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct MergeUnit {
    pub bits: u32,
    pub index: u64,
    /// Items in the run sections of the unit.
    pub items: u64,
    /// Bytes of their pages: the memory that a merge of the unit takes.
    pub bytes: u64,
    /// Estimated number of obsolete versions in tables that are replaced by items in the unit's run sections.
    pub garbage: f64,
    /// Maximum number of run sections over one hash of the unit.
    pub runs: u32,
}

impl MergeUnit {
    /// All units that have sections.
    pub fn all(runs: &[Arc<Run>]) -> Vec<Self> {
        let bits_max = runs.iter().map(|run| run.shard_bits).max().unwrap_or(0);
        let mut units = Vec::new();
        collect(runs, 0, 0, bits_max, &mut units);
        units
    }

    /// The unit's part of the hash space.
    pub fn range(&self) -> HashRange {
        shard_range(self.bits, self.index)
    }
}

/// A part is a unit if some run has a section of exactly its size; otherwise its halves are examined.
fn collect(runs: &[Arc<Run>], bits: u32, index: u64, bits_max: u32, units: &mut Vec<MergeUnit>) {
    let coarse = runs.iter().any(|run| run.shard_bits == bits && run.sections[index as usize].is_some());
    if coarse {
        let mut unit = MergeUnit { bits, index, items: 0, bytes: 0, garbage: 0.0, runs: 0 };
        for run in runs.iter().filter(|run| run.shard_bits >= bits) {
            let sections = &run.sections[run.shards_within(bits, index)];
            let items = sections.iter().flatten().map(|s| s.section.item_count()).sum::<u64>();
            unit.items += items;
            unit.bytes += sections.iter().flatten().map(|s| s.section.pages_bytes()).sum::<u64>();
            unit.garbage += items as f64 * run.repeats;
            unit.runs += u32::from(sections.iter().any(Option::is_some));
        }
        units.push(unit);
    } else if bits < bits_max {
        collect(runs, bits + 1, index * 2, bits_max, units);
        collect(runs, bits + 1, index * 2 + 1, bits_max, units);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shard_ranges_tile_the_hash_space() {
        assert_eq!(shard_range(0, 0), HashRange::ALL);
        for bits in 1..6 {
            let ranges: Vec<_> = (0..1 << bits).map(|index| shard_range(bits, index)).collect();
            assert_eq!(ranges[0].low, 0);
            assert_eq!(ranges.last().unwrap().high, u128::MAX);
            assert!(ranges.windows(2).all(|pair| pair[0].meets(pair[1])));
        }
    }
}
