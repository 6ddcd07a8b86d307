//! [`PinnedVersion`]: a version that a snapshot uses.

use std::sync::{Arc, Weak};

use alluvium_io::sync::{ArcSwap, Mutex};

use crate::level::Version;

/// The version that a snapshot reads. It changes in one way only: a frozen log segment is replaced by the run to which
/// it was converted, so that snapshots do not keep log in memory for long.
#[derive(Debug)]
pub(crate) struct PinnedVersion(ArcSwap<Version>);

impl PinnedVersion {
    pub fn new(version: Version) -> Self {
        Self(ArcSwap::from_pointee(version))
    }

    pub fn load(&self) -> Arc<Version> {
        self.0.load_full()
    }

    /// Replaces the version by one with the same items. The keyspace's publish lock is held, so there is one caller at
    /// a time.
    pub fn replace(&self, change: impl FnOnce(&Version) -> Version) {
        let next = change(&self.0.load());
        self.0.store(Arc::new(next));
    }
}

/// The versions of a keyspace that snapshots use.
#[derive(Debug, Default)]
pub(crate) struct PinnedVersions(Mutex<Vec<Weak<PinnedVersion>>>);

impl PinnedVersions {
    /// Registers a version for [`PinnedVersions::in_use`].
    pub fn register(&self, version: Version) -> Arc<PinnedVersion> {
        let pinned = Arc::new(PinnedVersion::new(version));
        let mut versions = self.0.lock().expect("no panic while held");
        versions.retain(|version| version.strong_count() > 0);
        versions.push(Arc::downgrade(&pinned));
        pinned
    }

    /// The versions of all snapshots.
    pub fn in_use(&self) -> Vec<Arc<PinnedVersion>> {
        self.0.lock().expect("no panic while held").iter().filter_map(Weak::upgrade).collect()
    }
}
