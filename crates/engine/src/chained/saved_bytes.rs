//! Files with directories as bytes, for tests and fuzzers.

use alluvium_base::checksum::checksum64;
use alluvium_base::{KeyHash, KeyHasher, KeyspaceId, SegmentId};
use alluvium_io::{OpenMode, SimulatedStorage, Storage};
use alluvium_model::{ChainedDirectory, ChainedSpec};

use super::address::Address;
use super::directory::{Directory, REGIONS};
use super::locked_region::Place;
use super::saved::{DirectoryFile, HEADER_BYTES, HEADER_CHECKED_BYTES, LEN_BYTES};
use crate::item::Item;
use crate::table::OutputOptions;

const FILE: DirectoryFile = DirectoryFile { number: 7, keyspace: KeyspaceId(3), from: SegmentId(4) };
const NAME: &str = "directory-00000007";

/// The plan of chains of a directory in which a key has one slot, or two.
pub(crate) fn spec_of(are_two: bool) -> ChainedSpec {
    let directory = if are_two { ChainedDirectory::default() } else { ChainedDirectory::Base };
    ChainedSpec { directory, ..ChainedSpec::of_length(3.0) }
}

/// The bytes of the file of a directory.
pub(crate) fn bytes_of(directory: &Directory) -> Vec<u8> {
    let storage = SimulatedStorage::new(1);
    let options = OutputOptions { write_bytes: 10_000, leave_bytes: 0 };
    let written = FILE.write(&storage, NAME, (directory, &directory.sample), options);
    let written = written.expect("simulated storage does not fail");
    let bytes = storage.contents().remove(NAME).expect("it was written");
    assert_eq!(bytes.len() as u64, written);
    bytes
}

/// The directory in the bytes of a file. `None` if they are not sound.
pub(crate) fn read_bytes(bytes: &[u8]) -> Option<Directory> {
    let contents = [(NAME.to_owned(), bytes.to_vec())].into_iter().collect();
    let storage = SimulatedStorage::from_contents(1, &contents);
    let file = storage.open(NAME, OpenMode::Read).expect("it is there");
    FILE.read(&*file, spec_of).ok().flatten()
}

/// The same bytes with the checksums of the header and of all parts corrected.
pub(crate) fn sealed(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let Some(header) = bytes.get_mut(..HEADER_BYTES) else { return bytes };
    let mut checksum = checksum64(&header[..HEADER_CHECKED_BYTES], 0);
    header[HEADER_CHECKED_BYTES..].copy_from_slice(&checksum.to_le_bytes());
    let mut at = HEADER_BYTES;
    for _ in 0..=REGIONS {
        let Some(len) = bytes.get(at..at + LEN_BYTES).and_then(|len| len.try_into().ok()) else {
            return bytes;
        };
        let end = at + LEN_BYTES + u32::from_le_bytes(len) as usize;
        let Some(part) = bytes.get_mut(at..end) else { return bytes };
        // A region begins with its kind, which seeds its own checksum.
        if let Some(region) = part.get_mut(LEN_BYTES..).filter(|region| region.len() >= 16) {
            let kind = u64::from_le_bytes(region[..8].try_into().expect("eight bytes"));
            let checked = region.len() - 8;
            if kind == u64::from_le_bytes(*b"CHAINRG1") {
                let sum = checksum64(&region[..checked], kind);
                region[checked..].copy_from_slice(&sum.to_le_bytes());
            }
        }
        checksum = checksum64(part, checksum);
        at = end;
    }
    if let Some(stored) = bytes.get_mut(at..at + 8) {
        stored.copy_from_slice(&checksum.to_le_bytes());
    }
    bytes
}

/// Sound files: of a directory in which a key has one slot, and of one with two.
pub(crate) fn samples() -> Vec<Vec<u8>> {
    [false, true].map(|are_two| bytes_of(&directory(are_two, 0..100))).to_vec()
}

/// A directory with records of these keys, four in each segment.
pub(crate) fn directory(are_two: bool, keys: std::ops::Range<u64>) -> Directory {
    let directory = Directory::new(KeyspaceId(3), spec_of(are_two), 4);
    for number in keys {
        put(&directory, number);
    }
    directory
}

/// Puts the record of a key on top of a chain; returns its hash.
pub(crate) fn put(directory: &Directory, number: u64) -> KeyHash {
    let key = number.to_le_bytes();
    let hash = KeyHasher::Xxh3 { seed: 5 }.hash(&key);
    let record = Address::new(SegmentId(1 + number / 4), 4096 + 4 * (number % 4));
    let mut region = directory.lock(hash);
    let decision = region.undecided(hash);
    if let Place::In(slot) = region.place(hash, None, Some(&decision)) {
        region.push(slot, hash, record);
    }
    drop(region);
    directory.sample.note(hash, &Item::value(&key, b"value"), 20);
    hash
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]
        #[test]
        fn what_is_read_has_the_heads_and_the_sample_of_what_was_written(are_two: bool, keys in 0..4000_u64) {
            let written = directory(are_two, 0..keys);
            written.lock_region(9).grow_to(8);
            let read = read_bytes(&bytes_of(&written)).unwrap();
            for number in 0..keys + 100 {
                let hash = KeyHasher::Xxh3 { seed: 5 }.hash(&number.to_le_bytes());
                prop_assert_eq!(read.heads(hash), written.heads(hash));
            }
            prop_assert_eq!(read.sample.live(0), written.sample.live(0));
            prop_assert_eq!(read.slots_max(), 8);
            prop_assert_eq!(read.memory_bytes(), written.memory_bytes());
            prop_assert_eq!(read.last_segment(), written.last_segment());
        }
    }

    #[test]
    fn the_example_of_the_documentation_is_right() {
        let header = &samples()[0][..HEADER_BYTES];
        let documentation = include_str!("../../../../docs/format.md");
        for (number, bytes) in header.chunks(16).enumerate() {
            let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let line = format!("{:08x}  {}  {}", 16 * number, hex[..8].join(" "), hex[8..].join(" "));
            assert!(documentation.contains(&line), "docs/format.md lacks {line}");
        }
    }

    #[test]
    fn every_flipped_or_missing_byte_is_noticed() {
        for bytes in samples() {
            let end = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1;
            for at in (0..end).step_by(7).chain(0..64) {
                let mut damaged = bytes.clone();
                damaged[at] ^= 0x10;
                // A higher minor version is read; other versions and kinds are not.
                assert!(read_bytes(&damaged).is_none(), "byte {at}");
            }
            for len in [0, 10, HEADER_BYTES, 5000, end - 1] {
                assert!(read_bytes(&bytes[..len]).is_none(), "cut to {len}");
            }
            assert_eq!(sealed(&bytes), bytes);
        }
    }
}
