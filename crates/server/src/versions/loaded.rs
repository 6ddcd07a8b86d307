//! [`Loaded`]: a version that is open.

use std::sync::Arc;

use alluvium::{Build, BuildMismatch, BuildPart, HashKey, Version, VersionState, check_build};

use super::VersionsSettings;
use crate::engine::EngineStore;
use crate::store::{Database, DatabaseNumber, StoreError};

/// The keyspace that is database 0.
const KEYSPACE: &str = "default";

/// A version that is open. Closed when it is dropped.
pub(super) struct Loaded {
    pub number: u64,
    /// What it is, unless it is a database.
    pub build: Option<Build>,
    hash_key: Option<HashKey>,
    pub store: EngineStore,
}

impl Loaded {
    /// Opens a version and checks it, also against the one that is to be replaced.
    ///
    /// # Errors
    /// Why it does not fit.
    pub fn open(
        version: &Version,
        settings: &VersionsSettings,
        present: Option<&Arc<Self>>,
    ) -> Result<Self, StoreError> {
        let name = version.path.display().to_string();
        let build = match &version.state {
            VersionState::Build(build) => Some(build.clone()),
            VersionState::Database => None,
            VersionState::Damaged { reason } => return Err(format!("version {name}: {reason}").into()),
            _ => {
                let expected = "a committed build or a database";
                return Err(mismatch(&name, BuildPart::Manifest, expected, "neither BUILD nor CURRENT"));
            }
        };
        if let Some(build) = &build {
            if build.keyspace != KEYSPACE {
                return Err(mismatch(&name, BuildPart::Keyspace, KEYSPACE, &build.keyspace));
            }
            let before = present.and_then(|present| present.build.as_ref());
            if let Some(before) = before.filter(|before| before.shards != build.shards) {
                let (expected, found) = (before.shards.to_string(), build.shards.to_string());
                return Err(mismatch(&name, BuildPart::ShardCount, &expected, &found));
            }
            if settings.checks {
                check_build(&version.path, true)?;
            }
        }
        let db = (settings.open)(&version.path)?;
        if !db.keyspace_names().iter().any(|name| name == KEYSPACE) {
            return Err(mismatch(
                &name,
                BuildPart::Keyspace,
                KEYSPACE,
                &format!("{:?}", db.keyspace_names()),
            ));
        }
        let hash_key = db.keyspace(KEYSPACE)?.hash_key();
        if present.is_some_and(|present| present.hash_key != hash_key) {
            // Both are secret.
            return Err(mismatch(&name, BuildPart::HashKey, "that of the served version", "another one"));
        }
        if settings.checks && build.is_none() {
            let report = db.verify()?;
            if let Some(problem) = report.problems.first() {
                return Err(mismatch(&name, BuildPart::Checksum, "a sound database", problem));
            }
        }
        Ok(Self { number: version.number, build, hash_key, store: EngineStore::open(db)? })
    }

    /// A database, if this version has its keyspace.
    pub fn database(&self, number: DatabaseNumber) -> Option<&dyn Database> {
        self.store.opened_database(number)
    }
}

fn mismatch(file: &str, part: BuildPart, expected: &str, found: &str) -> StoreError {
    let (file, expected, found) = (file.to_owned(), expected.to_owned(), found.to_owned());
    alluvium::Error::Build(Box::new(BuildMismatch { file, part, expected, found })).into()
}
