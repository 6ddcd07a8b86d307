//! Conversion of a frozen log segment: each keyspace's log store becomes a run (SILT §3.2).
//!
//! In hash layout the items of a section are in the order of the filter's slots, which are the slots of the log's
//! index, so nothing is sorted. Sorted layout costs a sort, and page fences in addition to the filter, and can be
//! merged as it is read.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_base::{KeyHash, KeyspaceId, TableId};
use alluvium_index::hash_filter::HashFilter;
use alluvium_index::prefetch_bytes;
use alluvium_io::sync::atomic::Ordering;
use alluvium_model::TableLayout;

use super::keep_linked::{drain_before, keep_linked, replace_store_by_file};
use super::kept::Kept;
use super::level_table::{Below, begin_ordered, sorted_index, tag_bits};
use super::repeats::repeats_of;
use super::unplaced_table::UnplacedTable;
use crate::blob::ReferenceCounts;
use crate::chained::ChainFile;
use crate::core::{CarriedRows, KeyspaceShared, Shared};
use crate::error::{Error, IoContext, Result};
use crate::item::EncodedItem;
use crate::level::{Run, TableFile, Version, shard_range};
use crate::log::{LogStore, Segment};
use crate::manifest::Edit;
use crate::planted_race::PlantedRace;
use crate::table::{Section, SectionSpec, SegmentSpan, TableWriter, WRITES_MAX, pages_expected};

/// Number of items by which the prefetch runs ahead.
const PREFETCH_AHEAD: usize = 12;

/// Converts the oldest frozen segment. Returns `false` if there is none.
///
/// Order of persistence: blob sync, table sync, directory sync, manifest sync, switch, recycle.
pub(crate) fn convert(shared: &Shared) -> Result<bool> {
    let planted = shared.planted_bugs.has(PlantedRace::ConvertTwiceAtOnce);
    let _only_one = (!planted).then(|| shared.convert_lock.lock().expect("no panic while held"));
    let converted = convert_oldest(shared);
    if shared.rows.is_outdated() {
        shared.share_with_rows();
    }
    converted
}

