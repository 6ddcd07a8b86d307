//! A chunk: items of a block that were compressed together.
//!
//! ```text
//!  chunk     [ items - 1:5 | coding:3 ][ bytes:16 ] items, coded
//! ```
//!
//! LZ4 finds in a block what its items have in common, so that a block has one chunk. A dictionary has it already, so
//! that chunks of a few items are nearly as small, and a get decompresses only its item's chunk.

use super::block::ITEMS_MAX;

/// Bytes before a chunk's items.
pub(super) const HEAD_BYTES: usize = 3;

const ITEMS_BITS: u32 = 5;

const _: () = assert!(ITEMS_MAX == 1 << ITEMS_BITS);

/// How a chunk is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Plain,
    Lz4,
    /// zstd, with the dictionary in this place.
    Zstd(usize),
}

/// Places for dictionaries.
pub(super) const DICTIONARIES: usize = 4;

impl Coding {
    fn to_bits(self) -> u8 {
        match self {
            Self::Plain => 0,
            Self::Lz4 => 1,
            Self::Zstd(place) => (DICTIONARIES + place) as u8,
        }
    }

    fn of_bits(bits: u8) -> Option<Self> {
        Some(match bits {
            0 => Self::Plain,
            1 => Self::Lz4,
            bits => Self::Zstd(usize::from(bits).checked_sub(DICTIONARIES)?),
        })
    }

    /// The dictionary that it needs, one bit.
    pub fn dictionaries(self) -> u32 {
        match self {
            Self::Plain | Self::Lz4 => 0,
            Self::Zstd(place) => 1 << place,
        }
    }
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk<'a> {
    pub items: usize,
    pub coding: Coding,
    pub bytes: &'a [u8],
}

impl<'a> Chunk<'a> {
    /// Takes the first chunk off `bytes`; `None` if they do not start with one.
    pub fn read(bytes: &mut &'a [u8]) -> Option<Self> {
        let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
        let len = usize::from(u16::from_le_bytes([head[1], head[2]]));
        let (coded, rest) = rest.split_at_checked(len)?;
        *bytes = rest;
        let items = usize::from(head[0] & ((1 << ITEMS_BITS) - 1)) + 1;
        Some(Self { items, coding: Coding::of_bits(head[0] >> ITEMS_BITS)?, bytes: coded })
    }

    /// Writes the head of a chunk whose items were written behind the place for it, at `start`.
    pub fn write_head(items: usize, coding: Coding, out: &mut [u8], start: usize) {
        let len = (out.len() - start - HEAD_BYTES) as u16;
        out[start] = (items - 1) as u8 | coding.to_bits() << ITEMS_BITS;
        out[start + 1..start + HEAD_BYTES].copy_from_slice(&len.to_le_bytes());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn chunks_come_back(
            items in 1..=ITEMS_MAX,
            bits in 0_u8..8,
            coded in proptest::collection::vec(any::<u8>(), 0..3000),
        ) {
            let Some(coding) = Coding::of_bits(bits) else { return Ok(()) };
            let mut out = vec![7];
            out.extend_from_slice(&[0; HEAD_BYTES]);
            out.extend_from_slice(&coded);
            Chunk::write_head(items, coding, &mut out, 1);
            out.push(9);
            // The byte behind it is not its own.
            let len = out.len() - 1;
            let mut rest = &out[1..len];
            prop_assert_eq!(Chunk::read(&mut rest), Some(Chunk { items, coding, bytes: &coded }));
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn any_bytes_are_chunks_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut rest = &bytes[..];
            while let Some(chunk) = Chunk::read(&mut rest) {
                prop_assert!(chunk.items <= ITEMS_MAX && chunk.bytes.len() <= bytes.len());
            }
        }
    }
}
