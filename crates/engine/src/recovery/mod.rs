//! Opens a database: the manifest, then the log after its last converted position. Tables are opened when their
//! keyspace is first used.

mod blobs;
mod chains;
mod content;
mod index;
mod keyspaces;
mod replay;
mod replay_damaged;
mod segments;

use std::sync::Arc;

use alluvium_base::SegmentId;

use alluvium_base::checksum::checksum64;
use alluvium_io::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
use alluvium_io::sync::{Mutex, OnceLock, RwLock};
use alluvium_io::{ClosableStorage, DirectoryLock, Storage};

use crate::blob::{BlobFiles, Blobs};
use crate::core::{
    Counters, DiskQuota, Failures, MemoryControl, RateLimit, ScanCache, Scheduler, Shared, Throttle,
    complete_hasher, new_rows,
};
use crate::environment::Environment;
use crate::error::{Error, IoContext, Result};
use crate::file_names::{
    COPY_MARKER, LOCK, RESERVE, is_spill_file_name, parse_blob_file_name, parse_directory_file_name,
    parse_table_file_name, table_file_name,
};
use crate::level::Reclaimer;
use crate::log::Recycler;
use crate::log::segment::Filling;
use crate::log::{FileUser, Log, LogOptions, RetainedLog, RetainedSegment, SegmentHeader, segment};
use crate::manifest::{DatabaseState, Manifest, is_manifest_file_name, read_current};
use crate::options::{Durability, Settings};
use crate::reserve::Reserve;
use crate::young_directory::YoungDirectory;
use crate::{device, young_directory};
use replay::{Replayed, replay};
use replay_damaged::replay_damaged;
use segments::SegmentFile;

