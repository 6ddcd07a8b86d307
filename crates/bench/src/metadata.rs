//! `bench metadata`: the directory entries of real trees as items, the workload that SlimDB was built for (§1, §5).
//!
//! An entry is an item whose key is the number of its folder, 8 bytes, and its name; its value is what `stat` tells. So
//! the entries of a folder are one prefix of a semi-sorted keyspace: some have thousands, most a few. A map in memory
//! sees the same operations, and every answer must agree with it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use alluvium::{Db, Durability, Keyspace, KeyspaceOptions, PrefixRule};
use alluvium_model::Plan;

use crate::error::BenchError;
use crate::measurement::Measurement;
use crate::random::Random;
use crate::report::Report;

/// Options of `bench metadata`.
#[derive(Clone, Debug, clap::Args)]
pub struct MetadataOptions {
    /// Directory whose tree is taken; it is only read
    pub input: PathBuf,
    /// Times that the tree is taken, each time under other folders
    #[arg(long, default_value_t = 1)]
    pub copies: u64,
    /// Operations of each phase behind the first
    #[arg(long, default_value_t = 20_000)]
    pub operations: u64,
    /// Storage layout of the keyspace: a named plan for semi-sorted keyspaces
    #[arg(long, default_value = "semi-sorted")]
    pub plan: String,
    /// Seed of the operations
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Where the database is made, in a subdirectory `alluvium-bench-metadata`
    #[arg(long, default_value = ".")]
    pub dir: PathBuf,
}

const SUBDIRECTORY: &str = "alluvium-bench-metadata";
/// Bytes of a folder's number, in front of each of its entries' names.
const FOLDER_BYTES: u16 = 8;
/// Bytes of an entry's value: what `stat` tells of an inode.
const VALUE_BYTES: usize = 64;

/// An entry as it was found: the number of its folder, its name, its kind and length.
struct Entry {
    folder: u64,
    name: Vec<u8>,
    is_folder: bool,
    len: u64,
}

/// The store and the map beside it.
struct Tree {
    db: Db,
    entries: Keyspace,
    exact: BTreeMap<Vec<u8>, Vec<u8>>,
    folders: u64,
    random: Random,
}

/// Creates the entries of the tree, looks them up, lists folders, moves and removes entries, and removes folders.
///
/// # Errors
/// An answer that the map doesn't give is a wrong answer. Folders that can't be listed are taken for empty.
pub fn run(options: &MetadataOptions, report: &mut Report) -> Result<(), BenchError> {
    let directory = options.dir.join(SUBDIRECTORY);
    if directory.exists() {
        std::fs::remove_dir_all(&directory)?;
    }
    std::fs::create_dir_all(&directory)?;
    let (found, folders) = entries_below(&options.input, &directory.canonicalize()?)?;
    let plan = Plan::named(&options.plan).map_err(|error| BenchError::Usage(error.to_string()))?;
    let db = Db::builder(&directory).durability(Durability::Buffered).open()?;
    let prefix = PrefixRule::Length { bytes: FOLDER_BYTES };
    let entries = db.keyspace_with("entries", &KeyspaceOptions::semi_sorted(prefix).with_plan(plan))?;
    let random = Random::new(options.seed, 1);
    let mut tree = Tree { db, entries, exact: BTreeMap::new(), folders, random };

    let measurement = |case: &str, operations: u64, items: u64, elapsed: Duration| {
        let seconds = elapsed.as_secs_f64().max(1e-9);
        Measurement::new("metadata", case)
            .config("plan", options.plan.clone())
            .config("copies", options.copies)
            .metric("operations", operations)
            .metric("entries", items)
            .metric("ops_per_s", operations as f64 / seconds)
            .metric("entries_per_s", items as f64 / seconds)
    };
    let elapsed = tree.create(&found, options.copies)?;
    let created = found.len() as u64 * options.copies;
    report
        .add(measurement("create", created, created, elapsed).metric("folders", folders * options.copies))?;
    tree.folders *= options.copies;
    tree.db.wait_idle()?;
    if tree.exact.is_empty() {
        return Err(BenchError::Usage("the tree has no entries".to_owned()));
    }
    let elapsed = tree.stat(options.operations)?;
    report.add(measurement("stat", options.operations, options.operations, elapsed))?;
    let (elapsed, listed) = tree.list(options.operations)?;
    report.add(measurement("list", options.operations, listed, elapsed))?;
    let elapsed = tree.rename(options.operations)?;
    report.add(measurement("rename", options.operations, options.operations, elapsed))?;
    let folders = (options.operations / 100).max(1);
    let (elapsed, removed) = tree.remove_folders(folders)?;
    report.add(measurement("remove-folders", folders, removed, elapsed))?;
    let elapsed = tree.check_all()?;
    report.add(measurement("check", 1, tree.exact.len() as u64, elapsed))?;
    let Tree { db, entries, .. } = tree;
    drop(entries);
    db.close()?;
    std::fs::remove_dir_all(directory)?;
    Ok(())
}

