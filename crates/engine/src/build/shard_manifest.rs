//! `SHARD`: what a finished shard has, written as its last file.

use std::collections::BTreeSet;

use alluvium_base::Corruption;
use alluvium_base::checksum::checksum64;
use alluvium_io::{AlignedBuffer, OpenMode, Storage};
use serde::{Deserialize, Serialize};

use super::header;
use super::job::StoredJob;
use super::mismatch::BuildPart;
use super::placement::SHARDS_MAX;
use crate::error::{Error, IoContext, Result};
use crate::file_names::{parse_blob_file_name, parse_table_file_name};
use crate::manifest::{CURRENT, is_manifest_file_name};

/// The file that says that a shard is finished.
pub(crate) const SHARD: &str = "SHARD";
/// The file that says that a directory is that of a shard, finished only if `SHARD` is there too.
pub(crate) const PARTIAL_SHARD: &str = "PARTIAL-SHARD";
/// `SHARD` while it is written.
pub(crate) const SHARD_NEW: &str = "SHARD.new";
pub(super) const MAGIC: [u8; 8] = *b"ALVMSHRD";
/// Bytes that are read at a time for a checksum.
const READ_BYTES: usize = 1 << 20;

/// What a finished shard has.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ShardManifest {
    pub job: StoredJob,
    /// The number of the shard, from 0.
    pub shard: u32,
    /// Items that were added, including those that a later one of the same key replaced.
    pub items: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// All files except this one and `LOCK`, by name.
    pub files: Vec<ShardFile>,
}

/// A file of a shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ShardFile {
    pub name: String,
    pub bytes: u64,
    /// XXH3-64 over XXH3-64 of each mebibyte of the file: see [`file_checksum`].
    pub checksum: u64,
}

impl ShardManifest {
    pub fn encode(&self) -> Vec<u8> {
        header::encode(MAGIC, self)
    }

    /// Reads the manifest of a shard.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self> {
        let manifest: Self = header::parse(MAGIC, name, bytes)?;
        let Self { job, shard, files, .. } = &manifest;
        let refused = |expected: &str, found: String| Error::from(Corruption::new(name, 24, expected, found));
        if job.shards == 0 || job.shards > SHARDS_MAX || *shard >= job.shards {
            return Err(refused("a shard of its job", format!("shard {shard} of {}", job.shards)));
        }
        let mut names = BTreeSet::new();
        for ShardFile { name, .. } in files {
            let is_known = parse_table_file_name(name).is_some()
                || parse_blob_file_name(name).is_some()
                || is_manifest_file_name(name);
            if !is_known || name.contains('/') || !names.insert(name) {
                return Err(refused(
                    "names of tables, blob files and a manifest, each once",
                    format!("{name:?}"),
                ));
            }
        }
        match names.iter().any(|name| *name == CURRENT) {
            true => Ok(manifest),
            false => Err(refused("a file CURRENT", "none".to_owned())),
        }
    }

    /// Reads the manifest in a shard's directory, which errors call `directory`.
    ///
    /// # Errors
    /// [`Error::Build`] if the shard is not finished.
    pub fn read(storage: &dyn Storage, directory: &str) -> Result<(Self, u64)> {
        let name = format!("{directory}/{SHARD}");
        let names = storage.list().context(|| format!("listing {directory}"))?;
        if !names.iter().any(|name| name == SHARD) {
            return Err(BuildPart::Manifest.mismatch(name, "a finished shard", "no file SHARD"));
        }
        let bytes = header::read(storage, SHARD)?;
        Ok((Self::parse(&name, &bytes)?, header::checksum_of(&bytes)))
    }

    /// Writes the manifest to a shard's directory, durably and atomically.
    pub fn write(&self, storage: &dyn Storage) -> Result<()> {
        header::write(storage, SHARD, &self.encode())
    }

    /// Refuses the directory if a file is missing or has another length; with `checksums`, also if it has another
    /// checksum, which costs a read of all files.
    pub fn check_files(&self, storage: &dyn Storage, directory: &str, checksums: bool) -> Result<()> {
        let names: BTreeSet<String> =
            storage.list().context(|| format!("listing {directory}"))?.into_iter().collect();
        for ShardFile { name, bytes, checksum } in &self.files {
            let path = format!("{directory}/{name}");
            if !names.contains(name) {
                return Err(BuildPart::Files.mismatch(path, "a file", "none"));
            }
            let file = storage.open(name, OpenMode::Read).context(|| format!("opening {path}"))?;
            let len = file.len().context(|| format!("measuring {path}"))?;
            BuildPart::Size.check(&path, *bytes, len)?;
            if checksums {
                let found = file_checksum(storage, name)?;
                let hex = |checksum: u64| format!("{checksum:016x}");
                BuildPart::Checksum.check(&path, hex(*checksum), hex(found))?;
            }
        }
        Ok(())
    }
}

