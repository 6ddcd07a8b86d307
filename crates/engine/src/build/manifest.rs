//! `BUILD`: which shards a committed build has, written as its last file.

use std::collections::BTreeSet;

use alluvium_base::Corruption;
use alluvium_io::Storage;
use serde::{Deserialize, Serialize};

use super::header;
use super::job::StoredJob;
use super::mismatch::BuildPart;
use super::placement::SHARDS_MAX;
use crate::error::{IoContext, Result};

/// The file that says that a build is committed.
pub(crate) const BUILD: &str = "BUILD";
pub(super) const MAGIC: [u8; 8] = *b"ALVMBULD";

/// Which shards a committed build has.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct BuildManifest {
    pub job: StoredJob,
    /// One for each shard of the job, in order.
    pub shards: Vec<CommittedShard>,
}

/// A shard of a committed build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommittedShard {
    /// The name of its directory, below that of the build.
    pub directory: String,
    /// XXH3-64 over its file `SHARD`, seed 0.
    pub manifest_checksum: u64,
    pub items: u64,
    pub bytes: u64,
}

impl BuildManifest {
    pub fn encode(&self) -> Vec<u8> {
        header::encode(MAGIC, self)
    }

    /// Reads the manifest of a build.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self> {
        let manifest: Self = header::parse(MAGIC, name, bytes)?;
        let Self { job, shards } = &manifest;
        let refused = |expected: &str, found: String| Corruption::new(name, 24, expected, found);
        if job.shards == 0 || job.shards > SHARDS_MAX || shards.len() != job.shards as usize {
            let found = format!("{} of {}", shards.len(), job.shards);
            return Err(refused("all shards of its job", found).into());
        }
        let mut names = BTreeSet::new();
        for CommittedShard { directory, .. } in shards {
            let is_name = !directory.is_empty() && directory != "." && directory != "..";
            if !is_name || directory.contains(['/', '\\', '\0']) || !names.insert(directory) {
                return Err(refused("names of directories, each once", format!("{directory:?}")).into());
            }
        }
        Ok(manifest)
    }

    /// Reads the manifest of the build in the directory `root`, which errors call `name`.
    ///
    /// # Errors
    /// [`crate::Error::Build`] if the build is not committed.
    pub fn read(root: &dyn Storage, name: &str) -> Result<Self> {
        let file = format!("{name}/{BUILD}");
        let names = root.list().context(|| format!("listing {name}"))?;
        if !names.iter().any(|name| name == BUILD) {
            return Err(BuildPart::Manifest.mismatch(file, "a committed build", "no file BUILD"));
        }
        Self::parse(&file, &header::read(root, BUILD)?)
    }

    /// Writes the manifest, durably and atomically.
    pub fn write(&self, root: &dyn Storage) -> Result<()> {
        header::write(root, BUILD, &self.encode())
    }
}

/// A sound manifest, for fuzzers to start from.
#[cfg(any(test, feature = "simulation"))]
pub(super) fn sample() -> BuildManifest {
    let job = super::shard_manifest::sample().job;
    let shard = |number| CommittedShard {
        directory: format!("shard-{number:05}"),
        manifest_checksum: 5,
        items: 10,
        bytes: 1000,
    };
    BuildManifest { shards: (0..job.shards).map(shard).collect(), job }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_no_changed_byte_passes() {
        let bytes = sample().encode();
        assert!(BuildManifest::parse(BUILD, &bytes).unwrap() == sample());
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(BuildManifest::parse(BUILD, &damaged).is_err(), "byte {at}");
            assert!(BuildManifest::parse(BUILD, &bytes[..at]).is_err(), "cut to {at}");
        }
    }

    #[test]
    fn shards_that_are_missing_or_elsewhere_are_refused() {
        let refused = |change: fn(&mut BuildManifest)| {
            let mut manifest = sample();
            change(&mut manifest);
            BuildManifest::parse(BUILD, &manifest.encode()).is_err()
        };
        assert!(!refused(|_| {}));
        assert!(refused(|manifest| drop(manifest.shards.pop())));
        assert!(refused(|manifest| manifest.job.shards = 0));
        assert!(refused(|manifest| manifest.shards[1].directory = "..".to_owned()));
        assert!(refused(|manifest| manifest.shards[1].directory = "/etc".to_owned()));
        assert!(refused(|manifest| manifest.shards[1].directory = manifest.shards[0].directory.clone()));
    }
}
