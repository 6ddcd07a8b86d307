//! Reads the whole content of a database, in several ways that must agree.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use alluvium::Db;
use rand::RngExt;
use rand::rngs::StdRng;

use super::clock::Watch;
use super::journal::SharedEffect;
use super::key::{Catalog, Key, SHARED, Seen, Times, all_keys, space_name, spaces};
use super::ledger::{Base, COUNTERS, Notes, REGISTERS};
use super::reader::iterate_all;
use super::setting::open_keyspace;
use super::shared_writes::{
    ACCOUNTS, account_key, balance, counter_key, list_key, register_key, register_version,
};
use super::verdict::Observation;

/// Number of keys that are read at a time: some have large values.
const KEYS_AT_ONCE: usize = 24;

/// Reads all keys.
///
/// # Errors
/// Content that is impossible, no matter what was written.
pub fn observe(
    db: &Db,
    base: &Base,
    notes: &Notes,
    watch: &Watch,
    rng: &mut StdRng,
) -> Result<Observation, String> {
    let writers = notes.writers.len() as u8;
    let words = |error: alluvium::Error| format!("reading everything: {error}");
    let earliest = watch.earliest();
    let mut seen = HashMap::new();
    for space in 0..spaces(writers) {
        let keyspace = open_keyspace(db, space).map_err(words)?;
        let keys: Vec<Key> = all_keys(space, writers).collect();
        for keys in keys.chunks(KEYS_AT_ONCE) {
            let bytes: Vec<Vec<u8>> = keys.iter().map(|key| key.bytes(writers)).collect();
            let values: Vec<Option<Vec<u8>>> = match rng.random() {
                true => keyspace.multi_get(&bytes).map_err(words)?,
                false => {
                    bytes.iter().map(|key| keyspace.get(key)).collect::<Result<_, _>>().map_err(words)?
                }
            };
            for (key, value) in keys.iter().zip(values) {
                match Seen::of(*key, value.as_deref())? {
                    Seen::Absent => {}
                    found => drop(seen.insert(*key, found)),
                }
            }
        }
    }
    let shared = open_keyspace(db, SHARED).map_err(words)?;
    let get = |key: String| shared.get(key).map_err(words);
    let mut counters = Vec::new();
    for number in 0..COUNTERS {
        let value = get(counter_key(number))?;
        let count = balance(value.as_deref()).and_then(|count| u64::try_from(count).ok());
        counters.push(count.ok_or_else(|| format!("counter {number}: {value:?}"))?);
    }
    let mut registers = Vec::new();
    for number in 0..REGISTERS {
        let value = get(register_key(number))?;
        registers
            .push(register_version(value.as_deref()).ok_or_else(|| format!("register {number}: {value:?}"))?);
    }
    let mut sum = 0;
    for number in 0..ACCOUNTS {
        let value = get(account_key(number))?;
        sum += balance(value.as_deref()).ok_or_else(|| format!("account {number}: {value:?}"))?;
    }
    if sum != 0 {
        return Err(format!("the accounts sum to {sum}"));
    }
    let effects = notes.writers.iter().flat_map(|history| &history.operations);
    let appended = effects.filter_map(|operation| match operation.shared {
        Some(SharedEffect::Append(list)) => Some(list),
        _ => None,
    });
    let mut lists = BTreeMap::new();
    for list in base.shared.lists.keys().copied().chain(appended) {
        if let Entry::Vacant(vacant) = lists.entry(list) {
            vacant.insert(get(list_key(list))?.unwrap_or_default());
        }
    }
    let times = Times { earliest: earliest.min(watch.earliest()), latest: watch.latest() };
    Ok(Observation { seen, counters, registers, lists, times })
}

/// Checks that iterations return what gets did, and that files are sound.
pub fn check_iterations(db: &Db, base: &Base, catalogs: &[Catalog], watch: &Watch) -> Result<(), String> {
    let writers = (base.next_op.len() - 1) as u8;
    for space in 0..spaces(writers) {
        let words = |error: alluvium::Error| format!("iterating {}: {error}", space_name(space));
        let keyspace = open_keyspace(db, space).map_err(words)?;
        let earliest = watch.earliest();
        let items = iterate_all(&keyspace).map_err(words)?;
        let times = Times { earliest: earliest.min(watch.earliest()), latest: watch.latest() };
        let mut found = HashMap::new();
        for (bytes, value) in items {
            let Some(key) = catalogs[usize::from(space)].find(&bytes) else {
                if space == SHARED {
                    continue;
                }
                return Err(format!("a foreign key {:?}", String::from_utf8_lossy(&bytes)));
            };
            if found.insert(key, Seen::of(key, Some(&value))?).is_some() {
                return Err(format!("an iteration returned {key} twice"));
            }
        }
        for key in all_keys(space, writers) {
            let expected = base.outcomes.get(&key).unwrap_or(&super::key::Outcome::Absent);
            let seen = found.get(&key).unwrap_or(&Seen::Absent);
            if !expected.allows(seen, times) {
                return Err(format!("an iteration: {key}: expected {expected:?}, found {seen:?}"));
            }
        }
    }
    let report = db.verify().map_err(|error| format!("verifying: {error}"))?;
    if report.problems.is_empty() { Ok(()) } else { Err(format!("verify: {:?}", report.problems)) }
}

/// Checks that the directory has at most `bytes_max` bytes in `files_max` files.
pub fn check_directory(path: &Path, files_max: usize, bytes_max: u64) -> Result<(usize, u64), String> {
    let entries = std::fs::read_dir(path).map_err(|error| error.to_string())?;
    let (mut files, mut bytes) = (0, 0);
    let mut names = Vec::new();
    for entry in entries.flatten() {
        use std::os::unix::fs::MetadataExt;
        // Blocks, not lengths: merges free parts of a table as holes.
        let taken = entry.metadata().map_or(0, |metadata| metadata.blocks() * 512);
        files += 1;
        bytes += taken;
        names.push(format!("{} {taken}", entry.file_name().to_string_lossy()));
    }
    if files > files_max || bytes > bytes_max {
        return Err(format!(
            "the directory has {bytes} bytes in {files} files, maximum {bytes_max} in {files_max}: {}",
            names.join(", ")
        ));
    }
    Ok((files, bytes))
}
