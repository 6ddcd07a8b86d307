//! Writes new tables of salvaged items.

use std::collections::BTreeSet;

use alluvium_base::{KeyHasher, KeyspaceId, TableId};
use alluvium_index::cuckoo::CuckooTable;
use alluvium_index::hash_filter::HashFilter;
use alluvium_model::{LevelsPlan, TableLayout};

use super::Repair;
use crate::compact::{Below, begin_ordered, tag_bits};
use crate::error::Result;
use crate::file_names::table_file_name;
use crate::item::EncodedItem;
use crate::level::shard_range;
use crate::manifest::PlanState;
use crate::merge::YoungItems;
use crate::table::{SectionSpec, SegmentSpan, TableWriter};

/// Fill of a filter's table: below its capacity, so that few tables have to be made twice.
const FILL: f64 = 0.9;

/// A run of one keyspace to be written.
pub(super) struct RunItems<'a> {
    pub keyspace: KeyspaceId,
    pub hasher: KeyHasher,
    pub plan: &'a PlanState,
    pub shard_bits: u32,
    pub segments: SegmentSpan,
    pub items: YoungItems,
}

impl Repair {
    /// Writes a file with a run for each of `runs`, durable except for its name. Returns its number and, in the order
    /// of `runs`, the shards that have no items.
    pub fn write_runs(&mut self, runs: &[RunItems<'_>]) -> Result<(TableId, Vec<BTreeSet<u32>>)> {
        let number = self.take_file_number();
        let mut empty = Vec::new();
        if self.dry_run {
            return Ok((number, vec![BTreeSet::new(); runs.len()]));
        }
        let mut writer = TableWriter::create(&*self.storage, &table_file_name(number), number)?;
        for run in runs {
            writer.set_segments(run.segments);
            let mut without_items = BTreeSet::new();
            for shard in 0..1u32 << run.shard_bits {
                if !write_shard(&mut writer, run, shard)? {
                    without_items.insert(shard);
                }
            }
            empty.push(without_items);
        }
        writer.finish()?.sync()?;
        self.written.push((number, runs.iter().map(|run| run.items.len() as u64).sum()));
        Ok((number, empty))
    }

    /// Writes a table of the level of this number, durable except for its name. Returns its number.
    pub fn write_sorted(
        &mut self,
        spec: SectionSpec,
        plan: &LevelsPlan,
        level: usize,
        segments: SegmentSpan,
        items: &YoungItems,
    ) -> Result<TableId> {
        let number = self.take_file_number();
        if self.dry_run {
            return Ok(number);
        }
        let mut writer = TableWriter::create(&*self.storage, &table_file_name(number), number)?;
        writer.set_segments(segments);
        let size = (items.len() as u64, items.encoded_bytes());
        begin_ordered(&mut writer, &plan.levels[level], spec, size, Below::default());
        let mut range = items.range(spec.range);
        while let Some((hash, item)) = range.peek() {
            writer.push(hash, &item)?;
            range.advance();
        }
        writer.finish_section()?;
        writer.finish()?.sync()?;
        self.written.push((number, items.len() as u64));
        Ok(number)
    }
}

/// Writes the section of a shard. Returns `false` if it has no items.
fn write_shard(writer: &mut TableWriter, run: &RunItems<'_>, shard: u32) -> Result<bool> {
    let range = shard_range(run.shard_bits, shard.into());
    let mut items: Vec<EncodedItem<'_>> = Vec::new();
    let mut young = run.items.range(range);
    while let Some((_, item)) = young.peek() {
        items.push(item);
        young.advance();
    }
    if items.is_empty() {
        return Ok(false);
    }
    let hash = |item: &EncodedItem<'_>| run.hasher.hash(item.item.key);
    let (keyspace, hasher) = (run.keyspace, run.hasher);
    let plan_number = run.plan.number;
    let spec = SectionSpec { keyspace, hasher, range, level: 0, plan_number };
    let level = &run.plan.plan.levels[0];
    let bytes = items.iter().map(|item| item.bytes.len() as u64).sum();
    let size = (items.len() as u64, bytes);
    let Some(tag_bits) = tag_bits(level) else {
        begin_ordered(writer, level, spec, size, Below::default());
        items.iter().try_for_each(|item| writer.push(hash(item), item))?;
        writer.finish_section()?;
        return Ok(true);
    };
    let mut entries = (items.len() as f64 / FILL) as usize + 1;
    let index = loop {
        let index = CuckooTable::with_entries(entries);
        let places = items.iter().zip(0u32..);
        if places.into_iter().all(|(item, place)| index.insert(run.hasher.placing(hash(item)), place).is_ok())
        {
            break index;
        }
        entries += entries / 8 + 1;
    };
    let filter = HashFilter::from_table(&index, tag_bits);
    if level.table == TableLayout::Hash {
        writer.begin_hash_section(spec, filter);
        for (slot, _, place) in index.entries() {
            let item = &items[place as usize];
            writer.push_slot(slot, hash(item), item)?;
        }
    } else {
        begin_ordered(writer, level, spec, size, Below::default());
        writer.set_filter(filter);
        // They arrive in the order of their hashes.
        items.iter().try_for_each(|item| writer.push(hash(item), item))?;
    }
    writer.finish_section()?;
    Ok(true)
}