/// Like [`convert`], for a caller that holds the lock of conversions.
pub(crate) fn convert_oldest(shared: &Shared) -> Result<bool> {
    let Some(segment) = shared.oldest_frozen() else { return Ok(false) };
    drain_before(shared, &segment)?;
    let stores: Vec<(Arc<KeyspaceShared>, Arc<LogStore>)> = shared
        .all_keyspaces()
        .into_iter()
        .filter_map(|keyspace| {
            let store = keyspace.frozen_store(&segment)?;
            Some((keyspace, store))
        })
        .collect();
    let mut edits = vec![Edit::LogStart { segment: segment.id.next() }];
    let mut filled = Vec::new();
    let (mut dropped, mut any_hidden) = (0, false);
    let (linked, unlinked): (Vec<_>, Vec<_>) = stores
        .iter()
        .filter(|(_, store)| store.len() > 0)
        .map(|(keyspace, store)| (keyspace, store))
        .partition(|(_, store)| store.linked().is_some());
    for (keyspace, store) in unlinked {
        shared.open_tables_of(keyspace)?;
        filled.push((keyspace, store, Kept::of(shared, keyspace, store)?));
    }
    let has_items = !filled.is_empty() || !linked.is_empty();
    if has_items && !shared.planted_bugs.has(PlantedRace::RowsWithoutEra) {
        shared.rows.begin_era();
    }
    for (keyspace, store, kept) in &filled {
        dropped += kept.dropped.len() as u64;
        if store.entries_max().is_raised() {
            keyspace.log_growth.end_store(store.len(), kept.dropped.len());
        }
        any_hidden |= kept.any_hidden;
        if let Some(rows) = rows_to_replace(shared, keyspace, &keyspace.version.load()) {
            kept.forget_rows(store, &rows)?;
        }
    }
    filled.retain(|(_, _, kept)| kept.len() > 0);
    let mut file = None;
    let mut unplaced = None;
    let mut references: BTreeMap<KeyspaceId, ReferenceCounts> = BTreeMap::new();
    let mut repeats: BTreeMap<KeyspaceId, f64> = BTreeMap::new();
    if !filled.is_empty() {
        shared.blobs.sync()?;
        let number = TableId(shared.next_file.fetch_add(1, Ordering::Relaxed));
        let name = crate::file_names::table_file_name(number);
        unplaced = Some(UnplacedTable::new(shared, number));
        edits.extend(shared.place_table(number, 0));
        let options = shared.output_of_conversions();
        let _buffers = shared.hold_buffers((options.write_bytes * WRITES_MAX) as u64);
        let mut writer = TableWriter::create_with(&*shared.storage, &name, number, options)?;
        writer.set_segments(SegmentSpan::one(segment.id));
        for (keyspace, store, kept) in &filled {
            let share = repeats_of(shared, keyspace, store)?;
            repeats.insert(keyspace.id, share);
            // While the version is held, the space of sections that a filter reads is not given back.
            let version = keyspace.version.load_full();
            let (empty, counts) = match keyspace.hasher.is_semi_sorted() {
                true => (Vec::new(), write_section(shared, &mut writer, keyspace, (store, kept), &version)?),
                false => {
                    let rows = rows_to_replace(shared, keyspace, &version);
                    write_sections(&mut writer, keyspace, (store, kept), &version, rows.as_ref())?
                }
            };
            edits.push(Edit::AddRun {
                keyspace: keyspace.id,
                file: number,
                shard_bits: keyspace.run_shard_bits(store),
                repeats: share,
                items: kept.len() as u64,
            });
            if !empty.is_empty() {
                edits.push(Edit::DropShards { keyspace: keyspace.id, file: number, shards: empty });
            }
            edits.extend(counts.edits(keyspace.id));
            references.insert(keyspace.id, counts);
        }
        let info = writer.finish()?.sync()?;
        shared.counters.hash_bytes_written.fetch_add(info.file_bytes, Ordering::Relaxed);
        shared.count_if_young(number, info.file_bytes);
        shared.storage.sync_directory().context(|| "syncing the database directory".to_owned())?;
        let opened = TableFile::open(&shared.reclaimer, number)?;
        let sections = opened.all_sections()?;
        opened.load_indexes(&sections)?;
        shared.counters.count_table(0, info.file_bytes, &sections);
        let mut by_keyspace: BTreeMap<KeyspaceId, Vec<Arc<Section>>> = BTreeMap::new();
        for section in sections {
            by_keyspace.entry(section.keyspace()).or_default().push(section);
        }
        file = Some((opened, by_keyspace));
    }
    if any_hidden && !shared.planted_bugs.has(PlantedRace::DropWithoutSync) {
        // What hides dropped items must not be lost when these are.
        shared.log.commit_all()?;
    }
    let mut chain_file = None;
    if !linked.is_empty() {
        shared.blobs.sync()?;
        shared.log.keep_chained(&segment)?;
        let content = (segment.seed, segment.published());
        let file = (segment.file(), segment.file_users());
        let kept = ChainFile::new(segment.id, content, file, &shared.reclaimer);
        for (keyspace, store) in &linked {
            let counts = keep_linked(shared, keyspace, store)?;
            let (seed, bytes) = (kept.seed, kept.bytes);
            edits.push(Edit::AddChained { keyspace: keyspace.id, segment: segment.id, seed, bytes });
            edits.extend(counts.edits(keyspace.id));
            references.insert(keyspace.id, counts);
        }
        chain_file = Some(kept);
    }
    shared.keep_for_readers(&segment)?;
    let is_late = shared.planted_bugs.has(PlantedRace::PublishBeforeManifest);
    if !is_late {
        shared.append_edits(&edits)?;
    }
    unplaced.into_iter().for_each(UnplacedTable::place);
    for (keyspace, store) in &stores {
        let run = match &mut file {
            Some((file, sections)) => sections.remove(&keyspace.id).map(|sections| {
                let repeats = repeats.get(&keyspace.id).copied().unwrap_or_default();
                Run::of_sections(file, &sections, keyspace.run_shard_bits(store), repeats)
            }),
            None => None,
        };
        // The bytes themselves were counted when the log's index began to refer to them.
        let counts = references.remove(&keyspace.id).unwrap_or_default();
        let kept = chain_file.clone().filter(|_| store.linked().is_some() && store.len() > 0);
        let replaced = |version: &Version| match &kept {
            Some(kept) => replace_store_by_file(version, &segment, kept, &counts),
            None => replace_store(version, &segment, run.clone(), &counts),
        };
        keyspace.update_all_versions(replaced);
        if dropped == 0 {
            keyspace.convert_pinned(segment.id, replaced);
        }
        if let Some(run) = &run {
            set_covered_by(run, keyspace.version.load().body.runs())?;
        }
    }
    shared.counters.log_items_dropped.fetch_add(dropped, Ordering::Relaxed);
    if is_late {
        shared.append_edits(&edits)?;
    }
    shared.finish_segment(&segment)?;
    Ok(true)
}

