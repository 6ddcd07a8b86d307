//! A table as bytes: checkpointed with the log, so that opening need not replay it.
//!
//! Payload, after the header of `envelope`: the tag words (8 bytes a bucket), then the offsets (4 bytes a slot, 0 for
//! an empty one), both in slot order and little endian.

use alluvium_base::Corruption;

use super::envelope::{HEADER_LEN, Header, Kind, word};
use super::placement::{TAG_BITS, WAYS};
use super::table::CuckooTable;
use super::tag_word::{empties, is_valid, tag_at};
use crate::sync::Ordering;

const BUCKET_LEN: usize = 24;
const WORD_LEN: usize = 8;
const OFFSET_LEN: usize = 4;

const KIND: Kind = Kind {
    name: "cuckoo table",
    magic: *b"ALVCUCKO",
    tag_bits: TAG_BITS..=TAG_BITS,
    payload_len: |header| header.buckets as usize * BUCKET_LEN,
};

impl CuckooTable {
    /// The table as bytes, 6 a slot and 32 more, protected by a checksum. The writer must not be running.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = KIND.begin(Header {
            tag_bits: TAG_BITS,
            buckets: self.buckets.count(),
            entries: self.len.load(Ordering::Relaxed),
        });
        for word in self.tag_words() {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        for (bucket, word) in (0..).zip(self.tag_words()) {
            for way in 0..WAYS {
                let offset =
                    if tag_at(word, way) == 0 { 0 } else { self.buckets.offset(bucket * WAYS + way) };
                bytes.extend_from_slice(&offset.to_le_bytes());
            }
        }
        KIND.seal(bytes)
    }

    /// Reads the table from `bytes` that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// [`Corruption`] when `bytes` are anything else: wrong magic, version, length, checksum, tag or count. Its offset
    /// is relative to `bytes`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Corruption> {
        let (header, payload) = KIND.open(bytes)?;
        let table = Self::with_buckets(header.buckets);
        let (words, offsets) = payload.split_at(header.buckets as usize * WORD_LEN);
        let mut entries = 0;
        for (bucket, chunk) in (0..).zip(words.chunks_exact(WORD_LEN)) {
            let word = word(chunk);
            if !is_valid(word) {
                let offset = HEADER_LEN + bucket as usize * WORD_LEN;
                return Err(KIND.corruption(offset, "four tags of 15 bits", format!("{word:016x}")));
            }
            entries += u64::from(WAYS - empties(word).count_ones());
            table.buckets.set_tags(bucket, word);
        }
        KIND.check_entries(&header, entries)?;
        for (slot, chunk) in (0..).zip(offsets.chunks_exact(OFFSET_LEN)) {
            table.buckets.set_offset(slot, u32::from_le_bytes(std::array::from_fn(|index| chunk[index])));
        }
        table.len.store(header.entries, Ordering::Relaxed);
        Ok(table)
    }
}
