//! [`Versions`]: what a store can do that serves one of several built versions.

use super::{Report, StoreError};

/// What a store can do that serves one of several versions, each of which was built elsewhere and never changes.
pub trait Versions: Send + Sync {
    /// What is served now. Costs nothing.
    fn served(&self) -> ServedVersion;

    /// All versions that are there, for people.
    ///
    /// # Errors
    /// When they cannot be read.
    fn list(&self) -> Result<Report, StoreError>;

    /// Serves another version: that of this number, or the youngest complete one. Commands in progress end with the
    /// version with which they began. Takes as long as opening it, and checking it if that was asked for.
    ///
    /// # Errors
    /// Why it does not fit; then the same version is served as before.
    fn swap(&self, number: Option<u64>) -> Result<Report, StoreError>;

    /// Serves the version again that was served before. It is still open.
    ///
    /// # Errors
    /// When none was served before.
    fn roll_back(&self) -> Result<Report, StoreError>;
}

/// The version that is served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServedVersion {
    /// Its number.
    pub number: u64,
    /// The identifier of the job that built it, if it is a build.
    pub job: Option<String>,
    /// Number of its shards, if it is a build.
    pub shards: Option<u32>,
    /// The number of the version to which a rollback returns.
    pub previous: Option<u64>,
    /// Number of swaps and rollbacks so far.
    pub swaps: u64,
    /// Number of swaps that were refused so far.
    pub refusals: u64,
}
