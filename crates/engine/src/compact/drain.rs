//! Segments of a chained log become runs, when the plan of the keyspace has no chains any more.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_base::TableId;
use alluvium_io::sync::atomic::Ordering;

use super::convert::write_sections;
use super::kept::Kept;
use super::unplaced_table::UnplacedTable;
use crate::chained::{ChainFile, Linked};
use crate::core::{KeyspaceShared, Shared, new_log_store};
use crate::error::{IoContext, Result};
use crate::file_names::table_file_name;
use crate::level::{Run, TableFile, Version};
use crate::log::{LogStore, Segment, SegmentHeader, record, segment};
use crate::manifest::Edit;
use crate::planted_race::PlantedRace;
use crate::table::{SegmentSpan, TableWriter, WRITES_MAX};

/// Whether the keyspace has chains that its plan does not demand, and that no log store needs.
pub(crate) fn is_to_drain(version: &Version) -> bool {
    version.chain.is_some() && !version.keeps_chain()
}

/// Makes a run of the oldest segment of a keyspace's chained log; or, if there is none, and no log store has links,
/// declares that the keyspace has no chains. Returns whether there was anything to do. The caller holds the lock of
/// conversions.
pub(crate) fn drain_oldest(shared: &Shared, keyspace: &Arc<KeyspaceShared>) -> Result<bool> {
    let version = keyspace.version.load_full();
    let Some(chain) = version.chain.as_ref() else { return Ok(false) };
    let Some(file) = chain.files.first().cloned() else {
        let has_ended = Cell::new(false);
        keyspace.update_version(|version| {
            // A freeze in progress may have begun chains, for a log store with links that comes next.
            let is_wanted = version.keeps_chain() && !shared.planted_bugs.has(PlantedRace::EndNewChains);
            if is_wanted || version.log_stores.iter().any(|store| store.linked().is_some()) {
                return version.clone();
            }
            has_ended.set(true);
            Version { chain: None, ..version.clone() }
        });
        return Ok(has_ended.into_inner());
    };
    shared.open_tables_of(keyspace)?;
    let _held = shared.hold_buffers(file.bytes);
    let store = private_store(shared, keyspace, &version, &file)?;
    let mut edits = vec![Edit::DropChained { keyspace: keyspace.id, segment: file.segment }];
    let mut opened = None;
    if store.len() > 0 {
        let number = TableId(shared.next_file.fetch_add(1, Ordering::Relaxed));
        let unplaced = UnplacedTable::new(shared, number);
        edits.extend(shared.place_table(number, 0));
        let options = shared.output_of_conversions();
        let _buffers = shared.hold_buffers((options.write_bytes * WRITES_MAX) as u64);
        let name = table_file_name(number);
        let mut writer = TableWriter::create_with(&*shared.storage, &name, number, options)?;
        writer.set_segments(SegmentSpan::one(file.segment));
        let kept = Kept::all_of(&store);
        // The chains' references become those of the run, and rows may be of younger segments.
        let (empty, _) = write_sections(&mut writer, keyspace, (&store, &kept), &version, None)?;
        let (shard_bits, repeats, items) = (store.shard_bits(), 0.0, store.len() as u64);
        edits.push(Edit::AddRun { keyspace: keyspace.id, file: number, shard_bits, repeats, items });
        if !empty.is_empty() {
            edits.push(Edit::DropShards { keyspace: keyspace.id, file: number, shards: empty });
        }
        let info = writer.finish()?.sync()?;
        shared.counters.hash_bytes_written.fetch_add(info.file_bytes, Ordering::Relaxed);
        shared.count_if_young(number, info.file_bytes);
        shared.storage.sync_directory().context(|| "syncing the database directory".to_owned())?;
        let table = TableFile::open(&shared.reclaimer, number)?;
        let sections = table.all_sections()?;
        table.load_indexes(&sections)?;
        shared.counters.count_table(0, info.file_bytes, &sections);
        opened = Some((Run::of_sections(&table, &sections, shard_bits, repeats), unplaced));
    }
    shared.append_edits(&edits)?;
    let run = opened.map(|(run, unplaced)| {
        unplaced.place();
        run
    });
    keyspace.update_version(|version| {
        let mut next = version.clone();
        next.chain = version.chain.as_ref().map(|chain| Arc::new(chain.without_oldest()));
        run.iter().for_each(|run| next.body.push_run(run.clone()));
        next
    });
    clear_chains(shared, keyspace);
    shared.drop_chain_files(&version);
    Ok(true)
}

