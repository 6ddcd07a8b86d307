//! Versions side by side in one directory, from which a server takes one.
//!
//! ```text
//! ROOT/0001      a committed build, or a database
//! ROOT/0002      the next version; incomplete until it has BUILD or CURRENT
//! ROOT/removing  the rest of one whose removal was interrupted
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use super::commit::Build;
use super::manifest::{BUILD, BuildManifest};
use super::shards::{directories, open};
use crate::error::{IoContext, Result};
use crate::manifest::CURRENT;

const REMOVING: &str = "removing";

/// A version: a directory whose name is a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Its number.
    pub number: u64,
    /// Its directory.
    pub path: PathBuf,
    /// What is there.
    pub state: VersionState,
}

/// What is in the directory of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum VersionState {
    /// A committed build. Its shards have not been looked at.
    Build(Build),
    /// A database.
    Database,
    /// Neither of them, as yet.
    Incomplete,
    /// A build whose manifest is damaged.
    Damaged {
        /// How that was noticed.
        reason: String,
    },
}

impl Version {
    /// Whether it has a committed build or a database.
    pub fn is_complete(&self) -> bool {
        matches!(self.state, VersionState::Build(_) | VersionState::Database)
    }
}

/// The versions in the directory `root`, by number. Reads the manifest of each build.
///
/// # Errors
/// [`crate::Error::Io`] if there is no such directory, or a part of it cannot be read.
pub fn versions(root: impl AsRef<Path>) -> Result<Vec<Version>> {
    let root = root.as_ref();
    let mut versions = Vec::new();
    for name in directories(root)? {
        // 7 and 0007 would be one version.
        let number = name.parse::<u64>().ok().filter(|number| name == format!("{number:04}"));
        let Some(number) = number else { continue };
        let path = root.join(name);
        let state = state_of(&path)?;
        versions.push(Version { number, path, state });
    }
    versions.sort_by_key(|version| version.number);
    Ok(versions)
}

fn state_of(path: &Path) -> Result<VersionState> {
    if path.join(CURRENT).exists() {
        return Ok(VersionState::Database);
    }
    if !path.join(BUILD).exists() {
        return Ok(VersionState::Incomplete);
    }
    Ok(match BuildManifest::read(&*open(path)?, &path.display().to_string()) {
        Ok(manifest) => VersionState::Build(Build::of(&manifest)),
        Err(error @ crate::Error::Io { .. }) => return Err(error),
        Err(error) => VersionState::Damaged { reason: error.to_string() },
    })
}

/// Removes versions older than the youngest `keep` complete ones in `root`, except those in `used`. Returns the numbers
/// of those that were removed, which include incomplete ones.
///
/// A reader that has files of a removed version open can still read them.
pub fn keep_versions(root: impl AsRef<Path>, keep: usize, used: &[u64]) -> Result<Vec<u64>> {
    let root = root.as_ref();
    let storage = open(root)?;
    let context = |path: &Path| format!("removing {}", path.display());
    let removing = root.join(REMOVING);
    let clear = || match removing.exists() {
        true => fs::remove_dir_all(&removing).context(|| context(&removing)),
        false => Ok(()),
    };
    clear()?;
    let all = versions(root)?;
    let complete: Vec<u64> =
        all.iter().filter(|version| version.is_complete()).map(|version| version.number).collect();
    let Some(&oldest_kept) = complete.iter().rev().take(keep.max(1)).next_back() else {
        return Ok(Vec::new());
    };
    let mut removed = Vec::new();
    for Version { number, path, .. } in all {
        if number >= oldest_kept || used.contains(&number) {
            continue;
        }
        // Renamed first, so that nothing half removed looks like a version.
        fs::rename(&path, &removing).context(|| context(&path))?;
        storage.sync_directory().context(|| context(&path))?;
        clear()?;
        removed.push(number);
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_youngest_complete_versions_are_kept_and_those_in_use() {
        let root = tempfile::tempdir().unwrap();
        let make = |name: &str, is_complete: bool| {
            fs::create_dir(root.path().join(name)).unwrap();
            if is_complete {
                fs::write(root.path().join(name).join(CURRENT), "").unwrap();
            }
        };
        for (name, is_complete) in
            [("0001", true), ("0002", true), ("0003", false), ("0004", true), ("0010", true), ("0011", false)]
        {
            make(name, is_complete);
        }
        make("5", true);
        make("notes", true);
        make(REMOVING, true);
        let numbers =
            || versions(root.path()).unwrap().iter().map(|version| version.number).collect::<Vec<_>>();
        assert_eq!(numbers(), [1, 2, 3, 4, 10, 11]);
        assert_eq!(keep_versions(root.path(), 2, &[1]).unwrap(), [2, 3]);
        assert_eq!(numbers(), [1, 4, 10, 11]);
        assert!(!root.path().join(REMOVING).exists() && root.path().join("5").exists());
        assert_eq!(keep_versions(root.path(), 0, &[]).unwrap(), [1, 4]);
        assert_eq!(numbers(), [10, 11]);
    }
}
