//! How a file is divided.
//!
//! ```text
//!  0       header (4 KiB)
//!  4 KiB   a line for each partition: [ number of its active zone | 0 … ]
//!          a line for each zone:      [ version | hot line | used | units of blocks | 0 … ]
//!  page    buckets, 128 bytes each: 7 descriptors in words 2 to 15
//!  page    dictionaries, 16 KiB each, where the codec has some (`dictionaries.rs`)
//!  page    zones
//! ```
//!
//! A partition has the same number of zones and buckets as each other one, next to each other.

use crate::zone::Codec;

use super::descriptor::{OFFSET_BITS, UNIT, UNITS_MAX, VERSION_BITS, ZONE_BITS};
use super::dictionaries::{SLOT_BYTES, SLOTS};
use super::medium::LINE_BYTES;

/// Bytes of the header.
pub(crate) const HEADER_BYTES: usize = PAGE;
/// Bytes of a bucket.
pub(crate) const BUCKET_BYTES: usize = 2 * LINE_BYTES;
/// Descriptors of a bucket.
pub(crate) const WAYS: usize = 7;
/// Descriptors of a bucket that are in use, on average, in a cache that is full. Then 6 % of the new items find their
/// bucket full and replace the least used item there (Erlang's formula for 4 of 7).
const WAYS_USED: usize = 4;
/// The same in a cache that compresses, where buckets are a larger part of the bytes: 12 % find their bucket full.
const WAYS_USED_COMPRESSED: usize = 5;
/// Items that a zone has for each that fits without compression, in tenths, with LZ4 and with dictionaries.
const GAIN_TENTHS: usize = 16;
const GAIN_TENTHS_DICTIONARY: usize = 21;
/// Minimum zones of a partition: one that is written, one that is free, one that is cleaned, and one besides.
const ZONES_MIN: usize = 4;
/// How many zones a partition has, unless they would be too large or too small.
const ZONES_USUAL: usize = 64;
const ZONE_BYTES_MAX: usize = UNIT << OFFSET_BITS;
const ZONE_BYTES_MIN: usize = 16 << 10;
/// Small under the model checker, which treats every word as an object.
const PAGE: usize = if cfg!(loom) { LINE_BYTES } else { 4096 };

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub partitions: usize,
    /// Zones of each partition.
    pub zones: usize,
    pub zone_bytes: usize,
    /// Buckets of each partition.
    pub buckets: usize,
    /// Slots for dictionaries.
    pub dictionaries: usize,
    /// Bits of a zone's version, 2 to [`VERSION_BITS`]; fewer than that in tests.
    pub version_bits: u32,
}

impl Geometry {
    /// The division of `bytes` bytes for items of `payload` bytes of key and value on average; `None` if they are too
    /// few. Counts the memory beside the file, eight bytes a bucket.
    pub fn within(bytes: usize, partitions: usize, payload: usize, codec: Option<Codec>) -> Option<Self> {
        let dictionaries = if codec.is_some_and(Codec::learns) { SLOTS } else { 0 };
        let around = HEADER_BYTES + 3 * PAGE + dictionaries * SLOT_BYTES;
        let share = bytes.checked_sub(around)? / partitions.max(1);
        let zone_bytes = ((share / ZONES_USUAL).max(1).next_power_of_two() / 2).max(1);
        let zone_bytes = zone_bytes.clamp(ZONE_BYTES_MIN, ZONE_BYTES_MAX);
        let item_bytes = payload.saturating_add(8).checked_next_multiple_of(UNIT)?;
        // Buckets of a zone, so that one with its buckets takes a fixed number of bytes.
        let zone_items = zone_bytes.div_ceil(item_bytes);
        let zone_buckets = match codec {
            None => zone_items.div_ceil(WAYS_USED),
            Some(codec) => {
                let gain = if codec.learns() { GAIN_TENTHS_DICTIONARY } else { GAIN_TENTHS };
                (zone_items * gain).div_ceil(10 * WAYS_USED_COMPRESSED)
            }
        };
        let each = zone_bytes + LINE_BYTES + zone_buckets * (BUCKET_BYTES + size_of::<u64>());
        let zones = share.checked_sub(LINE_BYTES)? / each;
        let is_possible = zones >= ZONES_MIN && zones.checked_mul(partitions)? <= 1 << ZONE_BITS;
        is_possible.then_some(Self {
            partitions,
            zones,
            zone_bytes,
            buckets: zones * zone_buckets,
            dictionaries,
            version_bits: VERSION_BITS,
        })
    }

