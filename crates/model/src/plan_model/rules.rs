//! [`Rules`]: the bytes that storing costs besides the items.

use crate::error::{ModelError, within};
use crate::plan::{GARBAGE_SHARE_MAX, LAST_GARBAGE_SHARE_MAX, TIERS_GARBAGE_SHARE_MAX};

/// Minimum bytes of key and value at which a value counts as long: 128 and a usual key.
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
    /// Additional bytes of items with long values, on a page and in the log: their lengths take more bytes.
    pub long_value_bytes: f64,
    /// Whether every item may straddle two adjacent pages, fetched together, so that pages are always full.
    pub straddle: bool,
    /// Maximum share of a page that may stay unused to keep items whole. If more would be lost, the item continues on
    /// the next page.
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
    /// Bits of an entropy-coded trie over items per item, without the list of page starts.
    pub dense_trie_bits: f64,
    /// Additional bytes of the filter and the index of one shard's part of a run, regardless of its number of items.
    pub section_bytes: f64,
    /// Bits of a three-level index per item.
    pub three_level_bits: f64,
    /// Bits of an offset in a slot of a filter.
    pub offset_bits: f64,
    /// Share of a bucketed table's buckets whose migrations are kept in memory, 8 bytes each.
    pub remembered_share: f64,
    /// Reads to fetch an item from a bucketed table; `None` to derive them from the items' sizes.
    pub bucket_reads: Option<f64>,
    /// How far young levels are over their bound, as a factor from 1: merges that barely keep up with writers at full
    /// speed find more to merge at a time. The engine slows writers from 1.15 on.
    pub overrun: f64,
    /// Nanoseconds of a put that is not slowed, in [`Phases`](super::Phases).
    pub put_ns: f64,
    /// Nanoseconds of a merge for each byte that it writes, in [`Phases`](super::Phases); 0 if merges keep up with any
    /// writer.
    pub merge_byte_ns: f64,
    /// Nanoseconds of a merge regardless of how little it writes: for syncs of tables, directory and manifest.
    pub merge_ns: f64,
    /// Additional nanoseconds of a merge for each run that it merges: runs are read one after the other.
    pub merged_run_ns: f64,
    /// Additional nanoseconds for each item written by a merge that makes a filter of all runs of a place. These five
    /// rules determine how far behind merges get: so far that writers are slowed to the speed of merges.
    pub multi_level_item_ns: f64,
    /// Average number of frozen logs that wait for conversion or are being converted, over all time; each keeps its
    /// index in memory.
    pub frozen_logs: f64,
    /// Obsolete versions in the young levels, as a share of the live items, from which on they are merged regardless of
    /// the levels' shares.
    pub young_garbage_max: f64,
    /// Obsolete versions in all tiering levels above the last, as a share of the live items, from which on the place
    /// that has most of them is merged with what the next level has there.
    pub tiers_garbage_max: f64,
    /// Garbage in a last level that is tiering, as a share of the level, at which a container is rewritten.
    pub garbage_share: f64,
    /// Whether compaction of a leveling level rewrites tables of the next one that are partly outside, as in LevelDB.
    pub false_overlaps: bool,
    /// Whether filters and indexes are written into the tables.
    pub stored_indexes: bool,
}

impl Rules {
    /// The rules of this engine (docs/format.md). What it does not execute yet is taken from the papers.
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
            dense_trie_bits: 2.5,
            section_bytes: 350.0,
            three_level_bits: 2.0,
            offset_bits: 32.0,
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
            stored_indexes: true,
        }
    }

    /// The rules of this engine while writers put as fast as it accepts: conversion and merges are as far behind as
    /// they get before writers are slowed. The backlogs are those seen in loads of 2 to 20 million items on two cores.
    /// The times are those with which [`Phases`](super::Phases) come nearest to what loads and updates of 20 million
    /// items left behind there under seven plans; merges took 4 to 18 ns a byte, depending on the plan and on what else
    /// ran.
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

    /// The papers' rules: an item costs its own size wherever it is written, and pages are always full.
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

    /// Bytes of an item's lengths beyond those that every item has, from its bytes of key and value.
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
        // The rest of a page in which the next item does not fit stays empty. With equal items, the rest is fixed. With
        // items that vary, the page ends somewhere in an item that is hit in proportion to its size: half of E[s²]/E[s]
        // is lost. After n items, the end has a deviation of `deviation` · √n. In between, interpolate from fixed to
        // random as this deviation approaches the size of an item.
        let fixed = payload % item;
        let chance = (item + deviation_bytes * deviation_bytes / item) / 2.0;
        let spread = (2.0 * deviation_bytes * (payload / item).sqrt() / item).min(1.0);
        let lost = (1.0 - spread) * fixed + spread * chance;
        // An item that continues may have any part of it on its page, so page ends are random. A page is ended before
        // an item if that loses less.
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
            // Near the sizes that waste just the allowed share, some pages waste it and others don't.
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
