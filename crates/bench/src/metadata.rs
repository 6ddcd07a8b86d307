//! `bench metadata`: the directory entries of real trees as items, the workload that SlimDB was built for (§1, §5).
//!
//! An entry is an item. Its key is the number of its folder, 8 bytes, followed by its name; its value is what `stat`
//! returns. So the entries of a folder share a prefix of a semi-sorted keyspace: some folders have thousands, most a
//! few. A map in memory sees the same operations, and every answer must agree with it.

use std::path::{Path, PathBuf};

use crate::error::BenchError;
use crate::groups::{GROUP_BYTES, Groups, GroupsOptions, Work, key};
use crate::measurement::Measurement;
use crate::random::Random;
use crate::report::Report;

/// Options of `bench metadata`.
#[derive(Clone, Debug, clap::Args)]
pub struct MetadataOptions {
    /// Directory whose tree is used; it is only read
    pub input: PathBuf,
    /// What is done with it.
    #[command(flatten)]
    pub groups: GroupsOptions,
}

const SUBDIRECTORY: &str = "alluvium-bench-metadata";
/// Bytes of an entry's value: what `stat` returns for an inode.
const VALUE_BYTES: usize = 64;

/// An entry as it was found: the number of its folder, its name, its kind and length.
struct Entry {
    folder: u64,
    name: Vec<u8>,
    is_folder: bool,
    len: u64,
}

/// The store, and the data from which operations are chosen.
struct Tree {
    groups: Groups,
    found: Vec<Entry>,
    folders_found: u64,
    copies: u64,
    random: Random,
}

type Phase = fn(&mut Tree, u64) -> Result<Work, BenchError>;

/// Creates the entries of the tree, looks them up, lists folders, moves and removes entries, removes folders, and lists
/// the folders that remain.
///
/// # Errors
/// An answer that differs from the map's is a wrong answer. Folders that cannot be listed count as empty.
pub fn run(options: &MetadataOptions, report: &mut Report) -> Result<(), BenchError> {
    let directory = report.directories().create(&options.groups.dir, SUBDIRECTORY)?;
    let (found, folders_found) = entries_below(&options.input, &directory.path().canonicalize()?)?;
    if found.is_empty() {
        return Err(BenchError::Usage("the tree has no entries".to_owned()));
    }
    let groups = Groups::create(directory, "entries", &options.groups.plan, true)?;
    let random = Random::new(options.groups.seed, 1);
    let mut tree = Tree { groups, found, folders_found, copies: options.groups.copies, random };
    let phases: [(&str, u64, Phase); 7] = [
        ("create", 1, Tree::create),
        ("stat", options.groups.operations, Tree::stat),
        ("list", options.groups.operations, Tree::list),
        ("rename", options.groups.operations, Tree::rename),
        ("remove-folders", (options.groups.operations / 100).max(1), Tree::remove_folders),
        ("folders", 1, Tree::check_folders),
        ("check", 1, Tree::check),
    ];
    for (case, operations, phase) in phases {
        let before = tree.groups.before();
        let work = phase(&mut tree, operations)?;
        let measurement = Measurement::new("metadata", case)
            .config("plan", options.groups.plan.clone())
            .config("copies", options.groups.copies)
            .config("folders", tree.folders());
        report.add(tree.groups.measured(measurement, work, &before)?)?;
    }
    tree.groups.discard()
}

impl Tree {
    fn folders(&self) -> u64 {
        self.folders_found * self.copies
    }

    /// Creates all entries, once per copy.
    fn create(&mut self, _: u64) -> Result<Work, BenchError> {
        let mut work = Work::default();
        for copy in 0..self.copies {
            for entry in &self.found {
                let mut value = vec![0; VALUE_BYTES];
                value[0] = u8::from(entry.is_folder);
                value[8..16].copy_from_slice(&entry.len.to_le_bytes());
                value[16..24].copy_from_slice(&copy.to_le_bytes());
                let key = key(copy * self.folders_found + entry.folder, &entry.name);
                self.groups.insert(key, value, &mut work)?;
            }
        }
        Ok(work)
    }

    /// An arbitrary entry or, one time in eight, a name that does not exist.
    fn any_key(&mut self) -> Vec<u8> {
        let start = key(self.random.below(self.folders()), &[self.random.below(256) as u8]);
        match self.groups.key_near(&start) {
            Some(key) if !self.random.below(8).is_multiple_of(8) => key.clone(),
            _ => start,
        }
    }

    fn stat(&mut self, operations: u64) -> Result<Work, BenchError> {
        let mut work = Work::default();
        for _ in 0..operations {
            let key = self.any_key();
            self.groups.get(&key, &mut work)?;
        }
        Ok(work)
    }

    fn list(&mut self, operations: u64) -> Result<Work, BenchError> {
        let mut work = Work::default();
        for _ in 0..operations {
            self.groups.list(self.random.below(self.folders()), &mut work)?;
        }
        Ok(work)
    }

    /// Moves entries to other folders: each a removal and an insertion in one batch.
    fn rename(&mut self, operations: u64) -> Result<Work, BenchError> {
        let mut work = Work::default();
        for _ in 0..operations {
            let from = self.any_key();
            let to = key(self.random.below(self.folders()), &from[GROUP_BYTES..]);
            self.groups.rename(&from, to, &mut work)?;
        }
        Ok(work)
    }

    fn remove_folders(&mut self, folders: u64) -> Result<Work, BenchError> {
        let mut work = Work::default();
        for _ in 0..folders {
            self.groups.remove_group(self.random.below(self.folders()), &mut work)?;
        }
        Ok(work)
    }

    /// Lists all folders with entries, in order.
    fn check_folders(&mut self, _: u64) -> Result<Work, BenchError> {
        let mut work = Work::default();
        self.groups.check_groups(&mut work)?;
        Ok(work)
    }

    fn check(&mut self, _: u64) -> Result<Work, BenchError> {
        let mut work = Work::default();
        self.groups.check_all(&mut work)?;
        Ok(work)
    }
}

/// All entries below `input`, except those in `without`, with the numbers of their folders; and the number of folders.
/// Symbolic links are not followed.
fn entries_below(input: &Path, without: &Path) -> Result<(Vec<Entry>, u64), BenchError> {
    let mut found = Vec::new();
    let mut folders = vec![input.canonicalize()?];
    let mut next = 0;
    while let Some(path) = folders.get(next).cloned() {
        // A folder that cannot be listed (no permission, removed meanwhile) counts as empty.
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
            groups: GroupsOptions {
                copies: 3,
                operations: 500,
                plan: "semi-sorted".to_owned(),
                seed: 1,
                dir: work.path().to_owned(),
            },
        };
        let mut report = Report::new(false);
        run(&options, &mut report).unwrap();
        let created = &report.measurements()[0];
        assert_eq!((&created.metrics["items"], &created.config["folders"]), (&(3 * 295).into(), &33.into()));
        assert!(!work.path().join(SUBDIRECTORY).exists());
    }
}