/// Opens or creates the database in the environment's storage.
///
/// With a directory of young levels, the storage stands for both directories.
pub(crate) fn open(
    environment: Environment,
    young: Option<YoungDirectory>,
    settings: Settings,
) -> Result<Shared> {
    let Environment { storage, clock, random_seed, planted_bugs } = environment;
    let gate = Arc::new(ClosableStorage::new(storage));
    let storage: Arc<dyn Storage> = gate.clone();
    let budget = settings.memory_budget()?;
    let directory_lock = lock(&*storage)?;
    // Nothing from the second directory is trusted before it is known to be the right one.
    let own_directory = young.as_ref().map_or(&storage, |young| young.directories.first());
    let current = read_current(&**own_directory)?;
    if let Some(young) = &young {
        young.check(current.as_ref().map_or(&DatabaseState::default(), |(_, state)| state))?;
    }
    let (manifest_number, mut state) = match current {
        Some(current) => current,
        None => (0, new_database(&*storage, &settings, random_seed)?),
    };
    match &young {
        Some(young) => {
            if !settings.read_only {
                young.take(&mut state, random_seed ^ manifest_number)?;
            }
            young.note_tables(&mut state);
        }
        None => young_directory::do_without(&*storage, &mut state)?,
    }
    for keyspace in state.keyspaces.values_mut() {
        keyspace.hasher = complete_hasher(&keyspace.name, keyspace.hasher, &settings.prefix_functions)?;
    }
    let reclaimer = Reclaimer::new(storage.clone(), settings.prefix_functions.clone());
    reclaimer.defer(settings.background);
    let recycler = Arc::new(Recycler::default());
    let check = !planted_bugs.ignore_record_checksum;
    let (blob_files, mut replayed) =
        replay_log(&*storage, &reclaimer, &recycler, &mut state, manifest_number, check, settings.read_only)?;
    // Nothing was changed up to here: a damaged database stays as it is.
    let mut strays = find_strays(&*storage, &state)?;
    blobs::finish(&blob_files, &mut state, &replayed.references, settings.read_only)?;
    let blobs = Arc::new(Blobs::new(blob_files));
    let first_segment = state.next_segment;
    let Replayed { converted, .. } = &mut replayed;
    let converted = std::mem::take(converted);
    let chain_files = chains::files(&state, &converted, &reclaimer)?;
    let follows = match (replayed.segments.last(), converted.last()) {
        (Some(last), _) => Some(last.header.position(last.published())),
        (None, Some(last)) if settings.log_retention_bytes > 0 => Some(last.end(&*storage)?),
        _ => None,
    };
    let next = replayed.segments.first().map(|segment| segment.header);
    let retained = retained_log(&settings, &recycler, converted, next)?;
    let reserve = Arc::new(Reserve::new(storage.clone(), budget.segment_bytes));
    let log = Log::start(
        LogOptions {
            storage: storage.clone(),
            clock: clock.clone(),
            blobs: blobs.clone(),
            recycler: recycler.clone(),
            reserve: reserve.clone(),
            // After a crash, numbers of segments whose header never reached the device are used again, under other file
            // names. The manifest's number is not, so no two segments share a seed.
            session_seed: checksum64(&(manifest_number + 1).to_le_bytes(), state.seed),
            opening: manifest_number + 1,
            follows,
            retained: Arc::new(retained),
            segment_bytes: budget.segment_bytes,
            filling: match settings.durability {
                Durability::Buffered => Filling::Plain,
                Durability::Process => Filling::Cached,
                Durability::Interval(_) | Durability::Sync => Filling::Prepared,
            },
            planted_bugs,
        },
        first_segment,
    )?;
    let rows = new_rows(&settings, checksum64(b"rows", random_seed));
    let memory = MemoryControl::new(budget, reclaimer.index_memory().clone());
    let keyspaces = state
        .keyspaces
        .iter()
        .map(|(&id, keyspace)| {
            let sizes = (settings.expected_items, budget.log_entries_max);
            let sources = chains::Sources {
                storage: &*storage,
                files: &chain_files,
                replayed: &replayed,
                newest: first_segment,
                expected_items: settings.expected_items,
                read_bytes: budget.read_bytes,
            };
            let chain = chains::open(id, keyspace, &sources)?;
            keyspaces::open(id, keyspace, &log, &blobs, &replayed, chain, sizes)
        })
        .collect::<Result<Vec<_>>>()?;
    strays.extend(chains::give_up_unused(&mut state, &keyspaces));
    let dormant = keyspaces.iter().filter(|keyspace| keyspace.is_dormant()).count();
    let next_file = state.next_file;
    let plan_choice = settings.plan.clone();
    let disk_quota = DiskQuota::new(settings.disk_bytes_max);
    let merge_rate = RateLimit::default();
    merge_rate.set(settings.background_bytes_per_s_max.unwrap_or(0));
    // From here on the new manifest is in effect: it says where the replayed segments end.
    let manifest = Manifest::create(storage.clone(), manifest_number + 1, state)?;
    // Removed only now: what the manifest before said may not be durable, and a power cut would bring back a state that
    // names these files.
    remove_all(&*storage, &strays)?;
    if !settings.read_only {
        recycler.release(None)?;
    }
    remove_old_manifests(&*storage, &manifest)?;
    let shared = Shared {
        storage,
        young,
        reclaimer,
        clock,
        settings,
        planted_bugs,
        log,
        blobs,
        manifest: Mutex::new(manifest),
        keyspaces: RwLock::new(keyspaces),
        waking_from: AtomicU32::new(0),
        dormant_keyspaces: AtomicUsize::new(dormant),
        next_file: AtomicU64::new(next_file),
        convert_lock: Mutex::new(()),
        merge_lock: Mutex::new(()),
        collect_lock: Mutex::new(()),
        freeze_lock: Mutex::new(()),
        frozen: Mutex::new(replayed.segments.into()),
        damage: replayed.damage,
        recycler,
        scheduler: Scheduler::default(),
        jobs: crate::compact::JOBS,
        throttle: Throttle::new(budget.segment_bytes),
        merge_rate,
        disk_quota,
        reserve,
        failures: Failures::default(),
        counters: Counters::default(),
        memory,
        rows,
        scan_cache: ScanCache::default(),
        merge_buffer_bytes: AtomicU64::new(0),
        buffer_bytes: AtomicU64::new(0),
        latest_ms: AtomicU64::new(0),
        random: Mutex::new(random_seed),
        plan_choice: Mutex::new(plan_choice),
        plan_decisions: Mutex::default(),
        auto_plan: OnceLock::new(),
        gate,
        directory_lock: Mutex::new(Some(directory_lock)),
        is_closed: AtomicBool::new(false),
        log_examined: Mutex::default(),
    };
    shared.count_directories();
    Ok(shared)
}

/// The log that stays on the device for its readers: what leads without a gap to segment `next`, or to the end if
/// nothing was replayed. Files that nobody needs go to the recycler.
fn retained_log(
    settings: &Settings,
    recycler: &Arc<Recycler>,
    converted: Vec<SegmentFile>,
    next: Option<SegmentHeader>,
) -> Result<RetainedLog> {
    let is_kept = settings.log_retention_bytes > 0 && !settings.read_only;
    let mut kept = Vec::new();
    let mut next = next;
    for SegmentFile { file, header, users, .. } in converted.into_iter().rev() {
        users.add(FileUser::Readers);
        if is_kept && next.is_none_or(|next| header.is_before(&next)) {
            next = Some(header);
            let bytes = file.len().context(|| format!("measuring {}", file.name()))?;
            kept.push(RetainedSegment { header, file, bytes, users });
        } else if users.end(FileUser::Readers) {
            recycler.add_unreleased(header.id, file);
        }
    }
    kept.reverse();
    let Settings { log_retention_bytes, log_hold_bytes_max, .. } = *settings;
    Ok(RetainedLog::new(log_retention_bytes, log_hold_bytes_max, recycler.clone(), kept))
}

