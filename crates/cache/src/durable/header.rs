//! The first 4 KiB of the file.
//!
//! ```text
//!  words 0..16      what the file is: fixed when it is made, with a checksum in word 15
//!  words 128..      the session: [ state | boot of the system, 2 words | process | sessions so far | promise ]
//! ```
//!
//! Words are little-endian. The session says how the file was left. Without flushes a file that a process left open is
//! what that process stored as long as the system runs, and anything at all after the system has started again: boots
//! are distinguished by the number that Linux gives them.

use alluvium_base::KeyHasher;
use alluvium_base::checksum::checksum64;

use super::geometry::{Geometry, HEADER_BYTES};
use super::packing::NUMBER_MAX;

const MAGIC: u64 = u64::from_le_bytes(*b"ALVMCACH");
/// The format that this program writes and reads.
pub(crate) const FORMAT: u64 = 2;
/// The format of a file without blocks, which older programs read, too.
const FORMAT_PLAIN: u64 = 1;
/// Words that say what the file is.
const WORDS: usize = 16;
/// Byte of the session.
pub(crate) const SESSION_AT: usize = 1024;

const XXH3: u64 = 1;
const SIP_HASH: u64 = 2;

/// What the file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub geometry: Geometry,
    pub hasher: KeyHasher,
    /// Number of the codec: `packing::number_of`.
    pub codec: u64,
}

/// Bytes that are no header, with the offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoHeader {
    pub offset: u64,
    pub expected: String,
    pub found: String,
    pub kind: NoHeaderKind,
}

/// Why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoHeaderKind {
    /// Another kind of file.
    Foreign,
    /// One of a newer program.
    Newer,
    /// A damaged one.
    Damaged,
}

impl Header {
    /// The bytes of the header.
    pub fn encode(&self) -> Vec<u8> {
        let geometry = &self.geometry;
        let (kind, seeds) = match self.hasher {
            KeyHasher::SipHash13 { key0, key1 } => (SIP_HASH, [key0, key1]),
            KeyHasher::Xxh3 { seed } => (XXH3, [seed, 0]),
            // `Builder::survive` chooses one of the others.
            KeyHasher::SemiSorted { key0, key1, .. } => (SIP_HASH, [key0, key1]),
        };
        let words = [
            MAGIC,
            if self.codec == 0 { FORMAT_PLAIN } else { FORMAT },
            geometry.partitions as u64,
            geometry.zones as u64,
            geometry.zone_bytes as u64,
            geometry.buckets as u64,
            u64::from(geometry.version_bits),
            kind,
            seeds[0],
            seeds[1],
            geometry.file_bytes() as u64,
            self.codec,
            geometry.dictionaries as u64,
        ];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.resize((WORDS - 1) * 8, 0);
        bytes.extend_from_slice(&checksum64(&bytes, 0).to_le_bytes());
        bytes.resize(HEADER_BYTES, 0);
        bytes
    }