/// Clears heads of chains that are in segments which the current version does not have any more.
pub(super) fn clear_chains(shared: &Shared, keyspace: &KeyspaceShared) {
    let version = keyspace.version.load();
    let Some((chain, oldest)) = version.oldest_of_chains() else { return };
    // Readers of older versions do not take a chain that was cleared for one that never had the key.
    if !shared.planted_bugs.has(PlantedRace::ClearUntold) {
        chain.directory.start_at(oldest);
    }
    chain.directory.clear_before(oldest);
    chain.directory.widen_if_needed(oldest, chain.directory.last_segment());
}

/// A log store with the newest items of all keys in a segment, without links. Nobody else knows of it.
fn private_store(
    shared: &Shared,
    keyspace: &KeyspaceShared,
    version: &Version,
    file: &ChainFile,
) -> Result<LogStore> {
    let header = SegmentHeader { id: file.segment, seed: file.seed, opening: 0, follows: None };
    // In the order of the keys, so that a seed of the simulation writes the same bytes each time.
    let mut newest: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    file.for_each_linked(shared.memory.budget().read_bytes, |linked| {
        if let Linked::Record(found) = linked
            && found.keyspace == keyspace.id
        {
            let mut bytes = Vec::new();
            record::encode_item(header.seed, keyspace.id, &found.item.item, &mut bytes);
            newest.insert(found.item.item.key.to_vec(), bytes);
        }
        Ok(())
    })?;
    let mut content = header.encode();
    debug_assert_eq!(content.len() as u64, segment::BLOCK);
    let mut offsets = Vec::with_capacity(newest.len());
    for record in newest.values() {
        offsets.push(content.len());
        content.extend_from_slice(record);
    }
    let segment = Segment::recovered(file.file.clone(), header, &content, &shared.recycler)?;
    let plan = version.body.plan();
    let store =
        new_log_store(plan, keyspace.hasher, segment.clone(), newest.len() as u64, 0, (u64::MAX, false));
    for offset in offsets {
        if let record::Parsed::Record(record::Record::Item { item, item_start, .. }, _) =
            record::decode(header.seed, &content[offset..], false)
        {
            let hash = keyspace.hasher.hash(item.key);
            store.index_unbounded(hash, item.key, (offset + item_start) as u32)?;
        }
    }
    store.close();
    Ok(store)
}

/// Makes a run of the oldest segment of a keyspace whose plan has no chains any more; returns whether there was one.
pub(crate) fn drain(shared: &Shared) -> Result<bool> {
    let found = shared.all_keyspaces().into_iter().find(|keyspace| is_due(shared, &keyspace.version.load()));
    let Some(keyspace) = found else { return Ok(false) };
    let _no_conversion = shared.convert_lock.lock().expect("no panic while held");
    if keyspace.check_present().is_err() {
        return Ok(true);
    }
    let active = keyspace.version.load().active().clone();
    if active.linked().is_some() && !keyspace.version.load().goes_on() {
        // The next log store has no links.
        shared.freeze_now(active.segment.id)?;
    }
    drain_oldest(shared, &keyspace)
}

/// Whether [`drain`] would find something to do.
pub(crate) fn drain_is_due(shared: &Shared) -> bool {
    shared.all_keyspaces().iter().any(|keyspace| is_due(shared, &keyspace.version.load()))
}

fn is_due(shared: &Shared, version: &Version) -> bool {
    let ends_new = shared.planted_bugs.has(PlantedRace::EndNewChains);
    let is_to_end = ends_new || is_to_drain(version);
    let Some(chain) = version.chain.as_ref().filter(|_| is_to_end) else { return false };
    let linked = version.log_stores.iter().filter(|store| store.linked().is_some()).count();
    // Frozen stores with links become files first.
    !chain.files.is_empty() || linked == 0 || version.active().linked().is_some()
}

