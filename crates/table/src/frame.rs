//! The two ends of a table file: the header page in front and the trailer in the last 64 bytes.
//!
//! Opening reads the trailer, which leads to the directory. The header repeats the file's identity at the place where
//! people and tools look first. `docs/format.md` describes each byte.

use std::cmp::Ordering;

use alluvium_base::checksum::checksum64;
use alluvium_base::{Corruption, TableId};

use crate::error::{Error, Result};

/// First bytes of every file.
pub(crate) const MAGIC: [u8; 8] = *b"ALLUVIUM";
/// Last bytes of a complete table file.
pub(crate) const TRAILER_MAGIC: [u8; 8] = *b"MUIVULLA";
/// Readers refuse files with a different major version.
pub(crate) const FORMAT_MAJOR: u16 = 2;
/// Readers ignore what a higher minor version added.
pub(crate) const FORMAT_MINOR: u16 = 4;
/// The kind of file: a table. On disk: do not renumber.
pub(crate) const KIND_TABLE: u8 = 1;

/// Bytes of the header that have a meaning; zeros fill the page.
pub(crate) const FILE_HEADER_BYTES: usize = 40;
/// Bytes of the trailer.
pub const TRAILER_BYTES: usize = 64;

const HEADER_CHECKED_BYTES: usize = 32;
const TRAILER_CHECKED_BYTES: usize = 48;

const _: () = assert!(HEADER_CHECKED_BYTES + 8 == FILE_HEADER_BYTES);
const _: () = assert!(TRAILER_CHECKED_BYTES + 8 + TRAILER_MAGIC.len() == TRAILER_BYTES);

/// The identity of a table file: its number, never used twice in a database, and the seed of its checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Number of the file in its database.
    pub file_number: TableId,
    /// Seed of the checksums of pages, blocks and directory, so that bytes of another file fail the check here.
    pub seed: u64,
}

impl Identity {
    /// The identity of a new file. The seed is computed from the number: equal inputs give equal files.
    pub fn new(file_number: TableId) -> Self {
        Self { file_number, seed: checksum64(&file_number.0.to_le_bytes(), u64::from_le_bytes(MAGIC)) }
    }
}