/// The checksum of a file: XXH3-64 over the checksums of its mebibytes, 8 bytes each, little-endian. The seed of each
/// is its number, from 0; the last may be shorter. The seed of the whole is the file's length.
pub(crate) fn file_checksum(storage: &dyn Storage, name: &str) -> Result<u64> {
    let context = || format!("reading {name}");
    let file = storage.open(name, OpenMode::Read).context(context)?;
    let len = file.len().context(context)?;
    let mut buffer = AlignedBuffer::with_len(READ_BYTES);
    let mut checksums = Vec::new();
    for (number, offset) in (0..len).step_by(READ_BYTES).enumerate() {
        let expected = (len - offset).min(READ_BYTES as u64) as usize;
        let read = file.read_at(&mut buffer, offset).context(context)?;
        if read < expected {
            return Err(Corruption::new(name, offset, format!("{expected} bytes"), read.to_string()).into());
        }
        checksums.extend_from_slice(&checksum64(&buffer[..expected], number as u64).to_le_bytes());
    }
    Ok(checksum64(&checksums, len))
}

/// A sound manifest, for fuzzers to start from.
#[cfg(any(test, feature = "simulation"))]
pub(crate) fn sample() -> ShardManifest {
    use crate::{BuildJob, HashKey};
    let job = BuildJob::new("nightly", HashKey::from_bytes([7; 16]), 4);
    let file = |name: &str, bytes| ShardFile { name: name.to_owned(), bytes, checksum: 9 };
    ShardManifest {
        job: job.stored().expect("its fields are within bounds"),
        shard: 2,
        items: 1000,
        bytes: 116_000,
        files: vec![
            file(CURRENT, 64),
            file("manifest-000001", 900),
            file("table-02097153", 131_072),
            file("blob-02097154", 4096),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_no_changed_byte_passes() {
        let manifest = sample();
        let bytes = manifest.encode();
        assert!(ShardManifest::parse(SHARD, &bytes).unwrap() == manifest);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(ShardManifest::parse(SHARD, &damaged).is_err(), "byte {at}");
            assert!(ShardManifest::parse(SHARD, &bytes[..at]).is_err(), "cut to {at}");
        }
    }

    #[test]
    fn fields_out_of_bounds_are_refused() {
        let refused = |change: fn(&mut ShardManifest)| {
            let mut manifest = sample();
            change(&mut manifest);
            matches!(ShardManifest::parse(SHARD, &manifest.encode()), Err(Error::Corruption(_)))
        };
        assert!(!refused(|_| {}));
        assert!(refused(|manifest| manifest.shard = 4));
        assert!(refused(|manifest| manifest.job.shards = 0));
        assert!(refused(|manifest| manifest.files[2].name = "../table-1".to_owned()));
        assert!(refused(|manifest| manifest.files[2].name = "manifest-/../x".to_owned()));
        assert!(refused(|manifest| manifest.files[2].name = manifest.files[1].name.clone()));
        assert!(refused(|manifest| manifest.files.truncate(0)));
    }
}
