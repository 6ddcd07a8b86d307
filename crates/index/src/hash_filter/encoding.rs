//! A filter as bytes: written beside its HashStore, read at the first lookup in the table.
//!
//! Payload, after the header shared with the cuckoo table: the slots in order, `tag_bits` bits each, least significant
//! bit first; 0 is an empty slot. The bits that fill up the last byte are 0.

use alluvium_base::Corruption;

use super::filter::{HashFilter, TAG_BITS_MAX, TAG_BITS_MIN};
use crate::cuckoo::envelope::{Header, Kind};
use crate::packed_tags::{PackedTags, packed_len};

const KIND: Kind = Kind {
    name: "hash filter",
    magic: *b"ALVHFILT",
    tag_bits: TAG_BITS_MIN..=TAG_BITS_MAX,
    payload_len: |header| packed_len(header.buckets, header.tag_bits),
};

impl HashFilter {
    /// The filter as bytes: its tags and 32 bytes more, protected by a checksum.
    pub fn to_bytes(&self) -> Vec<u8> {
        let tags = self.tags();
        let header = Header { tag_bits: tags.width(), buckets: tags.buckets(), entries: self.len() as u32 };
        let mut bytes = KIND.begin(header);
        bytes.extend_from_slice(tags.packed());
        KIND.seal(bytes)
    }

    /// Reads the filter from `bytes` that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// [`Corruption`] when `bytes` are anything else: wrong magic, version, length, checksum, tag width, count or
    /// filling bits. Its offset is relative to `bytes`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Corruption> {
        let (header, payload) = KIND.open(bytes)?;
        let tags = PackedTags::from_stored(&KIND, &header, payload)?;
        let filter = Self::from_parts(tags, header.entries);
        KIND.check_entries(&header, filter.occupied().count() as u64)?;
        Ok(filter)
    }
}