    /// The header that `bytes` are.
    ///
    /// # Errors
    /// Why they are none. Never panics, however long they are.
    pub fn decode(bytes: &[u8]) -> Result<Self, NoHeader> {
        let word = |number: usize| {
            let bytes = bytes.get(number * 8..).and_then(|rest| rest.first_chunk());
            bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        let refusal = |number: usize, kind, expected: String, found: String| NoHeader {
            offset: number as u64 * 8,
            expected,
            found,
            kind,
        };
        if word(0) != MAGIC {
            let found = if bytes.is_empty() { "no bytes".to_owned() } else { format!("{:#018x}", word(0)) };
            let expected = format!("{MAGIC:#018x}, the mark of a cache");
            return Err(refusal(0, NoHeaderKind::Foreign, expected, found));
        }
        if word(1) > FORMAT {
            let expected = format!("format {FORMAT} or older");
            return Err(refusal(1, NoHeaderKind::Newer, expected, format!("format {}", word(1))));
        }
        // Missing bytes count as zeros, also here.
        let mut checked = [0; (WORDS - 1) * 8];
        let len = bytes.len().min(checked.len());
        checked[..len].copy_from_slice(&bytes[..len]);
        let sum = checksum64(&checked, 0);
        if sum != word(WORDS - 1) {
            let expected = format!("checksum {sum:016x}");
            return Err(refusal(
                WORDS - 1,
                NoHeaderKind::Damaged,
                expected,
                format!("{:016x}", word(WORDS - 1)),
            ));
        }
        let number = |at: usize| usize::try_from(word(at)).unwrap_or(usize::MAX);
        let geometry = Geometry {
            partitions: number(2),
            zones: number(3),
            zone_bytes: number(4),
            buckets: number(5),
            dictionaries: number(12),
            version_bits: u32::try_from(word(6)).unwrap_or(u32::MAX),
        };
        let is_sound = geometry.is_sound() && geometry.file_bytes() as u64 == word(10);
        let codec = word(11);
        let expected = if codec == 0 { FORMAT_PLAIN } else { FORMAT };
        let is_sound = is_sound
            && word(1) == expected
            && codec <= NUMBER_MAX
            && (codec != 0 || geometry.dictionaries == 0);
        let hasher = match word(7) {
            XXH3 => Some(KeyHasher::Xxh3 { seed: word(8) }),
            SIP_HASH => Some(KeyHasher::SipHash13 { key0: word(8), key1: word(9) }),
            _ => None,
        };
        match hasher {
            Some(hasher) if is_sound => Ok(Self { geometry, hasher, codec }),
            _ => Err(refusal(
                2,
                NoHeaderKind::Damaged,
                "numbers that fit together".to_owned(),
                format!("{geometry:?}, hash {}, {} bytes", word(7), word(10)),
            )),
        }
    }
}

/// How a session left the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionState {
    /// It is open, or its process died.
    Open,
    /// It was closed, and everything was written.
    Closed,
    /// The device failed.
    Failed,
    /// Anything else.
    Unknown,
}

impl SessionState {
    /// As word 0 of the session.
    pub fn word(self) -> u64 {
        match self {
            Self::Open => 1,
            Self::Closed => 2,
            Self::Failed => 3,
            Self::Unknown => 0,
        }
    }

    /// The state of a word.
    pub fn of(word: u64) -> Self {
        [Self::Open, Self::Closed, Self::Failed]
            .into_iter()
            .find(|state| state.word() == word)
            .unwrap_or(Self::Unknown)
    }
}

/// The number of this boot of the system; zeros where it is unknown.
pub(crate) fn boot() -> [u64; 2] {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let number = u128::from_str_radix(&digits, 16).unwrap_or(0);
    [(number >> 64) as u64, number as u64]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zone::Codec;

    fn header() -> Header {
        let geometry = Geometry::within(64 << 20, 2, 128, Some(Codec::Lz4)).unwrap();
        Header { codec: 1, geometry, hasher: KeyHasher::SipHash13 { key0: 1, key1: 2 } }
    }

    #[test]
    fn headers_come_back_and_damage_is_noticed() {
        let bytes = header().encode();
        assert_eq!(Header::decode(&bytes), Ok(header()));
        for at in 0..WORDS * 8 {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x40;
            assert!(Header::decode(&bytes).is_err(), "byte {at}");
        }
        for len in 0..WORDS * 8 {
            assert!(Header::decode(&bytes[..len]).is_err(), "{len} bytes");
        }
    }

    #[test]
    fn numbers_that_do_not_fit_together_are_refused_also_with_a_checksum() {
        for (word, value) in [
            (2, 0),
            (2, u64::MAX),
            (3, 1),
            (4, 1 << 40),
            (5, u64::MAX),
            (6, 1),
            (7, 9),
            (11, 0),
            (11, 9),
            (12, 3),
        ] {
            let mut bytes = header().encode();
            bytes[word * 8..][..8].copy_from_slice(&u64::to_le_bytes(value));
            let sum = checksum64(&bytes[..(WORDS - 1) * 8], 0);
            bytes[(WORDS - 1) * 8..][..8].copy_from_slice(&sum.to_le_bytes());
            let refusal = Header::decode(&bytes).unwrap_err();
            assert_eq!(refusal.kind, NoHeaderKind::Damaged, "word {word}");
        }
    }
}