/// Opens the blob files and replays the log. A damaged log is refused or, if `read_only`, replayed as far as it is
/// sound.
fn replay_log(
    storage: &dyn Storage,
    reclaimer: &Arc<Reclaimer>,
    recycler: &Arc<Recycler>,
    state: &mut DatabaseState,
    manifest: u64,
    check: bool,
    read_only: bool,
) -> Result<(BlobFiles, Replayed)> {
    let mut sound = state.clone();
    let opened = blobs::open(reclaimer, state, read_only).and_then(|files| {
        let replayed = replay(storage, recycler, &mut sound, manifest, &files, (check, !read_only))?;
        Ok((files, replayed))
    });
    match opened {
        Err(Error::Damaged { .. }) if read_only => {
            let mut damage = Vec::new();
            let files = blobs::open_damaged(reclaimer, state, &mut damage)?;
            let mut replayed = replay_damaged(storage, recycler, state, manifest, &files)?;
            damage.append(&mut replayed.damage);
            replayed.damage = damage;
            Ok((files, replayed))
        }
        opened => {
            *state = sound;
            opened
        }
    }
}

/// Locks the directory against other openings.
pub(crate) fn lock(storage: &dyn Storage) -> Result<Box<dyn DirectoryLock>> {
    storage.lock(LOCK).map_err(|source| match source.kind() {
        std::io::ErrorKind::WouldBlock => Error::Locked { path: LOCK.to_owned(), holder: source.to_string() },
        _ => Error::Io { context: "locking the database directory".to_owned(), source },
    })
}

/// The state of a database about to be created. Refuses a directory with files that are not ours, and one with our
/// files but without the manifest that says what they mean.
fn new_database(storage: &dyn Storage, settings: &Settings, random_seed: u64) -> Result<DatabaseState> {
    let names = storage.list().context(|| "listing the database directory".to_owned())?;
    let is_ours = |name: &str| {
        parse_table_file_name(name).is_some()
            || parse_blob_file_name(name).is_some()
            || parse_directory_file_name(name).is_some()
    };
    if let Some(name) = names.iter().find(|name| is_ours(name)) {
        let reason = format!("it holds {name} but no file CURRENT that names a manifest");
        return Err(Error::NotADatabase { reason });
    }
    let is_ours = |name: &str| {
        name == LOCK
            || segment::is_file_name(name)
            || is_manifest_file_name(name)
            || device::is_file_name(name)
            || young_directory::is_file_name(name)
            || name == RESERVE
    };
    let foreign = names.iter().find(|name| !is_ours(name));
    if let Some(name) = foreign {
        return Err(Error::NotADatabase { reason: format!("it holds the foreign file {name}") });
    }
    if !settings.create {
        return Err(Error::NotADatabase {
            reason: "it is empty, and creating a database was not requested".to_owned(),
        });
    }
    let seed = checksum64(&random_seed.to_le_bytes(), 0) | 1;
    Ok(DatabaseState {
        seed,
        next_file: settings.first_file,
        next_segment: SegmentId(1),
        log_start: SegmentId(1),
        ..DatabaseState::default()
    })
}

/// The tables and blob files that crashes left behind: the manifest does not name them. Refuses a directory that lacks
/// a table that the manifest names; the content of tables is checked when they are first used.
fn find_strays(storage: &dyn Storage, state: &DatabaseState) -> Result<Vec<String>> {
    let files = state.files();
    let mut missing = files.clone();
    let mut strays = storage.list().context(|| "listing the database directory".to_owned())?;
    strays.retain(|name| {
        let table = parse_table_file_name(name);
        table.iter().for_each(|table| {
            missing.remove(table);
        });
        let is_stray = table.is_some_and(|table| !files.contains(&table))
            || parse_blob_file_name(name).is_some_and(|blob| !state.blobs.contains_key(&blob))
            || parse_directory_file_name(name).is_some_and(|number| !state.names_directory(number));
        // A copy that has become a database needs no marker: nothing of it may be cleared away any more.
        is_stray || is_spill_file_name(name) || name == COPY_MARKER
    });
    match missing.first() {
        Some(&table) => Err(Error::MissingFile { file: table_file_name(table) }),
        None => Ok(strays),
    }
}

fn remove_all(storage: &dyn Storage, names: &[String]) -> Result<()> {
    names.iter().try_for_each(|name| storage.remove(name).context(|| format!("removing {name}")))
}

fn remove_old_manifests(storage: &dyn Storage, manifest: &Manifest) -> Result<()> {
    for name in storage.list().context(|| "listing the database directory".to_owned())? {
        if name.starts_with("manifest-") && name != manifest.name() {
            storage.remove(&name).context(|| format!("removing {name}"))?;
        }
    }
    Ok(())
}
