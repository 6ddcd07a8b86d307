//! The bytes around a stored table or filter: a header that says what it is, a payload, and one checksum.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | magic: the kind of structure |
//! | 8 | 4 | format version, 1 |
//! | 12 | 4 | bits of a tag |
//! | 16 | 4 | buckets, at least 1 |
//! | 20 | 4 | entries |
//! | 24 | n | payload, its length given by kind, tag bits and buckets |
//! | 24 + n | 8 | `checksum64` of all bytes before it, seed 0 |
//!
//! All numbers are little endian.

use std::ops::RangeInclusive;

use alluvium_base::Corruption;
use alluvium_base::checksum::checksum64;

use super::placement::{BUCKETS_MAX, WAYS};

const VERSION: u32 = 1;
/// Bytes behind the payload.
pub(crate) const CHECKSUM_LEN: usize = 8;

/// Bytes before the payload.
pub(crate) const HEADER_LEN: usize = 24;

/// What the header says, apart from the magic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub tag_bits: u32,
    pub buckets: u32,
    pub entries: u32,
}

/// A kind of stored structure.
pub(crate) struct Kind {
    /// Its name in errors.
    pub name: &'static str,
    pub magic: [u8; 8],
    /// The valid widths of its tags.
    pub tag_bits: RangeInclusive<u32>,
    /// Bytes of payload; called only for headers with valid tag bits and buckets.
    pub payload_len: fn(&Header) -> usize,
}

impl Kind {
    /// An error about the byte at `offset` of such a structure.
    pub fn corruption(
        &self,
        offset: usize,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Corruption {
        Corruption::new(self.name, offset as u64, expected, found)
    }

    /// The beginning of a stored structure, to which the caller appends the payload before [`seal`](Self::seal).
    pub fn begin(&self, header: Header) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_LEN + (self.payload_len)(&header) + CHECKSUM_LEN);
        bytes.extend_from_slice(&self.magic);
        for field in [VERSION, header.tag_bits, header.buckets, header.entries] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    /// Appends the checksum to what [`begin`](Self::begin) began.
    pub fn seal(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        let checksum = checksum64(&bytes, 0);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Length of the stored structure at the beginning of `bytes`, from its header alone, which is not verified yet.
    ///
    /// # Errors
    /// [`Corruption`] when `bytes` are too few for a header or for the length that it gives.
    pub fn len_in(&self, bytes: &[u8]) -> Result<usize, Corruption> {
        let too_short = |len: usize| {
            self.corruption(0, format!("at least {len} bytes"), format!("{} bytes", bytes.len()))
        };
        if bytes.len() < HEADER_LEN {
            return Err(too_short(HEADER_LEN + CHECKSUM_LEN));
        }
        let header = Header {
            tag_bits: field(bytes, 12).clamp(*self.tag_bits.start(), *self.tag_bits.end()),
            buckets: field(bytes, 16).clamp(1, BUCKETS_MAX),
            entries: 0,
        };
        let len = HEADER_LEN + (self.payload_len)(&header) + CHECKSUM_LEN;
        if bytes.len() < len { Err(too_short(len)) } else { Ok(len) }
    }

    /// Returns header and payload of `bytes` after checking magic, version, length and checksum.
    ///
    /// The length is compared before anything is allocated, so a false bucket count costs nothing.
    pub fn open<'a>(&self, bytes: &'a [u8]) -> Result<(Header, &'a [u8]), Corruption> {
        if bytes.len() < HEADER_LEN + CHECKSUM_LEN {
            let expected = format!("at least {} bytes", HEADER_LEN + CHECKSUM_LEN);
            return Err(self.corruption(0, expected, format!("{} bytes", bytes.len())));
        }
        if bytes[..8] != self.magic {
            return Err(self.corruption(
                0,
                format!("magic {:02x?}", self.magic),
                format!("{:02x?}", &bytes[..8]),
            ));
        }
        let version = field(bytes, 8);
        if version != VERSION {
            return Err(self.corruption(8, format!("format version {VERSION}"), version.to_string()));
        }
        let header =
            Header { tag_bits: field(bytes, 12), buckets: field(bytes, 16), entries: field(bytes, 20) };
        if !self.tag_bits.contains(&header.tag_bits) {
            let expected = format!("tags of {} to {} bits", self.tag_bits.start(), self.tag_bits.end());
            return Err(self.corruption(12, expected, format!("{} bits", header.tag_bits)));
        }
        if !(1..=BUCKETS_MAX).contains(&header.buckets) {
            return Err(self.corruption(
                16,
                format!("1 to {BUCKETS_MAX} buckets"),
                header.buckets.to_string(),
            ));
        }
        let len = HEADER_LEN + (self.payload_len)(&header) + CHECKSUM_LEN;
        if bytes.len() != len {
            return Err(self.corruption(16, format!("{len} bytes in all"), format!("{} bytes", bytes.len())));
        }
        let (body, stored) = bytes.split_at(len - CHECKSUM_LEN);
        let checksum = checksum64(body, 0);
        if stored != checksum.to_le_bytes() {
            let found = format!("{:016x}", word(stored));
            return Err(self.corruption(len - CHECKSUM_LEN, format!("checksum {checksum:016x}"), found));
        }
        if u64::from(header.entries) > u64::from(header.buckets) * u64::from(WAYS) {
            return Err(self.corruption(
                20,
                format!("at most {WAYS} entries in each of {} buckets", header.buckets),
                format!("{} entries", header.entries),
            ));
        }
        Ok((header, &body[HEADER_LEN..]))
    }

    /// Compares the header's count of entries with what the payload holds.
    pub fn check_entries(&self, header: &Header, found: u64) -> Result<(), Corruption> {
        if found == u64::from(header.entries) {
            return Ok(());
        }
        Err(self.corruption(20, format!("{found} entries, as the payload holds"), header.entries.to_string()))
    }
}

/// The four bytes at `offset` as a number.
fn field(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|index| bytes[offset + index]))
}

/// The first eight bytes as a number.
///
/// # Panics
/// When there are fewer.
#[inline(always)]
pub(crate) fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|index| bytes[index]))
}