/// Encodes the header.
pub(crate) fn encode_header(identity: Identity) -> [u8; FILE_HEADER_BYTES] {
    let mut bytes = [0; FILE_HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..10].copy_from_slice(&FORMAT_MAJOR.to_le_bytes());
    bytes[10..12].copy_from_slice(&FORMAT_MINOR.to_le_bytes());
    bytes[12] = KIND_TABLE;
    bytes[16..24].copy_from_slice(&identity.file_number.0.to_le_bytes());
    bytes[24..32].copy_from_slice(&identity.seed.to_le_bytes());
    let checksum = checksum64(&bytes[..HEADER_CHECKED_BYTES], u64::from_le_bytes(MAGIC));
    bytes[HEADER_CHECKED_BYTES..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Decodes the header at the front of `bytes`, which were read from the start of the file `name`.
pub(crate) fn decode_header(bytes: &[u8], name: &str) -> Result<Identity> {
    let Some(bytes) = bytes.get(..FILE_HEADER_BYTES) else {
        let found = format!("{} bytes", bytes.len());
        return Err(Corruption::new(name, 0, format!("a header of {FILE_HEADER_BYTES} bytes"), found).into());
    };
    if bytes[..8] != MAGIC {
        let found = format!("bytes {:02x?}", &bytes[..8]);
        return Err(Corruption::new(name, 0, "the magic ALLUVIUM of an Alluvium file", found).into());
    }
    check_version(u16_at(bytes, 8), name)?;
    let (checked, stored) = bytes.split_at(HEADER_CHECKED_BYTES);
    check_sum(checked, u64_at(stored, 0), u64::from_le_bytes(MAGIC), name, 0, "header")?;
    check_kind(bytes[12], name, 12)?;
    Ok(Identity { file_number: TableId(u64_at(bytes, 16)), seed: u64_at(bytes, 24) })
}

/// The trailer: the position of the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trailer {
    pub identity: Identity,
    /// Offset of the directory in the file.
    pub directory_offset: u64,
    /// Length of the directory in bytes.
    pub directory_len: u64,
    /// Checksum of the directory, seeded with the file's seed.
    pub directory_checksum: u64,
}

impl Trailer {
    /// Encodes the trailer.
    pub fn encode(&self) -> [u8; TRAILER_BYTES] {
        let mut bytes = [0; TRAILER_BYTES];
        bytes[..8].copy_from_slice(&self.directory_offset.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.directory_len.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.directory_checksum.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.identity.file_number.0.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.identity.seed.to_le_bytes());
        bytes[40..42].copy_from_slice(&FORMAT_MAJOR.to_le_bytes());
        bytes[42..44].copy_from_slice(&FORMAT_MINOR.to_le_bytes());
        bytes[44] = KIND_TABLE;
        let checksum = checksum64(&bytes[..TRAILER_CHECKED_BYTES], u64::from_le_bytes(TRAILER_MAGIC));
        bytes[48..56].copy_from_slice(&checksum.to_le_bytes());
        bytes[56..].copy_from_slice(&TRAILER_MAGIC);
        bytes
    }

    /// Decodes the trailer at the end of `bytes`, the last bytes of the file `name` of `file_len` bytes.
    ///
    /// Checks that the directory is within the file and ends before the trailer.
    pub fn decode(bytes: &[u8], name: &str, file_len: u64) -> Result<Self> {
        let Some(bytes) = bytes.last_chunk::<TRAILER_BYTES>() else {
            let found = format!("a file of {file_len} bytes");
            return Err(Corruption::new(name, 0, "a table file with header and trailer", found).into());
        };
        let offset = file_len.saturating_sub(TRAILER_BYTES as u64);
        if bytes[56..] != TRAILER_MAGIC {
            let found = format!("bytes {:02x?}: the file is cut off or no table", &bytes[56..]);
            return Err(
                Corruption::new(name, offset + 56, "the magic MUIVULLA of a complete table", found).into()
            );
        }
        check_version(u16_at(bytes, 40), name)?;
        let seed = u64::from_le_bytes(TRAILER_MAGIC);
        check_sum(&bytes[..TRAILER_CHECKED_BYTES], u64_at(bytes, 48), seed, name, offset, "trailer")?;
        check_kind(bytes[44], name, offset + 44)?;
        let trailer = Self {
            identity: Identity { file_number: TableId(u64_at(bytes, 24)), seed: u64_at(bytes, 32) },
            directory_offset: u64_at(bytes, 0),
            directory_len: u64_at(bytes, 8),
            directory_checksum: u64_at(bytes, 16),
        };
        match trailer.directory_offset.checked_add(trailer.directory_len) {
            Some(end) if end <= offset => Ok(trailer),
            _ => {
                let found =
                    format!("offset {} and length {}", trailer.directory_offset, trailer.directory_len);
                Err(Corruption::new(name, offset, "a directory before the trailer", found).into())
            }
        }
    }
}

fn check_version(major: u16, name: &str) -> Result<()> {
    let (file, found_major, supported_major) = (name.to_owned(), major, FORMAT_MAJOR);
    match major.cmp(&FORMAT_MAJOR) {
        Ordering::Less => Err(Error::OlderFormat { file, found_major, supported_major }),
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(Error::NewerFormat { file, found_major, supported_major }),
    }
}

fn check_kind(kind: u8, name: &str, offset: u64) -> Result<()> {
    if kind != KIND_TABLE {
        return Err(Corruption::new(name, offset, "a table file (kind 1)", format!("kind {kind}")).into());
    }
    Ok(())
}

/// Compares the checksum of `bytes`, the part `what` at `offset` of the file `name`, with the one `stored`.
pub(crate) fn check_sum(
    bytes: &[u8],
    stored: u64,
    seed: u64,
    name: &str,
    offset: u64,
    what: &str,
) -> std::result::Result<(), Corruption> {
    let computed = checksum64(bytes, seed);
    if computed != stored {
        return Err(Corruption::new(
            name,
            offset,
            format!("{what} checksum {computed:016x}"),
            format!("{stored:016x}"),
        ));
    }
    Ok(())
}

/// The little-endian number at `at`.
///
/// # Panics
/// When `bytes` ends before it: callers have checked the length of the whole record.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// As [`u64_at`].
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// As [`u64_at`].
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trailer() -> Trailer {
        Trailer {
            identity: Identity::new(TableId(7)),
            directory_offset: 8192,
            directory_len: 168,
            directory_checksum: 99,
        }
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        assert_eq!(
            decode_header(&encode_header(Identity::new(TableId(7))), "t").unwrap(),
            Identity::new(TableId(7))
        );
        assert_eq!(Trailer::decode(&trailer().encode(), "t", 12288).unwrap(), trailer());
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        for bit in 0..FILE_HEADER_BYTES * 8 {
            let mut bytes = encode_header(Identity::new(TableId(7)));
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(decode_header(&bytes, "t").is_err(), "header bit {bit}");
        }
        for bit in 0..TRAILER_BYTES * 8 {
            let mut bytes = trailer().encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Trailer::decode(&bytes, "t", 12288).is_err(), "trailer bit {bit}");
        }
    }

    #[test]
    fn other_major_versions_are_refused_and_a_newer_minor_one_read() {
        let reseal = |at: usize, value: u8| {
            let mut bytes = trailer().encode();
            bytes[at] = value;
            let checksum = checksum64(&bytes[..TRAILER_CHECKED_BYTES], u64::from_le_bytes(TRAILER_MAGIC));
            bytes[48..56].copy_from_slice(&checksum.to_le_bytes());
            bytes
        };
        assert!(matches!(
            Trailer::decode(&reseal(40, 3), "t", 12288),
            Err(Error::NewerFormat { found_major: 3, supported_major: 2, .. })
        ));
        assert!(matches!(
            Trailer::decode(&reseal(40, 1), "t", 12288),
            Err(Error::OlderFormat { found_major: 1, supported_major: 2, .. })
        ));
        assert_eq!(Trailer::decode(&reseal(42, 9), "t", 12288).unwrap(), trailer());
    }

    #[test]
    fn a_directory_outside_the_file_is_refused() {
        for (offset, len) in [(u64::MAX, 2), (8192, u64::MAX), (12288 - 64, 1), (12289, 0)] {
            let bytes = Trailer { directory_offset: offset, directory_len: len, ..trailer() }.encode();
            assert!(matches!(Trailer::decode(&bytes, "t", 12288), Err(Error::Corruption(_))));
        }
    }
}
