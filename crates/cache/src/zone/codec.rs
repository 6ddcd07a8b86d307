//! How blocks are compressed.

use std::fmt;

use lz4_flex::block::{CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size};

/// How the compressed zone of a cache compresses blocks of items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Codec {
    /// LZ4. The default.
    #[default]
    Lz4,
    /// Not at all. Items still take fewer bytes than in the hot zone, since a block has one index entry.
    None,
}

impl fmt::Display for Codec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lz4 => write!(out, "lz4"),
            Self::None => write!(out, "none"),
        }
    }
}

/// The number of a codec in a block's head.
pub(super) const PLAIN: u32 = 0;
const LZ4: u32 = 1;

/// Blocks in a row that compression makes hardly smaller, after which it is tried only once in as many blocks.
const FUTILE_BLOCKS: u32 = 64;

/// Compresses blocks, as the only writer.
pub(super) struct Encoder {
    codec: Codec,
    table: CompressTable,
    /// Blocks in a row that did not get smaller by a twentieth.
    futile: u32,
    /// Bytes of blocks before and after compression, so far.
    pub bytes: [u64; 2],
}

impl fmt::Debug for Encoder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Encoder").field("codec", &self.codec).finish_non_exhaustive()
    }
}

impl Encoder {
    pub fn new(codec: Codec) -> Self {
        Self { codec, table: CompressTable::small(), futile: 0, bytes: [0; 2] }
    }

    /// Appends `raw` to `out`, compressed if that makes it smaller, and returns the number of the codec.
    pub fn encode(&mut self, raw: &[u8], out: &mut Vec<u8>) -> u32 {
        let before = out.len();
        let codec = self.try_codec(raw, out).unwrap_or_else(|| {
            out.truncate(before);
            out.extend_from_slice(raw);
            PLAIN
        });
        self.bytes[0] += raw.len() as u64;
        self.bytes[1] += (out.len() - before) as u64;
        codec
    }

    fn try_codec(&mut self, raw: &[u8], out: &mut Vec<u8>) -> Option<u32> {
        let is_futile = self.futile > FUTILE_BLOCKS && !self.futile.is_multiple_of(FUTILE_BLOCKS);
        if raw.is_empty() || self.codec == Codec::None || is_futile {
            self.futile = self.futile.wrapping_add(1);
            return None;
        }
        let before = out.len();
        out.resize(before + get_maximum_output_size(raw.len()), 0);
        let len = compress_into_with_table(raw, &mut out[before..], &mut self.table).ok()?;
        out.truncate(before + len);
        self.futile = if len * 20 > raw.len() * 19 { self.futile.wrapping_add(1) } else { 0 };
        (len < raw.len()).then_some(LZ4)
    }
}

/// Replaces the contents of `raw` by the bytes that were encoded as `bytes`; `None` if they were not, or if they are
/// more than `bytes_max`.
pub(super) fn decode(codec: u32, bytes: &[u8], bytes_max: usize, raw: &mut Vec<u8>) -> Option<()> {
    raw.clear();
    match codec {
        PLAIN => raw.extend_from_slice(bytes),
        LZ4 => {
            raw.resize(bytes_max, 0);
            let len = decompress_into(bytes, raw).ok()?;
            raw.truncate(len);
        }
        _ => return None,
    }
    Some(())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_come_back(
            raw in prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..3000),
                proptest::collection::vec(0_u8..3, 0..3000),
            ],
        ) {
            for codec in [Codec::Lz4, Codec::None] {
                let mut encoder = Encoder::new(codec);
                let (mut bytes, mut back) = (vec![9], Vec::new());
                let number = encoder.encode(&raw, &mut bytes);
                prop_assert!(bytes.len() <= raw.len() + 1);
                prop_assert_eq!(decode(number, &bytes[1..], 3000, &mut back), Some(()));
                prop_assert_eq!(&back, &raw);
            }
        }

        #[test]
        fn any_bytes_decode_or_are_refused(codec in 0_u32..4, bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut raw = Vec::new();
            if decode(codec, &bytes, 1000, &mut raw).is_some() {
                prop_assert!(raw.len() <= 1000.max(bytes.len()));
            }
        }
    }

    #[test]
    fn what_does_not_compress_is_not_tried_again_and_again() {
        let mut encoder = Encoder::new(Codec::Lz4);
        let mut noise = vec![0; 1000];
        let mut state = 1_u64;
        let mut out = Vec::new();
        for _ in 0..10 * FUTILE_BLOCKS {
            noise.fill_with(|| {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                (state >> 56) as u8
            });
            out.clear();
            assert_eq!(encoder.encode(&noise, &mut out), PLAIN);
        }
        assert!(encoder.futile > FUTILE_BLOCKS);
        // Once in a while it is tried, so blocks that compress again are noticed.
        let tried = (0..2 * FUTILE_BLOCKS).position(|_| {
            out.clear();
            encoder.encode(&[0; 1000], &mut out) == LZ4
        });
        assert!(tried.is_some() && encoder.futile == 0);
    }
}
