//! [`Rules`]: the bytes that storing costs besides the items.

use crate::error::{ModelError, within};
use crate::models::ChainDirectory;
use crate::plan::{GARBAGE_SHARE_MAX, LAST_GARBAGE_SHARE_MAX, TIERS_GARBAGE_SHARE_MAX};

/// Bytes of key and value from which on a value counts as long: 128 and a usual key.
const LONG_BYTES: f64 = 144.0;

/// What the engine adds to items, and what its structures take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Bytes of a log record besides key and value.
    pub log_record_bytes: f64,
    /// Bytes of a page: 4, 8 or 16 KiB.
    pub page_bytes: f64,
    /// Bytes of a page's header.
    pub page_header_bytes: f64,
    /// Bytes of an item on a page besides key and value.
    pub page_item_bytes: f64,
    /// Bytes that items of long values take besides, on a page and in the log: their lengths are longer.
    pub long_value_bytes: f64,
    /// Whether every item may lie on two adjacent pages, fetched together, so that pages are always full.
    pub straddle: bool,
    /// Share of a page that may stay unused for the sake of whole items: an item as large goes on in the next page
    /// where more would be lost.
    pub page_loss_max: f64,
    /// Share of a hash table's slots that hold items; the others are written, too. 1 where items are packed.
    pub hash_fill: f64,
    /// Share of a bucketed table that is filled.
    pub bucket_fill: f64,
    /// Share of a filter's or log index's slots that are filled.
    pub filter_fill: f64,
    /// Slots of a static filter per key.
    pub static_slots: f64,
    /// Bits of a Bloom filter per key.
    pub bloom_bits: f64,
    /// Bytes of a slot of the log index.
    pub log_slot_bytes: f64,
    /// Bits of page fences per page.
    pub fence_bits: f64,
    /// Bits of an entropy-coded trie per page.
    pub trie_bits: f64,
    /// Bytes that the filter and the index of one shard's part of a run take besides, however few its items.
    pub section_bytes: f64,
    /// Bits of a three-level index per item.
    pub three_level_bits: f64,
    /// Share of a bucketed table's buckets whose migrations are kept in memory, 8 bytes each.
    pub remembered_share: f64,
    /// Reads to fetch an item from a bucketed table; where none is given they follow from the items' sizes.
    pub bucket_reads: Option<f64>,
    /// How far young levels are over their bound, from 1: merges that only just keep up with writers at full speed find
    /// more to merge at a time. The engine slows writers from 1.15 on.
    pub overrun: f64,
    /// Nanoseconds that a put takes which is not slowed, in [`Phases`](super::Phases).
    pub put_ns: f64,
    /// Nanoseconds that merging takes for each byte that it writes, likewise; 0 where merges keep up with any writer.
    pub merge_byte_ns: f64,
    /// Nanoseconds that a merge takes however little it writes: for syncs of tables, directory and manifest.
    pub merge_ns: f64,
    /// Nanoseconds that it takes besides for each run that it merges: runs are read one after the other.
    pub merged_run_ns: f64,
    /// Nanoseconds besides for each item that it writes, where it makes a filter of all runs of a place. From all five
    /// follows how far behind merges get: so far that writers are slowed to their speed.
    pub multi_level_item_ns: f64,
    /// Frozen logs that wait for conversion or are being converted, in the mean over all time; each keeps its index in
    /// memory.
    pub frozen_logs: f64,
    /// Old values of items in the young levels, as a share of the live items, from which on they are merged whatever
    /// their share.
    pub young_garbage_max: f64,
    /// Old values of items in all tiering levels above the last, as a share of the live items, from which on the place
    /// that has most of them is merged with what the next level has there.
    pub tiers_garbage_max: f64,
    /// Garbage in a last level that only collects runs, as a share of it, at which a container is rewritten; and in
    /// the log of a chained plan.
    pub garbage_share: f64,
    /// Whether compaction of a leveling level rewrites tables of the next one that lie partly outside, as LevelDB does.
    pub false_overlaps: bool,
    /// Directory of a chained plan.
    pub chain_directory: ChainDirectory,
    /// Whether filters and indexes are written into the tables.
    pub stored_indexes: bool,
}

