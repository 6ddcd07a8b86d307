//! Bulk builds: what is built in parallel, as shards, and read or adopted as a whole.
//!
//! A build is a directory with one directory for each shard, and a file `BUILD`, written last. A shard has the items
//! whose hashes are in one range. Its directory is a database of its own: tables of the last level, no log, and a file
//! `SHARD`, written last, with the length and the checksum of each other file.

mod abort;
mod built;
mod commit;
#[cfg(any(test, feature = "simulation"))]
mod fuzz;
mod header;
mod job;
mod manifest;
mod mismatch;
mod placement;
mod shard_manifest;
mod shards;
mod versions;

pub use abort::abort_build;
pub(crate) use built::{Built, built_state, names_of};
pub use commit::{Build, CommitOptions, build_shards, check_build, commit_build};
#[doc(hidden)]
pub use commit::{CandidateShard, commit_build_in};
#[cfg(any(test, feature = "simulation"))]
pub(crate) use fuzz::{fuzz, fuzz_samples};
pub use job::BuildJob;
pub(crate) use job::StoredJob;
pub(crate) use manifest::BuildManifest;
pub use mismatch::{BuildMismatch, BuildPart};
pub use placement::{SHARDS_MAX, hash_of, shard_of};
pub(crate) use placement::{first_file, shard_of_hash, shard_range};
pub(crate) use shard_manifest::{PARTIAL_SHARD, SHARD, SHARD_NEW, ShardFile, ShardManifest, file_checksum};
pub use shards::shard_directory;
pub use versions::{Version, VersionState, keep_versions, versions};
