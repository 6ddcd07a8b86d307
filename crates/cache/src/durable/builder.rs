//! The settings of a cache that survives.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher as _};
use std::path::PathBuf;

use alluvium_base::KeyHasher;

use crate::cache::Builder;
use crate::hasher::Hasher;
use crate::limits::{MEMORY_BYTES_MAX, Numbers};

use crate::zone::Codec;

use super::cache::SurvivingCache;
use super::descriptor::{UNIT, UNITS_MAX};
use super::dictionaries::Dictionaries;
use super::error::SurviveError;
use super::file_medium::Survive;
use super::geometry::Geometry;
use super::header::Header;
use super::open::Wanted;
use super::packing::{Packing, number_of};
use super::stored_item::OVERHEAD_BYTES;
use super::write_cache::Shape;

/// Settings of a [`SurvivingCache`]. Made by [`Builder::survive`].
#[derive(Clone, Debug)]
pub struct SurvivingBuilder {
    settings: Builder,
    path: PathBuf,
    survive: Survive,
    reset: bool,
    write_cache_bytes: usize,
    codec: Option<Codec>,
    flushes_each_set: bool,
}

impl SurvivingBuilder {
    pub(crate) fn new(settings: Builder, path: PathBuf, survive: Survive) -> Self {
        Self {
            settings,
            path,
            survive,
            reset: false,
            write_cache_bytes: 0,
            codec: None,
            flushes_each_set: false,
        }
    }

    /// Whether a file that cannot be opened, because it is damaged, another kind of file or of another shape, is
    /// replaced by an empty one. Default: no. A file that another process has open is never replaced.
    pub fn reset(mut self, reset: bool) -> Self {
        self.reset = reset;
        self
    }

    /// Bytes of memory for items that are set often, out of the limit: a write cache (Wu's thesis, §5.2.4). Default: 0.
    ///
    /// Only with [`Survive::Pmem`]; others have no use for it. A key that was set three times of late keeps its item in
    /// memory, where further sets flush nothing, until the keys that are set have changed. If the process ends without
    /// closing the cache, such items are absent afterwards.
    pub fn write_cache_bytes(mut self, bytes: usize) -> Self {
        self.write_cache_bytes = bytes;
        self
    }

    /// Compresses items that were not used for a while, in blocks of some 2 KiB, so that the file holds about twice as
    /// many. Default: no. A file has the codec that it was made with.
    ///
    /// Blocks take up to three fifths of a zone. A get that finds its item there decompresses the block, which takes
    /// some microseconds; the second one makes it an item that is not compressed. Items of more than 2 KiB stay out,
    /// of more than 1 KiB once there is a dictionary ([`Codec::Zstd`]). Dictionaries are in the file.
    pub fn compressed(mut self, codec: Codec) -> Self {
        self.codec = Some(codec);
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
        let (geometry, write_cache) = self.shapes()?;
        let seed = || RandomState::new().build_hasher().finish();
        let hasher = match common.hasher {
            Hasher::Given(hasher @ KeyHasher::SipHash13 { .. }) => hasher,
            _ => KeyHasher::Xxh3 { seed: seed() },
        };
        let header = Header { geometry, hasher, codec: number_of(self.codec) };
        let packing = self.codec.map(|codec| Packing::new(codec, self.settings.memory_limit));
        let wanted = Wanted { path: &self.path, survive: self.survive, header, reset: self.reset };
        SurvivingCache::over(wanted.open()?, &common, &self.path, write_cache, packing, self.flushes_each_set)
    }

    /// The shapes of the file and of the write cache of each partition, if there is one.
    fn shapes(&self) -> Result<(Geometry, Option<Shape>), SurviveError> {
        let (partitions, payload) = (self.settings.partitions, self.settings.payload_bytes_mean);
        let numbers = Numbers {
            memory_limit: self.settings.memory_limit,
            owners: 1,
            partitions,
            payload,
            payload_max: UNITS_MAX * UNIT - OVERHEAD_BYTES,
            partition_bytes_max: MEMORY_BYTES_MAX,
        };
        let write_cache_bytes = match self.survive {
            Survive::Pmem if !self.flushes_each_set => self.write_cache_bytes / partitions.max(1),
            _ => 0,
        };
        let learns = self.codec.is_some_and(Codec::learns);
        let dictionaries = if learns { Dictionaries::bytes_max(self.settings.memory_limit) } else { 0 };
        numbers
            .share_out(|share| {
                let write_cache = Shape::within(write_cache_bytes, payload);
                let share = share
                    .checked_sub(write_cache.map_or(0, Shape::bytes) + dictionaries / partitions.max(1))?;
                let geometry =
                    Geometry::within(share.checked_mul(partitions)?, partitions, payload, self.codec)?;
                let item_bytes = geometry.item_units_max() * UNIT;
                let write_cache = write_cache.map(|shape| shape.with_items_of(geometry.item_units_max()));
                (payload + OVERHEAD_BYTES <= item_bytes).then_some((geometry, write_cache))
            })
            .map_err(SurviveError::Settings)
    }
}