    /// Whether it could have been made: no number that is computed from it overflows.
    pub fn is_sound(&self) -> bool {
        let is_within = |number: usize, min: usize, max: usize| (min..=max).contains(&number);
        is_within(self.partitions, 1, crate::limits::PARTITIONS_MAX)
            && is_within(self.zones, ZONES_MIN, 1 << ZONE_BITS)
            && self.zones * self.partitions <= 1 << ZONE_BITS
            && is_within(self.zone_bytes, 4 * UNIT, ZONE_BYTES_MAX)
            && self.zone_bytes.is_multiple_of(UNIT)
            && is_within(self.buckets, 1, 1 << 36)
            && (self.dictionaries == 0 || self.dictionaries == SLOTS)
            && is_within(self.version_bits as usize, 2, VERSION_BITS as usize)
    }

    /// Largest version.
    pub fn version_max(&self) -> u32 {
        (1 << self.version_bits) - 1
    }

    /// Units of a zone.
    pub fn zone_units(&self) -> usize {
        self.zone_bytes / UNIT
    }

    /// Units of the largest item: a quarter of a zone.
    pub fn item_units_max(&self) -> usize {
        (self.zone_units() / 4).min(UNITS_MAX)
    }

    /// Offset of the line of a partition.
    pub fn partition_at(&self, partition: usize) -> usize {
        HEADER_BYTES + partition * LINE_BYTES
    }

    /// Offset of the line of a zone of the file.
    #[inline(always)]
    pub fn zone_line_at(&self, zone: usize) -> usize {
        HEADER_BYTES + (self.partitions + zone) * LINE_BYTES
    }

    /// Offset behind the lines of partitions and zones.
    pub fn tables_end(&self) -> usize {
        self.zone_line_at(self.partitions * self.zones)
    }

    fn buckets_at(&self) -> usize {
        self.tables_end().next_multiple_of(PAGE)
    }

    /// Offset of a bucket of the file.
    #[inline(always)]
    pub fn bucket_at(&self, bucket: usize) -> usize {
        self.buckets_at() + bucket * BUCKET_BYTES
    }

    /// Offset of a slot for a dictionary.
    pub fn dictionary_at(&self, slot: usize) -> usize {
        self.bucket_at(self.partitions * self.buckets).next_multiple_of(PAGE) + slot * SLOT_BYTES
    }

    fn zones_at(&self) -> usize {
        self.dictionary_at(self.dictionaries).next_multiple_of(PAGE)
    }

    /// Offset of a unit of a zone of the file.
    #[inline(always)]
    pub fn unit_at(&self, zone: usize, offset: usize) -> usize {
        self.zones_at() + zone * self.zone_bytes + offset * UNIT
    }

    /// Bytes of the file.
    pub fn file_bytes(&self) -> usize {
        self.unit_at(self.partitions * self.zones, 0).next_multiple_of(PAGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODECS: [Option<Codec>; 3] = [None, Some(Codec::Lz4), Some(LEARNS)];
    #[cfg(feature = "zstd")]
    const LEARNS: Codec = Codec::Zstd;
    #[cfg(not(feature = "zstd"))]
    const LEARNS: Codec = Codec::None;

    #[test]
    fn files_and_what_is_beside_them_fit_in_the_limit() {
        for (shift, codec) in (21..40).flat_map(|shift| CODECS.map(|codec| (shift, codec))) {
            for partitions in [1, 2, 16] {
                for payload in [16, 128, 1000, 100_000] {
                    let bytes = 1 << shift;
                    let Some(geometry) = Geometry::within(bytes, partitions, payload, codec) else {
                        continue;
                    };
                    assert!(geometry.is_sound());
                    let beside = geometry.partitions * geometry.buckets * 8;
                    assert!(geometry.file_bytes() + beside <= bytes, "{geometry:?}");
                    assert!(geometry.file_bytes() + beside >= bytes / 10 * 8, "{geometry:?} of {bytes}");
                }
            }
        }
        assert!(
            Geometry::within(1 << 30, 1, 128, None).is_some_and(|geometry| geometry.zone_bytes == 8 << 20)
        );
        assert_eq!(Geometry::within(1 << 16, 1, 128, None), None);
        assert_eq!(Geometry::within(1 << 30, 1, usize::MAX, None), None);
    }
}
