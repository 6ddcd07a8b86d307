//! The settings of a cache that survives.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher as _};
use std::path::PathBuf;

use alluvium_base::KeyHasher;

use crate::cache::Builder;
use crate::hasher::Hasher;
use crate::limits::{MEMORY_BYTES_MAX, Numbers};

use super::cache::SurvivingCache;
use super::error::SurviveError;
use super::file_medium::Survive;
use super::geometry::Geometry;
use super::header::Header;
use super::open::Wanted;
use super::stored_item::OVERHEAD_BYTES;

/// Settings of a [`SurvivingCache`]. Made by [`Builder::survive`].
#[derive(Clone, Debug)]
pub struct SurvivingBuilder {
    settings: Builder,
    path: PathBuf,
    survive: Survive,
    reset: bool,
    flushes_each_set: bool,
}

impl SurvivingBuilder {
    pub(crate) fn new(settings: Builder, path: PathBuf, survive: Survive) -> Self {
        Self { settings, path, survive, reset: false, flushes_each_set: false }
    }

    /// Whether a file that cannot be opened, because it is damaged, another kind of file or of another shape, is
    /// replaced by an empty one. Default: no. A file that another process has open is never replaced.
    pub fn reset(mut self, reset: bool) -> Self {
        self.reset = reset;
        self
    }

    /// Whether each set flushes the item and then its descriptor, as a cache must that has no checksums: only for
    /// comparisons.
    #[doc(hidden)]
    pub fn flushes_each_set(mut self, flushes: bool) -> Self {
        self.flushes_each_set = flushes;
        self
    }

    /// Opens the cache, or makes one if there is no file.
    ///
    /// # Errors
    /// [`SurviveError`]; a file that exists is as it was.
    pub fn open(self) -> Result<SurvivingCache, SurviveError> {
        let common = self.settings.common.clone().started();
        let geometry = self.geometry()?;
        let seed = || RandomState::new().build_hasher().finish();
        let hasher = match common.hasher {
            Hasher::Given(hasher @ KeyHasher::SipHash13 { .. }) => hasher,
            _ => KeyHasher::Xxh3 { seed: seed() },
        };
        let header = Header { geometry, hasher };
        let wanted = Wanted { path: &self.path, survive: self.survive, header, reset: self.reset };
        SurvivingCache::over(wanted.open()?, &common, &self.path, self.flushes_each_set)
    }

    fn geometry(&self) -> Result<Geometry, SurviveError> {
        let (partitions, payload) = (self.settings.partitions, self.settings.payload_bytes_mean);
        let numbers = Numbers {
            memory_limit: self.settings.memory_limit,
            owners: 1,
            partitions,
            payload,
            payload_max: super::descriptor::UNITS_MAX * super::descriptor::UNIT - OVERHEAD_BYTES,
            partition_bytes_max: MEMORY_BYTES_MAX,
        };
        numbers
            .share_out(|share| {
                let bytes = share.checked_mul(partitions)?;
                let geometry = Geometry::within(bytes, partitions, payload)?;
                let item_bytes = geometry.item_units_max() * super::descriptor::UNIT;
                (payload + OVERHEAD_BYTES <= item_bytes).then_some(geometry)
            })
            .map_err(SurviveError::Settings)
    }
}