/// Writes a section for each shard that has items, and replaces `rows` by these items. Returns the numbers of the other
/// shards, and the references to blobs.
pub(super) fn write_sections(
    writer: &mut TableWriter,
    keyspace: &KeyspaceShared,
    (store, kept): (&LogStore, &Kept),
    version: &Version,
    rows: Option<&CarriedRows<'_>>,
) -> Result<(Vec<u32>, ReferenceCounts)> {
    let plan = keyspace.plan_state();
    let level = &plan.plan.levels[0];
    let mut references = ReferenceCounts::default();
    let mut empty = Vec::new();
    for (number, index) in kept.indexes.iter().enumerate() {
        if index.is_empty() {
            empty.push(number as u32);
            continue;
        }
        let range = shard_range(store.shard_bits(), number as u64);
        let (keyspace_id, hasher) = (keyspace.id, keyspace.hasher);
        let plan_number = plan.number;
        let spec = SectionSpec { keyspace: keyspace_id, hasher, range, level: 0, plan_number };
        let filter = tag_bits(level).map(|tag_bits| HashFilter::from_table(index, tag_bits));
        let entries: Vec<(u32, u32)> = index.entries().map(|(slot, _tag, offset)| (slot, offset)).collect();
        let mut item_bytes = 64;
        let mut items = entries.iter().enumerate().map(|(position, &(slot, offset))| {
            // Slot order is random in the log, so each item is a cache miss unless it is fetched ahead.
            if let Some(&(_, ahead)) = entries.get(position + PREFETCH_AHEAD) {
                store.segment.prefetch(ahead, item_bytes);
            }
            let item = store.segment.encoded_item_at(offset)?;
            item_bytes = item.bytes.len();
            references.add(&item.item);
            rows.iter().for_each(|rows| rows.replace(&item.item));
            Ok((slot, keyspace.hasher.hash(item.item.key), item))
        });
        if let (TableLayout::Hash, Some(filter)) = (level.table, &filter) {
            writer.begin_hash_section(spec, filter.clone());
            items.try_for_each(|item: Result<_>| {
                let (slot, hash, item) = item?;
                Ok::<_, Error>(writer.push_slot(slot, hash, &item)?)
            })?;
        } else {
            let items = items.collect::<Result<Vec<_>>>()?;
            let bytes = items.iter().map(|(_, _, item)| item.bytes.len() as u64).sum();
            match filter {
                Some(filter) => {
                    let pages = pages_expected(items.len() as u64, bytes);
                    writer.begin_sorted_section(spec, sorted_index(level), pages);
                    writer.set_filter(filter);
                }
                None => {
                    let below = Below::of_runs(level, version.body.runs(), store.shard_bits(), number)?;
                    begin_ordered(writer, level, spec, (items.len() as u64, bytes), below);
                }
            }
            push_sorted(writer, items)?;
        }
        writer.finish_section()?;
    }
    Ok((empty, references))
}

