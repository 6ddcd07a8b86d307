//! A blob file as bytes.
//!
//! ```text
//! file header, 40 bytes
//!   0   8  magic "ALLUVIUM"        8   2+2  major, minor       12  1  kind: 2 blob file      13  3  zero
//!  16   8  number of the file     24   8    file seed          32  8  checksum of bytes 0..32, seed "ALLUVIUM"
//! records, back to back; a record:
//!   0   8  checksum of bytes 8..24, seed: file seed XOR offset of the record
//!   8   4  keyspace    12  4  key length    16  4  value length    20  1  1 when the body is aligned    21  3  zero
//!  body, directly after the header; in an aligned record at the next multiple of 4096, and the next record likewise
//!   chunks of 64 KiB, the last one shorter: checksum 8 (seed: file seed XOR offset of the chunk), then content
//! ```
//!
//! The content of a body is the key, then the value. Headers alone lead from record to record, so the records of a file
//! can be listed without reading their values.

use alluvium_base::checksum::checksum64;
use alluvium_base::{BlobId, Corruption, KeyspaceId};

use crate::error::{Error, Result};
use crate::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};

const MAGIC: [u8; 8] = *b"ALLUVIUM";
const MAJOR: u16 = 1;
const MINOR: u16 = 0;
/// The kind of file: blobs. On disk: do not renumber.
const KIND_BLOB: u8 = 2;
const HEADER_CHECKED_BYTES: usize = 32;

/// Bytes of the file header; the first record follows.
pub(crate) const FILE_HEADER_BYTES: usize = 40;
/// Bytes of a record's header.
pub(crate) const RECORD_HEADER_BYTES: usize = 24;
/// Bytes of a chunk with its checksum: the unit of reading and checking.
pub(crate) const CHUNK_BYTES: usize = 64 << 10;
/// Bytes of content in a chunk.
pub(crate) const CHUNK_CONTENT_BYTES: usize = CHUNK_BYTES - CHECKSUM_BYTES;
/// Bytes of a chunk's checksum.
pub(crate) const CHECKSUM_BYTES: usize = 8;
/// The alignment of aligned bodies: that of direct I/O.
pub(crate) const BLOCK_BYTES: u64 = 4096;

/// The seed of a blob file's checksums. It is computed from the file's number, which a database uses once.
pub(crate) fn file_seed(id: BlobId) -> u64 {
    checksum64(&id.0.to_le_bytes(), u64::from_le_bytes(MAGIC) ^ u64::from(KIND_BLOB))
}

