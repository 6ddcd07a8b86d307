//! How a cache that survives compresses: its codec, and the dictionaries in its file.

use std::sync::Arc;

use crate::zone::Codec;

use super::block::RAW_BYTES_MAX;
use super::dictionaries::Dictionaries;
use super::geometry::Geometry;

/// Bytes of items that are compressed together: as in the thesis (§3.2.2), and half of it with a dictionary, which has
/// what items have in common.
const BLOCK_BYTES: usize = 2048;
const DICTIONARY_BLOCK_BYTES: usize = 1024;

const _: () = assert!(BLOCK_BYTES <= RAW_BYTES_MAX);

/// See the module.
#[derive(Debug)]
pub(crate) struct Packing {
    pub codec: Codec,
    /// If the codec has some.
    pub dictionaries: Option<Dictionaries>,
}

impl Packing {
    /// For a cache whose memory has `bytes` bytes.
    pub fn new(codec: Codec, bytes: usize) -> Self {
        if codec.learns() {
            // Learning a dictionary takes some megabytes, which the allocator would keep.
            alluvium_io::give_back_freed_memory();
        }
        Self { codec, dictionaries: codec.learns().then(|| Dictionaries::new(bytes)) }
    }

    /// Bytes of items of a block, at most. A longer item stays out.
    pub fn block_bytes(&self, geometry: &Geometry) -> usize {
        let has_dictionary = self.dictionaries.as_ref().is_some_and(Dictionaries::has_current);
        let usual = if has_dictionary { DICTIONARY_BLOCK_BYTES } else { BLOCK_BYTES };
        usual.min(geometry.zone_bytes / 4)
    }
}

/// A codec as the header of a file has it; 0 is none.
pub(crate) fn number_of(codec: Option<Codec>) -> u64 {
    match codec {
        None => 0,
        Some(Codec::Lz4) => 1,
        #[cfg(feature = "zstd")]
        Some(Codec::Zstd) => 2,
        Some(Codec::None) => 3,
    }
}

/// The largest such number.
pub(crate) const NUMBER_MAX: u64 = 3;

/// How a codec is called by its number.
pub(crate) fn name_of(number: u64) -> &'static str {
    match number {
        0 => "no blocks",
        1 => "blocks of lz4",
        2 => "blocks of zstd",
        _ => "plain blocks",
    }
}

/// A block's dictionary while it is made: its number and digest.
pub(crate) type Numbered = (u64, Arc<crate::zone::Learned>);
