//! What all partitions of a cache that survives share.

use std::sync::Arc;
use std::time::Duration;

use alluvium_base::{KeyHash, KeyHasher};
use alluvium_io::Clock;

use crate::item::{ItemView, Metadata};
use crate::sync::{AtomicU64, Ordering};

use super::descriptor::{Descriptor, UNIT};
use super::geometry::{Geometry, WAYS};
use super::medium::{Medium, word_at};
use super::packing::Packing;
use super::write_cache::Shape;

/// Word of a descriptor in its bucket: before it is a header, which is not used.
const FIRST_WORD: usize = 2;
/// Words of the line of a zone.
const VERSION: usize = 0;
const HOT_LINE: usize = 1;
const USED: usize = 2;
const PACKED: usize = 3;

/// See the module.
#[derive(Debug)]
pub(crate) struct Shared<M> {
    pub medium: M,
    pub geometry: Geometry,
    pub hasher: KeyHasher,
    pub clock: Arc<dyn Clock>,
    /// The latest time that was seen: an item that was seen to be expired stays absent while the process lives.
    pub latest_ms: AtomicU64,
    /// How items that were not used are compressed, if they are.
    pub packing: Option<Packing>,
    /// The write cache that each partition has.
    pub write_cache: Option<Shape>,
    /// Distinguishes the cache from all others of the process.
    pub number: u64,
}

impl<M: Medium> Shared<M> {
    /// Milliseconds since 1970, not going back.
    pub fn now_ms(&self) -> u64 {
        let now_ms = u64::try_from(self.clock.unix().as_millis()).unwrap_or(u64::MAX);
        let latest_ms = self.latest_ms.load(Ordering::Relaxed);
        if now_ms > latest_ms {
            self.latest_ms.store(now_ms, Ordering::Relaxed);
        }
        now_ms.max(latest_ms)
    }

    #[inline(always)]
    pub fn is_expired(&self, metadata: Metadata) -> bool {
        metadata.expires_at_ms != 0 && metadata.expires_at_ms <= self.now_ms()
    }

    /// An item as a callback sees it.
    #[inline(always)]
    pub fn view<'a>(&self, value: &'a [u8], metadata: Metadata) -> ItemView<'a> {
        let (flags, expires_at_ms) = (metadata.flags, metadata.expires_at_ms);
        if expires_at_ms == 0 {
            return ItemView { value, flags, time_to_live: None, expires_at: None };
        }
        ItemView {
            value,
            flags,
            time_to_live: Some(Duration::from_millis(expires_at_ms.saturating_sub(self.now_ms()))),
            expires_at: Some(Duration::from_millis(expires_at_ms)),
        }
    }

    #[inline(always)]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        self.hasher.hash(key)
    }

    /// Begins to make the line of byte `at` survive, and waits until everything does that was flushed.
    pub fn flush_now(&self, at: usize) {
        self.medium.flush(at);
        self.medium.fence();
    }

    /// The descriptor in `way` of a bucket of the file.
    #[inline(always)]
    pub fn descriptor(&self, bucket: usize, way: usize) -> Descriptor {
        let at = self.descriptor_at(bucket, way);
        Descriptor { words: [self.medium.load(at), self.medium.load(word_at(at, 1))] }
    }

    /// The second word of the descriptor, with the tag.
    #[inline(always)]
    pub fn second_word(&self, bucket: usize, way: usize) -> u64 {
        self.medium.load(word_at(self.descriptor_at(bucket, way), 1))
    }

    /// Writer, within a change: replaces a descriptor.
    #[inline(always)]
    pub fn set_descriptor(&self, bucket: usize, way: usize, descriptor: Descriptor) {
        let at = self.descriptor_at(bucket, way);
        self.medium.store(at, descriptor.words[0]);
        self.medium.store(word_at(at, 1), descriptor.words[1]);
    }

    /// Offset of a descriptor, which is within one line.
    #[inline(always)]
    pub fn descriptor_at(&self, bucket: usize, way: usize) -> usize {
        debug_assert!(way < WAYS);
        word_at(self.geometry.bucket_at(bucket), FIRST_WORD + 2 * way)
    }

    /// The version of a zone.
    #[inline(always)]
    pub fn version(&self, zone: usize) -> u32 {
        self.zone_word(zone, VERSION) as u32
    }

    pub fn set_version(&self, zone: usize, version: u32) {
        self.set_zone_word(zone, VERSION, version.into());
    }

    /// The number of units at the beginning of a zone that had hot items when it was cleaned.
    pub fn hot_line(&self, zone: usize) -> usize {
        (self.zone_word(zone, HOT_LINE) as usize).min(self.geometry.zone_units())
    }

    pub fn set_hot_line(&self, zone: usize, units: usize) {
        self.set_zone_word(zone, HOT_LINE, units as u64);
    }

    /// The units of a zone that were written, if the system kept all stores.
    pub fn used(&self, zone: usize) -> usize {
        (self.zone_word(zone, USED) as usize).min(self.geometry.zone_units())
    }

    pub fn set_used(&self, zone: usize, units: usize) {
        self.set_zone_word(zone, USED, units as u64);
    }

    /// The units of a zone that blocks take, as far as is known.
    pub fn packed(&self, zone: usize) -> usize {
        (self.zone_word(zone, PACKED) as usize).min(self.geometry.zone_units())
    }

    pub fn set_packed(&self, zone: usize, units: usize) {
        self.set_zone_word(zone, PACKED, units as u64);
    }

    #[inline(always)]
    fn zone_word(&self, zone: usize, word: usize) -> u64 {
        self.medium.load(word_at(self.geometry.zone_line_at(zone), word))
    }

    fn set_zone_word(&self, zone: usize, word: usize, value: u64) {
        self.medium.store(word_at(self.geometry.zone_line_at(zone), word), value);
    }

    /// Makes the line of a zone survive.
    pub fn flush_zone_line(&self, zone: usize) {
        self.flush_now(self.geometry.zone_line_at(zone));
    }

    /// The active zone of a partition, counted in the partition.
    pub fn active(&self, partition: usize) -> u64 {
        self.medium.load(self.geometry.partition_at(partition))
    }

    pub fn set_active(&self, partition: usize, zone: usize) {
        let at = self.geometry.partition_at(partition);
        self.medium.store(at, zone as u64);
        self.flush_now(at);
    }

    /// Copies an item out: whole units.
    #[inline(always)]
    pub fn copy_item(&self, descriptor: Descriptor, out: &mut [u8]) {
        let place = descriptor.place();
        self.medium.copy_out(self.geometry.unit_at(place.zone, place.offset), out);
    }

    /// Bytes of the item of a descriptor.
    #[inline(always)]
    pub fn item_bytes(descriptor: Descriptor) -> usize {
        descriptor.units() * UNIT
    }
}
