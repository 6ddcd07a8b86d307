//! How chunks are compressed.

use std::fmt;
use std::sync::Arc;

use lz4_flex::block::{CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size};

use super::block::Record;
use super::chunk::{Chunk, Coding, DICTIONARIES, HEAD_BYTES};
use super::dictionary::{Dictionaries, Numbered};
use super::learned::Coder;

/// How the compressed zone of a cache compresses blocks of items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Codec {
    /// LZ4. The default.
    #[default]
    Lz4,
    /// zstd at its fastest level, with a dictionary that the cache learns from the items that come to the zone, and
    /// learns again when items have changed; LZ4 until there is one. Items of the same form, such as JSON, take two
    /// thirds of the bytes that they take with LZ4, and a get decompresses two or three of them instead of a block.
    ///
    /// A thread of its own learns a dictionary of up to 16 KiB, which takes some 10 MiB for a tenth of a second: at
    /// first while there is room, since the zone is nearly empty, later beyond the limit. So that this memory goes back
    /// to the system, glibc's allocator is told to keep no large blocks that are freed, in the whole process. Each
    /// thread that reads keeps a context of some 100 KiB, each partition one of 90 KiB.
    #[cfg(feature = "zstd")]
    Zstd,
    /// Not at all. Items still take fewer bytes than in the hot zone, since a block has one index entry.
    None,
}

impl Codec {
    /// Whether it has dictionaries.
    pub(crate) fn learns(self) -> bool {
        #[cfg(feature = "zstd")]
        return self == Self::Zstd;
        #[cfg(not(feature = "zstd"))]
        false
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lz4 => write!(out, "lz4"),
            #[cfg(feature = "zstd")]
            Self::Zstd => write!(out, "zstd"),
            Self::None => write!(out, "none"),
        }
    }
}

/// The codec of a cache's zones, and the dictionaries that they share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Compression {
    pub codec: Codec,
    /// If the codec has some.
    pub dictionaries: Option<Arc<Dictionaries>>,
}

impl Compression {
    /// Compression for a cache of `memory` bytes.
    pub fn new(codec: Codec, memory: usize) -> Self {
        if codec.learns() {
            // Learning a dictionary takes some megabytes, which the allocator would keep.
            alluvium_io::give_back_freed_memory();
        }
        Self { codec, dictionaries: codec.learns().then(|| Arc::new(Dictionaries::new(memory))) }
    }
}

/// Chunks in a row that compression makes hardly smaller, after which it is tried only once in as many chunks.
const FUTILE_CHUNKS: u32 = 64;

/// Bytes of items after which their compression is noted.
const NOTED_BYTES: u64 = 64 << 10;

/// Bytes of items of a chunk that has a dictionary.
pub(super) const DICTIONARY_CHUNK_BYTES: usize = 512;

/// Compresses chunks, as the only writer.
pub(super) struct Encoder {
    compression: Compression,
    table: CompressTable,
    coder: Coder,
    /// Place and number of the dictionary that is used.
    place: Option<usize>,
    held: Numbered,
    /// Chunks in a row that did not get smaller by a twentieth.
    futile: u32,
    /// Bytes of chunks before and after compression, so far, and how many of them were noted.
    pub bytes: [u64; 2],
    noted: [u64; 2],
}

impl fmt::Debug for Encoder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Encoder").field("compression", &self.compression).finish_non_exhaustive()
    }
}

impl Encoder {
    pub fn new(compression: Compression) -> Self {
        Self {
            compression,
            table: CompressTable::small(),
            coder: Coder::default(),
            place: None,
            held: Numbered::default(),
            futile: 0,
            bytes: [0; 2],
            noted: [0; 2],
        }
    }

    /// Maximum bytes of the items of a chunk of more than one item.
    pub fn chunk_bytes(&mut self) -> usize {
        self.look();
        if self.place.is_some() && !self.is_futile() { DICTIONARY_CHUNK_BYTES } else { usize::MAX }
    }

    fn is_futile(&self) -> bool {
        self.compression.codec == Codec::None
            || self.futile > FUTILE_CHUNKS && !self.futile.is_multiple_of(FUTILE_CHUNKS)
    }

    /// Uses the current dictionary, and notes how it compresses.
    fn look(&mut self) {
        let Some(dictionaries) = &self.compression.dictionaries else { return };
        if dictionaries.is_replaced(self.place) {
            dictionaries.switch(&mut self.place, &mut self.held);
            self.noted = self.bytes;
        }
        if self.bytes[0] - self.noted[0] > NOTED_BYTES {
            dictionaries.note([0, 1].map(|side| self.bytes[side] - self.noted[side]));
            self.noted = self.bytes;
        }
    }