fn key(folder: u64, name: &[u8]) -> Vec<u8> {
    [&folder.to_be_bytes(), name].concat()
}

impl Tree {
    /// Creates all entries, as many times as there are copies.
    fn create(&mut self, found: &[Entry], copies: u64) -> Result<Duration, BenchError> {
        let mut elapsed = Duration::ZERO;
        for copy in 0..copies {
            for entry in found {
                let mut value = vec![0; VALUE_BYTES];
                value[0] = u8::from(entry.is_folder);
                value[8..16].copy_from_slice(&entry.len.to_le_bytes());
                value[16..24].copy_from_slice(&copy.to_le_bytes());
                let key = key(copy * self.folders + entry.folder, &entry.name);
                let start = Instant::now();
                self.entries.insert(&key, &value)?;
                elapsed += start.elapsed();
                self.exact.insert(key, value);
            }
        }
        Ok(elapsed)
    }

    /// Some entry, or for one time in eight a name that is not there.
    fn any_key(&mut self) -> Vec<u8> {
        let start = key(self.random.below(self.folders), &[self.random.below(256) as u8]);
        let at = self.exact.range(start.clone()..).next().or_else(|| self.exact.iter().next());
        match at {
            Some((key, _)) if !self.random.below(8).is_multiple_of(8) => key.clone(),
            _ => start,
        }
    }

    fn stat(&mut self, operations: u64) -> Result<Duration, BenchError> {
        let mut elapsed = Duration::ZERO;
        for _ in 0..operations {
            let key = self.any_key();
            let start = Instant::now();
            let answer = self.entries.get(&key)?;
            elapsed += start.elapsed();
            if answer.as_ref() != self.exact.get(&key) {
                return Err(wrong("stat", &key));
            }
        }
        Ok(elapsed)
    }

    fn list(&mut self, operations: u64) -> Result<(Duration, u64), BenchError> {
        let (mut elapsed, mut listed) = (Duration::ZERO, 0);
        for _ in 0..operations {
            let folder = self.random.below(self.folders).to_be_bytes();
            let start = Instant::now();
            let mut answer = self.entries.scan_prefix(folder)?.collect::<Result<Vec<_>, _>>()?;
            elapsed += start.elapsed();
            listed += answer.len() as u64;
            answer.sort();
            if !answer.iter().map(|(key, value)| (key, value)).eq(self.of_folder(folder)) {
                return Err(wrong("list", &folder));
            }
        }
        Ok((elapsed, listed))
    }

    fn of_folder(&self, folder: [u8; 8]) -> impl Iterator<Item = (&Vec<u8>, &Vec<u8>)> {
        self.exact.range(folder.to_vec()..).take_while(move |(key, _)| key.starts_with(&folder))
    }