/// The same for a semi-sorted keyspace, as one section: its shards do not follow the order of hashes.
fn write_section(
    shared: &Shared,
    writer: &mut TableWriter,
    keyspace: &KeyspaceShared,
    (store, kept): (&LogStore, &Kept),
    version: &Version,
) -> Result<ReferenceCounts> {
    let rows = rows_to_replace(shared, keyspace, version);
    let mut entries: Vec<(u64, u64, u32)> = Vec::with_capacity(kept.len());
    let _held = shared.hold_items((entries.capacity() * size_of::<(u64, u64, u32)>()) as u64);
    let mut bytes = 0;
    for index in &kept.indexes {
        for (_, _, offset) in index.entries() {
            let item = store.segment.encoded_item_at(offset)?;
            let hash = keyspace.hasher.hash(item.item.key);
            bytes += item.bytes.len() as u64;
            entries.push((hash.high(), hash.low(), offset));
        }
    }
    let key = |offset: u32| store.segment.item_at(offset).map(|item| item.key).ok();
    entries.sort_unstable_by(|one, other| {
        (one.0, one.1).cmp(&(other.0, other.1)).then_with(|| key(one.2).cmp(&key(other.2)))
    });
    let range = shard_range(0, 0);
    let (keyspace_id, hasher) = (keyspace.id, keyspace.hasher);
    let plan = keyspace.plan_state();
    let plan_number = plan.number;
    let spec = SectionSpec { keyspace: keyspace_id, hasher, range, level: 0, plan_number };
    let level = &plan.plan.levels[0];
    let below = Below::of_runs(level, version.body.runs(), 0, 0)?;
    begin_ordered(writer, level, spec, (entries.len() as u64, bytes), below);
    let mut references = ReferenceCounts::default();
    let mut last_prefix = None;
    for (position, &(high, low, offset)) in entries.iter().enumerate() {
        if let Some(&(_, _, ahead)) = entries.get(position + PREFETCH_AHEAD) {
            store.segment.prefetch(ahead, 64);
        }
        let item = store.segment.encoded_item_at(offset)?;
        references.add(&item.item);
        if let Some(rows) = &rows {
            rows.replace(&item.item);
            let prefix = keyspace.hasher.prefix_of(item.item.key);
            if prefix != last_prefix {
                prefix.iter().for_each(|prefix| rows.remove_group(prefix));
                last_prefix = prefix;
            }
        }
        writer.push(KeyHash::from_halves(high, low), &item)?;
    }
    writer.finish_section()?;
    Ok(references)
}

/// The keyspace's rows, which the items that become a run replace. An era has begun, and `version` was loaded since.
pub(super) fn rows_to_replace<'a>(
    shared: &'a Shared,
    keyspace: &KeyspaceShared,
    version: &Version,
) -> Option<CarriedRows<'a>> {
    let is_planted = shared.planted_bugs.has(PlantedRace::RowsLeftBehind);
    shared.rows.carry(keyspace.id, version).filter(|_| !is_planted)
}

/// Sorts the items of a section of sorted layout and writes them.
fn push_sorted(writer: &mut TableWriter, mut items: Vec<(u32, KeyHash, EncodedItem<'_>)>) -> Result<()> {
    items.sort_unstable_by(|(_, one_hash, one), (_, other_hash, other)| {
        one_hash.cmp(other_hash).then_with(|| one.item.key.cmp(other.item.key))
    });
    for (position, (_, hash, item)) in items.iter().enumerate() {
        if let Some((_, _, ahead)) = items.get(position + PREFETCH_AHEAD) {
            prefetch_bytes(ahead.bytes, 0, ahead.bytes.len());
        }
        writer.push(*hash, item)?;
    }
    Ok(())
}

/// Drops the filters of those sections of `runs` for which the filter of a section of `run` answers.
fn set_covered_by(run: &Run, runs: &[Arc<Run>]) -> Result<()> {
    for (shard, section) in run.sections.iter().enumerate() {
        let Some(section) = section else { continue };
        let Some(files) = section.section.names_tables()? else { continue };
        for below in runs.iter().filter_map(|run| run.sections.get(shard)?.as_ref()) {
            if files[1..].contains(&below.section.file_number()) {
                below.section.set_covered();
            }
        }
    }
    Ok(())
}

/// The version with the segment's log store replaced by its run.
fn replace_store(
    version: &Version,
    segment: &Segment,
    run: Option<Arc<Run>>,
    references: &ReferenceCounts,
) -> Version {
    let mut next = version.clone();
    if version.chain.as_ref().is_some_and(|chain| !chain.files.is_empty()) {
        // A version in use elsewhere still has older items in chains, which are asked before runs.
        return next;
    }
    next.log_stores.retain(|store| store.segment.id != segment.id);
    let had_it = next.log_stores.len() < version.log_stores.len();
    if let Some(run) = run.filter(|_| had_it) {
        next.body.push_run(run);
        next.blobs = version.blobs.with_counts(references);
    }
    next
}
