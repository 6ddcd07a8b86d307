//! [`SegmentHeader`]: the first block of a log file.
//!
//! ```text
//! 0      magic            8 bytes  "ALVMLOG\0"
//! 8      major, minor     2 + 2 bytes
//! 12     zero             4 bytes
//! 16     segment id       8 bytes
//! 24     seed             8 bytes   of all record checksums
//! 32     opening          8 bytes   number of the opening for writing that made the segment
//! 40     predecessor      24 bytes  opening, id and end of the segment before it, if another opening made that;
//!                                   zeros otherwise
//! 64     checksum         8 bytes   XXH3-64 of bytes 0..64, seed 0
//! 72     zero up to 4096
//! ```
//!
//! A file without a segment has the magic "ALVMFREE", a checksum of it at 8, and zeros up to 4096.
//!
//! Versions 1 and 2 have their checksum at 32, over bytes 0..32, and zeros from 40 on.

use alluvium_base::SegmentId;

use alluvium_base::checksum::checksum64;

use super::segment::BLOCK;
use crate::error::{Error, Result};
use crate::log_position::LogPosition;

const MAGIC: [u8; 8] = *b"ALVMLOG\0";
/// What a released file begins with.
const MAGIC_RELEASED: [u8; 8] = *b"ALVMFREE";
/// Version 2 has marks, version 3 openings and changes without records, version 4 links. All older ones can be read.
const MAJOR: u16 = 4;
const MINOR: u16 = 0;
/// Bytes that the checksum covers.
const CHECKED_LEN: usize = 64;
/// The same in versions 1 and 2.
const CHECKED_LEN_BEFORE: usize = 32;

/// What identifies a segment, and its place in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub id: SegmentId,
    /// Unique to the segment, so leftovers in a recycled file are no records.
    pub seed: u64,
    /// Number of the opening for writing that made it; 0 in versions 1 and 2.
    pub opening: u64,
    /// The end of the segment before this one, if that belongs to an earlier opening and is known.
    pub follows: Option<LogPosition>,
}

impl SegmentHeader {
    /// The position of the record at `offset` of the segment.
    pub fn position(&self, offset: u64) -> LogPosition {
        LogPosition { opening: self.opening, segment: self.id, offset }
    }

    /// Whether the record at `position` belongs to this segment.
    pub fn is_of(&self, position: LogPosition) -> bool {
        (self.opening, self.id) == (position.opening, position.segment)
    }

    /// Whether the log continues in `next`, as far as their headers say.
    pub fn is_before(&self, next: &Self) -> bool {
        match next.follows {
            Some(end) => self.is_of(end),
            None => (self.opening, self.id.next()) == (next.opening, next.id),
        }
    }

    /// The header's block.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(BLOCK as usize);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&MAJOR.to_le_bytes());
        bytes.extend_from_slice(&MINOR.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        let follows = self.follows.unwrap_or_default();
        for field in [self.id.0, self.seed, self.opening, follows.opening, follows.segment.0, follows.offset]
        {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        let checksum = checksum64(&bytes, 0);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes.resize(BLOCK as usize, 0);
        bytes
    }

    /// The first block of a file whose segment is no part of the log any more.
    pub fn encode_released() -> Vec<u8> {
        let mut bytes = MAGIC_RELEASED.to_vec();
        bytes.extend_from_slice(&checksum64(&MAGIC_RELEASED, 0).to_le_bytes());
        bytes.resize(BLOCK as usize, 0);
        bytes
    }

    /// Whether the first block of a file says that its segment is no part of the log any more.
    pub fn is_released(block: &[u8]) -> bool {
        block.get(..16).is_some_and(|start| {
            start[..8] == MAGIC_RELEASED && start[8..] == checksum64(&MAGIC_RELEASED, 0).to_le_bytes()
        })
    }

    /// The header in a file's first block. `None` if there is none: then the file's first header never reached the
    /// device, and it contains no acknowledged record.
    ///
    /// # Errors
    /// [`Error::NewerFormat`] for a newer major version.
    pub fn parse(name: &str, block: &[u8]) -> Result<Option<Self>> {
        let field = |at: usize| u64::from_le_bytes(block[at..at + 8].try_into().expect("eight bytes"));
        let is_checked = |len: usize| block.len() >= len + 8 && field(len) == checksum64(&block[..len], 0);
        if block.len() < CHECKED_LEN_BEFORE + 8 || block[..8] != MAGIC {
            return Ok(None);
        }
        let major = u16::from_le_bytes([block[8], block[9]]);
        let is_before = major < 3;
        if !is_checked(if is_before { CHECKED_LEN_BEFORE } else { CHECKED_LEN }) {
            return Ok(None);
        }
        if major > MAJOR {
            return Err(Error::NewerFormat { file: name.to_owned(), found: major, supported: MAJOR });
        }
        let (id, seed) = (SegmentId(field(16)), field(24));
        if is_before {
            return Ok(Some(Self { id, seed, opening: 0, follows: None }));
        }
        let follows = LogPosition { opening: field(40), segment: SegmentId(field(48)), offset: field(56) };
        let follows = Some(follows).filter(|follows| *follows != LogPosition::BIRTH);
        Ok(Some(Self { id, seed, opening: field(32), follows }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_read_back_and_notice_damage() {
        let follows = Some(LogPosition { opening: 2, segment: SegmentId(6), offset: 5000 });
        let header = SegmentHeader { id: SegmentId(7), seed: 9, opening: 3, follows };
        let block = header.encode();
        assert_eq!(SegmentHeader::parse("log", &block).unwrap(), Some(header));
        for at in 0..CHECKED_LEN + 8 {
            let mut damaged = block.clone();
            damaged[at] ^= 1;
            assert_eq!(SegmentHeader::parse("log", &damaged).unwrap(), None, "byte {at}");
        }
        assert_eq!(SegmentHeader::parse("log", &block[..20]).unwrap(), None);
        let first = SegmentHeader { follows: None, ..header };
        assert_eq!(SegmentHeader::parse("log", &first.encode()).unwrap(), Some(first));
    }

    #[test]
    fn headers_of_older_versions_are_read() {
        let header = SegmentHeader { id: SegmentId(7), seed: 9, opening: 3, follows: None };
        let mut block = header.encode();
        block[8] = 2;
        let checksum = checksum64(&block[..CHECKED_LEN_BEFORE], 0);
        block[CHECKED_LEN_BEFORE..CHECKED_LEN_BEFORE + 8].copy_from_slice(&checksum.to_le_bytes());
        let before = SegmentHeader { opening: 0, ..header };
        assert_eq!(SegmentHeader::parse("log", &block).unwrap(), Some(before));
    }
}