    /// Offers an item that came from the hot zone to learn from.
    pub fn sample(&self, item: Record<'_>) {
        if let Some(dictionaries) = self.compression.dictionaries.as_ref().filter(|all| all.wants_samples()) {
            let mut bytes = Vec::new();
            item.write(&mut bytes);
            dictionaries.sample(&bytes);
        }
    }

    /// Appends a chunk of `items` items to `out`, compressed if that makes it smaller, and returns how.
    pub fn encode(&mut self, items: usize, raw: &[u8], out: &mut Vec<u8>) -> Coding {
        let start = out.len();
        out.extend_from_slice(&[0; HEAD_BYTES]);
        let payload = out.len();
        let coding = self.try_codec(raw, out).filter(|_| out.len() - payload < raw.len());
        let coding = coding.unwrap_or_else(|| {
            out.truncate(payload);
            out.extend_from_slice(raw);
            Coding::Plain
        });
        let len = out.len() - payload;
        self.futile = if len * 20 > raw.len() * 19 { self.futile.wrapping_add(1) } else { 0 };
        self.bytes[0] += raw.len() as u64;
        self.bytes[1] += len as u64;
        Chunk::write_head(items, coding, out, start);
        coding
    }

    fn try_codec(&mut self, raw: &[u8], out: &mut Vec<u8>) -> Option<Coding> {
        if self.is_futile() {
            return None;
        }
        if let (Some(place), (_, Some(learned))) = (self.place, &self.held) {
            self.coder.encode(learned, raw, out)?;
            return Some(Coding::Zstd(place));
        }
        let before = out.len();
        out.resize(before + get_maximum_output_size(raw.len()), 0);
        let len = compress_into_with_table(raw, &mut out[before..], &mut self.table).ok()?;
        out.truncate(before + len);
        Some(Coding::Lz4)
    }
}

/// Decompresses chunks, with the dictionaries of the block that was copied last.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    coder: Coder,
    held: [Numbered; DICTIONARIES],
}

impl Decoder {
    /// Takes the dictionaries in these places, one bit each.
    pub fn take(&mut self, compression: &Compression, dictionaries: u32) {
        let Some(all) = &compression.dictionaries else { return };
        for (place, held) in self.held.iter_mut().enumerate() {
            if dictionaries >> place & 1 == 1 {
                all.take(place, held);
            }
        }
    }