    /// Moves entries to other folders: each a removal and an insertion in one batch.
    fn rename(&mut self, operations: u64) -> Result<Duration, BenchError> {
        let mut elapsed = Duration::ZERO;
        for _ in 0..operations {
            let from = self.any_key();
            let Some(value) = self.exact.get(&from).cloned() else { continue };
            let to = key(self.random.below(self.folders), &from[usize::from(FOLDER_BYTES)..]);
            let start = Instant::now();
            let mut batch = self.db.batch();
            batch.remove(&self.entries, from.clone());
            batch.insert(&self.entries, to.clone(), value.clone());
            batch.commit()?;
            elapsed += start.elapsed();
            self.exact.remove(&from);
            self.exact.insert(to, value);
        }
        Ok(elapsed)
    }

    fn remove_folders(&mut self, operations: u64) -> Result<(Duration, u64), BenchError> {
        let (mut elapsed, mut removed) = (Duration::ZERO, 0);
        for _ in 0..operations {
            let folder = self.random.below(self.folders).to_be_bytes();
            let keys: Vec<_> = self.of_folder(folder).map(|(key, _)| key.clone()).collect();
            let start = Instant::now();
            self.entries.delete_prefix(folder)?;
            elapsed += start.elapsed();
            removed += keys.len() as u64;
            keys.iter().for_each(|key| drop(self.exact.remove(key)));
            if self.entries.scan_prefix(folder)?.next().is_some() {
                return Err(wrong("remove", &folder));
            }
        }
        Ok((elapsed, removed))
    }

    /// Iterates over all entries.
    fn check_all(&self) -> Result<Duration, BenchError> {
        let start = Instant::now();
        let mut count = 0;
        for item in self.entries.iter() {
            let (key, value) = item?;
            if self.exact.get(&key) != Some(&value) {
                return Err(wrong("iterate", &key));
            }
            count += 1;
        }
        match count == self.exact.len() {
            true => Ok(start.elapsed()),
            false => Err(wrong("iterate", &count.to_string().into_bytes())),
        }
    }
}

fn wrong(operation: &str, key: &[u8]) -> BenchError {
    BenchError::WrongAnswer(format!("{operation} of {}", String::from_utf8_lossy(key)))
}

/// All entries below `input` with the numbers of their folders, and how many folders there are; symbolic links are not
/// followed, and `without` is left out.
fn entries_below(input: &Path, without: &Path) -> Result<(Vec<Entry>, u64), BenchError> {
    let mut found = Vec::new();
    let mut folders = vec![input.canonicalize()?];
    let mut next = 0;
    while let Some(path) = folders.get(next).cloned() {
        // A folder that cannot be listed (no permission, gone meanwhile) is like an empty one.
        for entry in std::fs::read_dir(&path).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            let is_folder = metadata.is_dir() && entry.path() != without;
            let name = entry.file_name().into_encoded_bytes();
            found.push(Entry { folder: next as u64, name, is_folder, len: metadata.len() });
            if is_folder {
                folders.push(entry.path());
            }
        }
        next += 1;
    }
    Ok((found, folders.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_tree_is_created_listed_moved_and_removed() {
        let input = tempfile::tempdir().unwrap();
        let work = tempfile::tempdir().unwrap();
        for folder in 0..10 {
            let path = input.path().join(format!("folder {folder}"));
            std::fs::create_dir(&path).unwrap();
            for file in 0..folder * folder {
                std::fs::write(path.join(format!("file {file}")), [0; 3]).unwrap();
            }
        }
        let options = MetadataOptions {
            input: input.path().to_owned(),
            copies: 3,
            operations: 500,
            plan: "semi-sorted".to_owned(),
            seed: 1,
            dir: work.path().to_owned(),
        };
        let mut report = Report::new(false);
        run(&options, &mut report).unwrap();
        let created = &report.measurements()[0].metrics;
        assert_eq!((&created["entries"], &created["folders"]), (&(3 * 295).into(), &33.into()));
        assert!(!work.path().join(SUBDIRECTORY).exists());
    }
}