/// The header of blob file `id`.
pub(crate) fn encode_file_header(id: BlobId) -> [u8; FILE_HEADER_BYTES] {
    let mut bytes = [0; FILE_HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..10].copy_from_slice(&MAJOR.to_le_bytes());
    bytes[10..12].copy_from_slice(&MINOR.to_le_bytes());
    bytes[12] = KIND_BLOB;
    bytes[16..24].copy_from_slice(&id.0.to_le_bytes());
    bytes[24..32].copy_from_slice(&file_seed(id).to_le_bytes());
    let checksum = checksum64(&bytes[..HEADER_CHECKED_BYTES], u64::from_le_bytes(MAGIC));
    bytes[HEADER_CHECKED_BYTES..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Checks that `bytes`, read from the start of the file `name`, are the header of blob file `id`.
pub(crate) fn check_file_header(bytes: &[u8], id: BlobId, name: &str) -> Result<()> {
    let expected = encode_file_header(id);
    let damaged = |offset: u64, expected: &str, found: String| {
        Err(Corruption::new(name, offset, expected, found).into())
    };
    let Some(bytes) = bytes.get(..FILE_HEADER_BYTES) else {
        return damaged(0, "a header of 40 bytes", format!("{} bytes", bytes.len()));
    };
    if bytes[..8] != MAGIC {
        return damaged(0, "the magic ALLUVIUM of an Alluvium file", format!("bytes {:02x?}", &bytes[..8]));
    }
    if is_newer(bytes.try_into().expect("it has the length of a header")) {
        let found = u16::from_le_bytes([bytes[8], bytes[9]]);
        return Err(Error::NewerFormat { file: name.to_owned(), found, supported: MAJOR });
    }
    let stored = u64::from_le_bytes(bytes[HEADER_CHECKED_BYTES..].try_into().expect("eight bytes"));
    if stored != checksum64(&bytes[..HEADER_CHECKED_BYTES], u64::from_le_bytes(MAGIC)) {
        return damaged(32, "the header's checksum", format!("{stored:016x}"));
    }
    if bytes[12..HEADER_CHECKED_BYTES] != expected[12..HEADER_CHECKED_BYTES] {
        return damaged(
            12,
            "the kind, number and seed of this blob file",
            format!("bytes {:02x?}", &bytes[12..32]),
        );
    }
    Ok(())
}

/// Whether a file's header is sound and has a newer major version. Any other large number is damage.
pub(crate) fn is_newer(bytes: &[u8; FILE_HEADER_BYTES]) -> bool {
    let stored = u64::from_le_bytes(bytes[HEADER_CHECKED_BYTES..].try_into().expect("eight bytes"));
    u16::from_le_bytes([bytes[8], bytes[9]]) > MAJOR
        && stored == checksum64(&bytes[..HEADER_CHECKED_BYTES], u64::from_le_bytes(MAGIC))
}

/// The content of a record's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub keyspace: KeyspaceId,
    pub key_len: u32,
    pub value_len: u32,
    /// Whether the body begins and ends at multiples of [`BLOCK_BYTES`].
    pub is_aligned: bool,
}

impl RecordHeader {
    /// The header of a record at `offset` of a file with this seed.
    pub fn encode(&self, seed: u64, offset: u64) -> [u8; RECORD_HEADER_BYTES] {
        let mut bytes = [0; RECORD_HEADER_BYTES];
        bytes[8..12].copy_from_slice(&self.keyspace.0.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.key_len.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.value_len.to_le_bytes());
        bytes[20] = self.is_aligned.into();
        let checksum = checksum64(&bytes[CHECKSUM_BYTES..], seed ^ offset);
        bytes[..CHECKSUM_BYTES].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Decodes the header at the front of `bytes`, which are at `offset` of a file with this seed. Returns `None` if
    /// there is none.
    pub fn decode(bytes: &[u8], seed: u64, offset: u64) -> Option<Self> {
        let bytes = bytes.get(..RECORD_HEADER_BYTES)?;
        let stored = u64::from_le_bytes(bytes[..CHECKSUM_BYTES].try_into().ok()?);
        if stored != checksum64(&bytes[CHECKSUM_BYTES..], seed ^ offset) {
            return None;
        }
        let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let header = Self {
            keyspace: KeyspaceId(number(8)),
            key_len: number(12),
            value_len: number(16),
            is_aligned: bytes[20] == 1,
        };
        let is_sound = bytes[20] <= 1
            && bytes[21..] == [0; 3]
            && header.key_len as usize <= KEY_BYTES_MAX
            && header.value_len as usize <= VALUE_BYTES_MAX
            && header.content_len() > 0;
        is_sound.then_some(header)
    }

    pub fn content_len(&self) -> u64 {
        u64::from(self.key_len) + u64::from(self.value_len)
    }

    /// Offset of the body of a record at `offset`.
    pub fn body(&self, offset: u64) -> u64 {
        self.align(offset + RECORD_HEADER_BYTES as u64)
    }

    /// Offset of the record after one at `offset`.
    pub fn end(&self, offset: u64) -> u64 {
        self.align(self.body(offset) + body_bytes(self.content_len()))
    }

    fn align(&self, offset: u64) -> u64 {
        if self.is_aligned { offset.next_multiple_of(BLOCK_BYTES) } else { offset }
    }
}

/// Bytes of the chunks of `content_len` bytes of content.
pub(crate) fn body_bytes(content_len: u64) -> u64 {
    content_len + CHECKSUM_BYTES as u64 * content_len.div_ceil(CHUNK_CONTENT_BYTES as u64)
}

/// The content of a chunk at `offset` of a file with this seed, or `None` if its checksum is wrong.
#[inline]
pub(crate) fn chunk_content(chunk: &[u8], seed: u64, offset: u64) -> Option<&[u8]> {
    let (stored, content) = chunk.split_first_chunk::<CHECKSUM_BYTES>()?;
    (u64::from_le_bytes(*stored) == checksum64(content, seed ^ offset)).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn headers_read_back_and_notice_any_change(
            keyspace: u32,
            key_len in 0u32..=65_536,
            value_len in 1u32..=67_108_864,
            is_aligned: bool,
            offset in 0u64..1 << 40,
            bit in 0usize..RECORD_HEADER_BYTES * 8,
        ) {
            let header = RecordHeader { keyspace: KeyspaceId(keyspace), key_len, value_len, is_aligned };
            let mut bytes = header.encode(5, offset);
            prop_assert_eq!(RecordHeader::decode(&bytes, 5, offset), Some(header));
            prop_assert_eq!(RecordHeader::decode(&bytes, 5, offset + 1), None);
            prop_assert!(header.end(offset) >= header.body(offset) + header.content_len());
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(RecordHeader::decode(&bytes, 5, offset), None);
        }
    }

    #[test]
    fn a_file_header_is_that_of_its_number_alone() {
        let bytes = encode_file_header(BlobId(7));
        check_file_header(&bytes, BlobId(7), "blob").unwrap();
        assert!(check_file_header(&bytes, BlobId(8), "blob").is_err());
        for at in 0..bytes.len() {
            let mut damaged = bytes;
            damaged[at] ^= 2;
            assert!(check_file_header(&damaged, BlobId(7), "blob").is_err(), "byte {at}");
            assert!(check_file_header(&bytes[..at], BlobId(7), "blob").is_err());
        }
        assert!(body_bytes(0) == 0 && body_bytes(1) == 9);
        assert_eq!(body_bytes(CHUNK_CONTENT_BYTES as u64 + 1), CHUNK_BYTES as u64 + 9);
    }
}