impl Rules {
    /// This engine (docs/format.md); what it does not execute yet is taken from the papers.
    pub fn engine() -> Self {
        Self {
            log_record_bytes: 8.0,
            page_bytes: 4_096.0,
            page_header_bytes: 16.0,
            page_item_bytes: 4.0,
            long_value_bytes: 1.0,
            straddle: false,
            page_loss_max: 1.0 / 16.0,
            hash_fill: 1.0,
            bucket_fill: 0.97,
            filter_fill: 0.95,
            static_slots: 1.03,
            bloom_bits: 16.0,
            log_slot_bytes: 6.0,
            fence_bits: 10.3,
            trie_bits: 25.6,
            section_bytes: 350.0,
            three_level_bits: 2.0,
            remembered_share: 0.5,
            bucket_reads: None,
            overrun: 1.0,
            put_ns: 0.0,
            merge_byte_ns: 0.0,
            merge_ns: 0.0,
            merged_run_ns: 0.0,
            multi_level_item_ns: 0.0,
            frozen_logs: 0.0,
            young_garbage_max: GARBAGE_SHARE_MAX,
            tiers_garbage_max: TIERS_GARBAGE_SHARE_MAX,
            garbage_share: LAST_GARBAGE_SHARE_MAX,
            false_overlaps: false,
            chain_directory: ChainDirectory::Enhanced,
            stored_indexes: true,
        }
    }

    /// This engine while writers put as fast as it takes: conversion and merges are behind by as much as writers are
    /// not slowed for. The backlogs are those seen in loads of 2 to 20 million items on two cores. The times are those
    /// with which [`Phases`](super::Phases) come nearest to what loads and updates of 20 million items left behind
    /// there under seven plans; merges took 4 to 18 ns a byte, by plan and by what else ran.
    pub fn engine_at_full_speed() -> Self {
        Self {
            overrun: 1.1,
            put_ns: 2_000.0,
            merge_byte_ns: 5.5,
            merge_ns: 18e6,
            merged_run_ns: 0.8e6,
            multi_level_item_ns: 1_600.0,
            frozen_logs: 1.0,
            ..Self::engine()
        }
    }

    /// The papers' world: an item costs its own size wherever it is written, pages are always full.
    pub fn papers() -> Self {
        Self {
            log_record_bytes: 0.0,
            page_header_bytes: 0.0,
            page_item_bytes: 0.0,
            long_value_bytes: 0.0,
            section_bytes: 0.0,
            straddle: true,
            bucket_fill: 1.0,
            remembered_share: 1792.0 / 8192.0,
            bucket_reads: Some(1.01),
            young_garbage_max: f64::INFINITY,
            tiers_garbage_max: f64::INFINITY,
            stored_indexes: false,
            ..Self::engine()
        }
    }

    /// Bytes of an item's lengths beyond those that every item has, by its bytes of key and value.
    pub(super) fn length_bytes(&self, bytes: f64) -> f64 {
        if bytes >= LONG_BYTES { self.long_value_bytes } else { 0.0 }
    }

    pub(crate) fn validate(&self) -> Result<(), ModelError> {
        within("page-bytes", self.page_bytes, 512.0, 1_048_576.0)?;
        within("frozen-logs", self.frozen_logs, 0.0, 100.0)?;
        within("overrun", self.overrun, 1.0, 10.0)?;
        within("put-ns", self.put_ns, 0.0, 1e9)?;
        within("merge-byte-ns", self.merge_byte_ns, 0.0, 1e9)?;
        within("merge-ns", self.merge_ns, 0.0, 1e12)?;
        within("merged-run-ns", self.merged_run_ns, 0.0, 1e12)?;
        within("multi-level-item-ns", self.multi_level_item_ns, 0.0, 1e12)?;
        within("garbage-share", self.garbage_share, 0.001, 0.99)?;
        within("bloom-bits", self.bloom_bits, 1.0, 64.0)?;
        within("hash-fill", self.hash_fill, 0.01, 1.0)?;
        within("page-loss-max", self.page_loss_max, 0.0, 1.0)?;
        within("young-garbage-max", self.young_garbage_max, 0.001, f64::INFINITY)?;
        within("tiers-garbage-max", self.tiers_garbage_max, 0.001, f64::INFINITY)?;
        within("bucket-fill", self.bucket_fill, 0.01, 1.0)?;
        within("filter-fill", self.filter_fill, 0.01, 1.0)?;
        Ok(())
    }

