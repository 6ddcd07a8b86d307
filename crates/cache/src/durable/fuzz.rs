//! Entry points for `cargo xtask fuzz`: hostile files.

use std::sync::Arc;

use alluvium_base::KeyHasher;
use alluvium_io::SystemClock;

use crate::item::Metadata;
use crate::memory::UNIT_BYTES;
use crate::sync::AtomicU64;

use crate::zone::Codec;

use super::block::{ITEMS_MAX, Packer, RAW_BYTES_MAX, Unpacked};
use super::core::{Core, Start, format};
use super::descriptor::{UNIT, VERSION_BITS};
use super::geometry::{BUCKET_BYTES, Geometry, HEADER_BYTES, WAYS};
use super::header::Header;
use super::medium::Medium;
use super::open::check_tables;
use super::packing::Packing;
use super::part::{Part, Sought, State};
use super::shared::Shared;
use super::simulated::SimulatedMedium;
use super::stored_item::{Head, StoredItem};

const GEOMETRY: Geometry = Geometry {
    partitions: 1,
    zones: 4,
    zone_bytes: 512,
    buckets: 2,
    dictionaries: 0,
    version_bits: VERSION_BITS,
};
const KEYS: u64 = 12;

fn key(number: u64) -> [u8; 3] {
    [b'k', b'0' + number as u8, b'.']
}

/// Reads a header.
pub fn header(bytes: &[u8]) {
    if let Ok(header) = Header::decode(bytes) {
        assert!(header.geometry.file_bytes() > HEADER_BYTES);
        assert_eq!(Header::decode(&header.encode()), Ok(header));
    }
}

/// A right header.
pub fn header_sample() -> Vec<u8> {
    Header { geometry: GEOMETRY, hasher: KeyHasher::Xxh3 { seed: 3 }, codec: 1 }.encode()
}

/// Reads an item.
pub fn item(bytes: &[u8]) {
    if let Some(item) = StoredItem::parse(bytes) {
        let head = Head::new(item.key.len(), item.value.len(), item.metadata);
        assert!(head.is_some_and(|head| head.units() * 16 <= bytes.len() + 16));
    }
}

/// Reads a block.
pub fn block(bytes: &[u8]) {
    let (packing, mut unpacked) = (Packing::new(Codec::Lz4, 0), Unpacked::default());
    let mut whole = bytes.to_vec();
    whole.resize(bytes.len().next_multiple_of(UNIT), 0);
    if unpacked.unpack(&whole, &packing).is_some() {
        let items: Vec<usize> = unpacked.items().map(|item| item.key.len() + item.value.len()).collect();
        assert!(items.len() <= ITEMS_MAX && items.iter().sum::<usize>() <= RAW_BYTES_MAX);
    }
}

/// A right block.
pub fn block_sample() -> Vec<u8> {
    let (mut raw, mut bytes) = (Vec::new(), Vec::new());
    for number in 0..4 {
        let (key, metadata) = (key(number), Metadata { expires_at_ms: 0, flags: number as u32 });
        crate::zone::Record { key: &key, value: &[7; 40], metadata }.write(&mut raw);
    }
    Packer::default().pack(Codec::Lz4, None, 4, &raw, &mut bytes);
    bytes
}

/// Opens a cache with these lines of partitions and zones, buckets and zones, and uses it.
pub fn content(bytes: &[u8]) {
    for (are_checksums_right, start, codec) in [
        (false, Start::AfterCrash, None),
        (true, Start::Resumed, None),
        (true, Start::AfterCrash, Some(Codec::Lz4)),
        (true, Start::Resumed, Some(Codec::Lz4)),
    ] {
        let mut file = vec![0; GEOMETRY.file_bytes()];
        let mut rest = bytes;
        for (at, len) in parts() {
            let (part, others) = rest.split_at(rest.len().min(len));
            file[at..at + part.len()].copy_from_slice(part);
            rest = others;
        }
        if check_tables(&file[HEADER_BYTES..GEOMETRY.tables_end()], &GEOMETRY).is_err() {
            return;
        }
        let words = file.chunks_exact(UNIT_BYTES).map(|bytes| bytes.try_into().map_or(0, u64::from_le_bytes));
        let core = open(SimulatedMedium::of(words.collect(), None), start, codec);
        if are_checksums_right {
            core.parts.iter().for_each(correct_checksums);
        }
        use_all(&core.parts[0]);
    }
}