    /// Writes a chunk's items to `out` from `start` on and returns where they end; `None` if the chunk is not sound, or
    /// they are more than `bytes_max`.
    pub fn decode(
        &mut self,
        chunk: Chunk<'_>,
        bytes_max: usize,
        out: &mut Vec<u8>,
        start: usize,
    ) -> Option<usize> {
        let Chunk { coding, bytes, .. } = chunk;
        match coding {
            Coding::Plain => {
                out.truncate(start);
                out.extend_from_slice(bytes);
                Some(out.len())
            }
            Coding::Lz4 => {
                // What is there is overwritten.
                if out.len() < start + bytes_max {
                    out.resize(start + bytes_max, 0);
                }
                let len = decompress_into(bytes, &mut out[start..start + bytes_max]).ok()?;
                Some(start + len)
            }
            Coding::Zstd(place) => {
                let learned = self.held[place].1.as_deref()?;
                self.coder.decode(learned, bytes, bytes_max, out, start)
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(compression: &Compression, bytes: &[u8], bytes_max: usize) -> Option<Vec<u8>> {
        let mut decoder = Decoder::default();
        decoder.take(compression, 15);
        let mut rest = bytes;
        let chunk = Chunk::read(&mut rest)?;
        let mut raw = vec![1; 2];
        let end = decoder.decode(chunk, bytes_max, &mut raw, 2)?;
        Some(raw[2..end].to_vec())
    }

    /// A codec of each kind, with a dictionary if it has one.
    fn all() -> Vec<Compression> {
        vec![
            Compression::new(Codec::Lz4, 0),
            Compression::new(Codec::None, 0),
            #[cfg(feature = "zstd")]
            tests_with_zstd::learned().clone(),
        ]
    }

    proptest! {
        #[test]
        fn bytes_come_back(
            raw in prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..3000),
                proptest::collection::vec(0_u8..3, 0..3000),
                "(\"name\":\"[a-z]{3,8}\",){1,20}".prop_map(String::into_bytes),
            ],
        ) {
            for compression in all() {
                let mut encoder = Encoder::new(compression.clone());
                let mut bytes = vec![9];
                encoder.chunk_bytes();
                encoder.encode(3, &raw, &mut bytes);
                prop_assert!(bytes.len() <= raw.len() + 1 + HEAD_BYTES);
                prop_assert_eq!(decoded(&compression, &bytes[1..], 3000), Some(raw.clone()));
            }
        }

        #[test]
        fn any_bytes_decode_or_are_refused(mut bytes in proptest::collection::vec(any::<u8>(), 3..300)) {
            let len = bytes.len() - HEAD_BYTES;
            bytes[1..3].copy_from_slice(&(len as u16).to_le_bytes());
            for compression in all() {
                if let Some(raw) = decoded(&compression, &bytes, 1000) {
                    prop_assert!(raw.len() <= 1000.max(bytes.len()));
                }
            }
        }
    }

    #[test]
    fn what_does_not_compress_is_not_tried_again_and_again() {
        let mut encoder = Encoder::new(Compression::new(Codec::Lz4, 0));
        let mut noise = vec![0; 1000];
        let mut state = 1_u64;
        let mut out = Vec::new();
        for _ in 0..10 * FUTILE_CHUNKS {
            noise.fill_with(|| {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                (state >> 56) as u8
            });
            out.clear();
            assert_eq!(encoder.encode(1, &noise, &mut out), Coding::Plain);
        }
        assert!(encoder.futile > FUTILE_CHUNKS);
        // Once in a while it is tried, so chunks that compress again are noticed.
        let tried = (0..2 * FUTILE_CHUNKS).position(|_| {
            out.clear();
            encoder.encode(1, &[0; 1000], &mut out) == Coding::Lz4
        });
        assert!(tried.is_some() && encoder.futile == 0);
    }

    #[cfg(feature = "zstd")]
    mod tests_with_zstd {
        use super::*;
        use crate::item::Metadata;

        fn value(kind: &str, number: u64) -> String {
            let name = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8;
            match kind {
                "json" => {
                    format!(r#"{{"identifier":{number},"name":"{name:x}","is_open":true,"city":"Bergen"}}"#)
                }
                _ => format!(
                    "<entry number='{number}'><title>{name:x}</title><state/><place>Oslo</place></entry>"
                ),
            }
        }

        fn offer(compression: &Compression, kind: &str) {
            let encoder = Encoder::new(compression.clone());
            let dictionaries = compression.dictionaries.as_ref().unwrap();
            let learned = dictionaries.figures().1;
            for number in 0..100_000 {
                let value = value(kind, number);
                encoder.sample(Record {
                    key: b"key",
                    value: value.as_bytes(),
                    metadata: Metadata::default(),
                });
            }
            // The thread that learns ends by itself.
            while dictionaries.figures().1 == learned {
                std::thread::yield_now();
            }
        }

        pub fn learned() -> &'static Compression {
            static LEARNED: std::sync::OnceLock<Compression> = std::sync::OnceLock::new();
            LEARNED.get_or_init(|| {
                let compression = Compression::new(Codec::Zstd, 0);
                offer(&compression, "json");
                compression
            })
        }

        /// Encodes values of a kind in chunks of some 400 bytes, and returns the chunks.
        fn encode(encoder: &mut Encoder, kind: &str, chunks: u64) -> Vec<Vec<u8>> {
            let encode = |number: u64| {
                let raw: String = (0..6).map(|item| value(kind, number * 6 + item)).collect();
                let mut out = Vec::new();
                encoder.chunk_bytes();
                encoder.encode(6, raw.as_bytes(), &mut out);
                out
            };
            (0..chunks).map(encode).collect()
        }

        /// A dictionary is replaced when items change, and stays where it was while something needs it.
        #[test]
        fn dictionaries_follow_the_items() {
            let compression = Compression::new(Codec::Zstd, 0);
            let dictionaries = compression.dictionaries.as_ref().unwrap();
            offer(&compression, "json");
            assert!(!dictionaries.wants_samples());
            let mut encoder = Encoder::new(compression.clone());
            let first = encode(&mut encoder, "json", 10_000);
            assert_eq!(encoder.place, Some(0));
            dictionaries.count_users(1, 0);
            assert!(!dictionaries.wants_samples(), "it compresses as well as at first");
            encode(&mut encoder, "xml", 10_000);
            assert!(dictionaries.wants_samples());
            offer(&compression, "xml");
            let second = encode(&mut encoder, "xml", 10_000);
            assert_eq!(encoder.place, Some(1));
            // The first one is still there, since a block needs it.
            assert!(decoded(&compression, &first[0], 3000).is_some());
            assert!(decoded(&compression, &second[0], 3000).is_some());
            let (both, _) = dictionaries.figures();
            dictionaries.count_users(0, 1);
            encode(&mut encoder, "xml", 10_000);
            assert!(dictionaries.figures().0 < both);
            assert_eq!(decoded(&compression, &first[0], 3000), None);
        }
    }
}