    /// Items per page, for items of `bytes` key and value bytes with the given standard deviation. Below 1 when an
    /// item takes several pages.
    pub fn items_per_page(&self, bytes: f64, deviation_bytes: f64) -> f64 {
        let payload = self.page_bytes - self.page_header_bytes;
        let item = bytes + self.page_item_bytes + self.length_bytes(bytes);
        if self.straddle {
            return payload / item;
        }
        if item > payload {
            return 1.0 / (item / payload).ceil();
        }
        // What the next item does not fit in stays empty. Equal items leave a fixed rest. Of items that vary, the page
        // ends somewhere in one that is met in proportion to its size: half of E[s²]/E[s] is lost. After n items the
        // end has spread by deviation · √n; between the two, go over to chance as it spreads over an item.
        let fixed = payload % item;
        let chance = (item + deviation_bytes * deviation_bytes / item) / 2.0;
        let spread = (2.0 * deviation_bytes * (payload / item).sqrt() / item).min(1.0);
        let lost = (1.0 - spread) * fixed + spread * chance;
        // Of an item that goes on, a part as large as any lies on its page, so where pages end is chance: they are
        // ended in front of an item where that loses less.
        let loss_max = self.page_loss_max * self.page_bytes;
        let lost =
            if item >= loss_max && lost > loss_max { loss_max * loss_max / (2.0 * item) } else { lost };
        ((payload - lost) / item).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_as_the_format_fills_them() {
        let rules = Rules::engine();
        // docs/format.md: 34 items of 116 bytes fill a page.
        assert_eq!(rules.items_per_page(116.0, 0.0).round(), 34.0);
        // 4 KiB pages of unsplit 1 KiB items lose a quarter; items that straddle lose nothing.
        let unsplit = Rules { page_loss_max: 1.0, ..rules };
        assert!((unsplit.items_per_page(1_016.0, 0.0) - 3.0).abs() < 1e-9);
        let straddling = Rules { straddle: true, ..rules };
        assert!((straddling.items_per_page(1_024.0, 0.0) - 4_080.0 / 1_029.0).abs() < 1e-9);
        assert_eq!(rules.items_per_page(9_000.0, 0.0), 1.0 / 3.0);
    }

    #[test]
    fn equal_items_of_any_size_agree_with_filling_pages() {
        let rules = Rules::engine();
        let loss_max = rules.page_loss_max * rules.page_bytes;
        for bytes in (16..2_000).step_by(3).map(f64::from) {
            let item = bytes + rules.page_item_bytes + rules.length_bytes(bytes);
            let (mut pages, mut used) = (1.0, rules.page_header_bytes);
            for _ in 0..40_000 {
                if used + item > rules.page_bytes {
                    let goes_on = item >= loss_max && used + loss_max < rules.page_bytes;
                    let rest = if goes_on { used + item - rules.page_bytes } else { item };
                    (pages, used) = (pages + 1.0, rules.page_header_bytes + rest);
                } else {
                    used += item;
                }
            }
            let modeled = rules.items_per_page(bytes, 0.0);
            // Near the sizes that just waste what may be wasted, some pages do and some don't.
            assert!((modeled * pages / 40_000.0 - 1.0).abs() < 0.065, "{bytes}: {modeled} on a page");
        }
    }

    #[test]
    fn varying_items_agree_with_filling_pages() {
        let rules = Rules::engine();
        let mut state = 7u64;
        let (mut items, mut pages, mut used) = (0u64, 1u64, 0.0);
        // Uniform over 1 to 400 bytes: standard deviation 115.5.
        for _ in 0..200_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let bytes = ((state >> 33) % 400 + 1) as f64 + rules.page_item_bytes;
            if used + bytes > rules.page_bytes - rules.page_header_bytes {
                pages += 1;
                used = 0.0;
            }
            used += bytes;
            items += 1;
        }
        let filled = items as f64 / pages as f64;
        assert!((rules.items_per_page(200.5, 115.5) / filled - 1.0).abs() < 0.01, "{filled}");
    }
}
