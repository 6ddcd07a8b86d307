//! [`Witness`]: shows that a key was not written since it was read.

use alluvium_base::{KeyHash, SegmentId};

use crate::error::Result;
use crate::level::Version;
use crate::log::LogStore;

/// The newest item of a key as far as the log says: its segment and its offset there, if the active segment has one;
/// and the version's epoch, which shows changes that are not in the log. While both are unchanged, nobody has changed
/// the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Witness {
    newest: Newest,
    epoch: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Newest {
    segment: SegmentId,
    offset: Option<u32>,
}

impl Newest {
    fn of(store: &LogStore, hash: KeyHash, key: &[u8]) -> Result<Self> {
        let offset = store.find(store.shard(hash), hash, key)?.map(|(_, offset, _)| offset);
        Ok(Self { segment: store.segment.id, offset })
    }
}

impl Witness {
    /// What the log says about a key now. A value derived from what is read afterwards in the same version may be
    /// written as long as the witness holds, provided that no barrier held back updates of the key in between
    /// ([`super::update_barriers`]).
    pub fn of(version: &Version, hash: KeyHash, key: &[u8]) -> Result<Self> {
        Ok(Self { newest: Newest::of(version.active(), hash, key)?, epoch: version.epoch })
    }

    /// Whether it was taken in the epoch of `version`.
    pub fn is_of_epoch(&self, version: &Version) -> bool {
        self.epoch == version.epoch
    }

    /// Whether the key has not been written since. The caller holds the lock of the key's shard in the active store,
    /// which is open, and loaded the version after it took the lock.
    ///
    /// A witness survives a freeze, but not the conversion of its segment: `false` may also mean that this cannot be
    /// determined any more.
    pub fn holds(&self, version: &Version, hash: KeyHash, key: &[u8]) -> Result<bool> {
        if version.epoch != self.epoch {
            return Ok(false);
        }
        for store in &version.log_stores {
            let found = Newest::of(store, hash, key)?;
            if found.segment == self.newest.segment {
                return Ok(found == self.newest);
            }
            if found.offset.is_some() {
                return Ok(false);
            }
        }
        Ok(false)
    }
}