/// The content of a cache with some items.
pub fn content_sample() -> Vec<u8> {
    let medium = SimulatedMedium::new(GEOMETRY.file_bytes(), None);
    format(&medium, &GEOMETRY);
    let core = open(medium, Start::New, Some(Codec::Lz4));
    use_all(&core.parts[0]);
    let mut bytes = Vec::new();
    for (at, len) in parts() {
        let mut part = vec![0; len];
        core.shared.medium.copy_out(at, &mut part);
        bytes.extend_from_slice(&part);
    }
    bytes
}

/// Where the input goes: the file without what is between its parts.
fn parts() -> [(usize, usize); 3] {
    [
        (HEADER_BYTES, GEOMETRY.tables_end() - HEADER_BYTES),
        (GEOMETRY.bucket_at(0), GEOMETRY.buckets * BUCKET_BYTES),
        (GEOMETRY.unit_at(0, 0), GEOMETRY.zones * GEOMETRY.zone_bytes),
    ]
}

fn open(medium: SimulatedMedium, start: Start, codec: Option<Codec>) -> Core<SimulatedMedium> {
    let shared = Shared {
        medium,
        geometry: GEOMETRY,
        hasher: KeyHasher::Xxh3 { seed: 3 },
        clock: Arc::new(SystemClock::default()),
        latest_ms: AtomicU64::new(0),
        packing: codec.map(|codec| Packing::new(codec, 0)),
        write_cache: None,
        number: u64::MAX,
    };
    Core::open(shared, start).unwrap_or_else(|error| panic!("no memory: {error}"))
}

/// Makes what the descriptors refer to pass.
fn correct_checksums(part: &Part<SimulatedMedium>) {
    for bucket in 0..GEOMETRY.buckets {
        for way in 0..WAYS {
            let descriptor = part.shared.descriptor(bucket, way);
            if part.state(descriptor) == State::Current {
                let mut bytes = vec![0; Shared::<SimulatedMedium>::item_bytes(descriptor)];
                part.shared.copy_item(descriptor, &mut bytes);
                let right = descriptor.with_checksum(part.checksum(&bytes, descriptor));
                part.shared.set_descriptor(bucket, way, right);
            }
        }
    }
}

fn use_all(part: &Part<SimulatedMedium>) {
    fn sought<'k>(part: &Part<SimulatedMedium>, key: &'k [u8]) -> Sought<'k> {
        part.sought(part.shared.hash(key), key)
    }
    for bucket in 0..GEOMETRY.buckets {
        part.visit(bucket, &mut |key, _, _| assert!(key.len() <= GEOMETRY.zone_bytes));
    }
    for round in 0..4 {
        for number in 0..KEYS {
            let key = key(number);
            part.get_with(sought(part, &key), |value, _| assert!(value.len() <= GEOMETRY.zone_bytes));
            if (number + round) % 5 == 0 {
                part.remove(sought(part, &key));
                assert!(!part.contains(sought(part, &key)), "removed, and there is no other of the key");
            }
            let metadata = Metadata { expires_at_ms: 0, flags: (number % 2) as u32 };
            let set = part.set(sought(part, &key), &[number as u8; 20], metadata);
            assert!(set.is_ok(), "small enough");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_right() {
        header(&header_sample());
        item(&[0x80; 32]);
        block(&block_sample());
        let sample = content_sample();
        content(&sample);
        // One byte after the other is damaged.
        for at in 0..sample.len() {
            let mut damaged = sample.clone();
            damaged[at] ^= 1 << (at % 8);
            content(&damaged);
        }
    }
}