#[cfg(test)]
mod tests {
    use alluvium_model::{ChainedSpec, LevelsPlan, Plan};

    use super::drain_oldest;
    use crate::chained::ChainWalk;
    use crate::level::Version;
    use crate::manifest::PlanSource;
    use crate::{Db, Error, KeyspaceOptions};

    #[test]
    fn a_reader_of_an_older_version_begins_again() {
        let directory = tempfile::tempdir().unwrap();
        let db = Db::builder(directory.path()).background(false).open().unwrap();
        let options = KeyspaceOptions::default().with_plan(Plan::Chained(ChainedSpec::of_length(1.0)));
        let keyspace = db.keyspace_with("chained", &options).unwrap();
        keyspace.insert("key", "value").unwrap();
        db.flush().unwrap();
        let state = &keyspace.shared;
        let (old, hash) = (state.version.load_full(), state.hasher.hash(b"key"));
        let chain = old.chain.as_ref().unwrap();
        assert_eq!(chain.files.len(), 1);
        keyspace.change_plan(&Plan::named("silt").unwrap()).unwrap();
        while db.run_background_job().unwrap() {}
        assert!(state.version.load().chain.is_none());
        // The directory no longer has the key's chain, which the old version needs.
        assert!(chain.directory.heads(hash).is_empty());
        let step = ChainWalk::new(&old, chain, hash).unwrap().step(b"key").map(drop);
        assert!(matches!(step, Err(Error::MissingFile { .. })), "{step:?}");
        assert_eq!(keyspace.get("key").unwrap().as_deref(), Some(&b"value"[..]));
        let mut found = Vec::new();
        keyspace.get_each(["key"], 4, |_, value| found.push(value.map(<[u8]>::to_vec))).unwrap();
        assert_eq!(found, [Some(b"value".to_vec())]);
    }

    /// Seed 2073520 of the threaded simulation: a freeze had begun chains, and not published its log store yet.
    #[test]
    fn chains_that_a_freeze_has_just_begun_stay() {
        let directory = tempfile::tempdir().unwrap();
        let db = Db::builder(directory.path()).plan(Plan::silt()).background(false).open().unwrap();
        let keyspace = db.keyspace("items").unwrap();
        let state = &keyspace.shared;
        let plan = LevelsPlan::from(ChainedSpec::of_length(1.0));
        let next = state.plan_state().followed_by(plan, PlanSource::Own, 0);
        state.update_version(|version| Version {
            body: version.body.with_plan(next.clone()),
            ..version.clone()
        });
        state.begin_chain(&state.version.load_full(), 0).unwrap();
        assert!(!drain_oldest(db.shared(), state).unwrap());
        assert!(state.version.load().chain.is_some());
    }

    /// Whatever ends chains that a log store needs: nothing is written there that no reader would find.
    #[test]
    fn writers_freeze_a_log_store_with_links_whose_chains_are_gone() {
        let directory = tempfile::tempdir().unwrap();
        let open = || Db::builder(directory.path()).background(false).open().unwrap();
        let db = open();
        let options = KeyspaceOptions::default().with_plan(Plan::Chained(ChainedSpec::of_length(1.0)));
        let keyspaces = ["single", "batch"].map(|name| db.keyspace_with(name, &options).unwrap());
        for keyspace in &keyspaces {
            keyspace.shared.update_version(|version| Version { chain: None, ..version.clone() });
        }
        let [single, batched] = &keyspaces;
        single.insert("one", "1").unwrap();
        let mut batch = db.batch();
        batch.insert(batched, "two", "2");
        batch.insert(batched, "three", "3");
        batch.commit().unwrap();
        db.flush().unwrap();
        drop((keyspaces, db));
        let db = open();
        for (name, key) in [("single", "one"), ("batch", "two"), ("batch", "three")] {
            assert!(db.keyspace(name).unwrap().get(key).unwrap().is_some(), "{key}");
        }
    }
}
