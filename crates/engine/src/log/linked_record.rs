//! Records of items with links, alone and in batches, and the fillers in front of them. See [`super::record`].
//!
//! Fillers, slots and links exist since major version 4. An item of a chained keyspace has a link to an older record,
//! and others will have links to its record: that begins at a multiple of [`LINK_UNIT`] in the segment, and takes a
//! multiple of it, by a tag of up to three bytes more than necessary. In a batch, such an item is a whole record of its
//! own, preceded by a byte 2, the number of zeros that follow it, and these.

use alluvium_base::{KeyspaceId, varint};

use super::record::{CHECKSUM_LEN, Record, TAG_BATCH, TAG_ITEM_BASE, encode_payload, finish, record_len};
use crate::item::{Item, Link};

/// First byte of an item of a chained keyspace in a batch. No item begins with it.
const LINKED: u8 = 2;
/// First bytes of the payload of [`Record::Slots`]. Fewer zeros than 255 precede an item.
const SLOTS: [u8; 2] = [LINKED, 255];

/// Records with links begin at multiples of this number of bytes in their segment.
pub(crate) const LINK_UNIT: usize = 4;
/// Maximum bytes of a filler in front of such a record.
pub(super) const FILLER_LEN_MAX: usize = CHECKSUM_LEN + 1 + LINK_UNIT;

/// The record that says how many slots the regions of a chained keyspace have.
pub(crate) fn encode_slots(seed: u64, keyspace: KeyspaceId, doubled: u64) -> Vec<u8> {
    let mut payload = SLOTS.to_vec();
    varint::write(u64::from(keyspace.0), &mut payload);
    varint::write(doubled, &mut payload);
    encode_payload(seed, &payload)
}

/// The slots that the payload of a batch says, if it does.
pub(super) fn decode_slots(payload: &[u8]) -> Option<Record<'static>> {
    let fields = payload.strip_prefix(&SLOTS)?;
    let (keyspace, len) = varint::read(fields)?;
    let (doubled, doubled_len) = varint::read(&fields[len..])?;
    let keyspace = u32::try_from(keyspace).ok().filter(|_| len + doubled_len == fields.len())?;
    Some(Record::Slots { keyspace: KeyspaceId(keyspace), doubled })
}

/// Bytes in front of the record of an item with a link, if such an item is next in the payload of a batch.
pub(super) fn skipped_before_linked(payload: &[u8]) -> Option<usize> {
    match payload {
        [LINKED, zeros, ..] if usize::from(*zeros) < LINK_UNIT => Some(2 + usize::from(*zeros)),
        _ => None,
    }
}

/// Bytes of the tag in the record of an item with a link that takes this number of bytes.
fn linked_tag_len(keyspace: KeyspaceId, item_len: usize) -> usize {
    let tag_len = varint::encoded_len(u64::from(keyspace.0) + TAG_ITEM_BASE);
    (CHECKSUM_LEN + tag_len + item_len).next_multiple_of(LINK_UNIT) - CHECKSUM_LEN - item_len
}

/// Where the record of an item with a link begins, from where the item begins in the segment, and its encoded length.
pub(crate) fn linked_record_start(keyspace: KeyspaceId, item_start: usize, item_len: usize) -> Option<usize> {
    item_start.checked_sub(CHECKSUM_LEN + linked_tag_len(keyspace, item_len))
}

/// Appends the record of an item with a link to `out`; returns where the item's encoding starts in it.
pub(crate) fn encode_linked_item(
    seed: u64,
    keyspace: KeyspaceId,
    item: &Item<'_>,
    link: Link,
    out: &mut Vec<u8>,
) -> usize {
    let start = out.len();
    let item_len = item.encoded_len() + link.encoded_len();
    out.extend_from_slice(&[0; CHECKSUM_LEN]);
    let tag_start = out.len();
    varint::write(u64::from(keyspace.0) + TAG_ITEM_BASE, out);
    // A longer form of the same number.
    let tag_end = tag_start + linked_tag_len(keyspace, item_len);
    while out.len() < tag_end {
        *out.last_mut().expect("a tag has bytes") |= 0x80;
        out.push(0);
    }
    item.encode_linked(link, out);
    finish(seed, &mut out[start..]);
    tag_end
}

/// The record without content that takes up the space in front of a record with a link, for a segment that ends at
/// `end`. Empty if none is needed.
pub(super) fn encode_filler(seed: u64, end: u64) -> Vec<u8> {
    let end = end as usize % LINK_UNIT;
    if end == 0 {
        return Vec::new();
    }
    let mut out = vec![0; CHECKSUM_LEN];
    varint::write(TAG_BATCH, &mut out);
    // A longer form of zero, the number of bytes of the payload.
    while !(end + out.len() + 1).is_multiple_of(LINK_UNIT) {
        out.push(0x80);
    }
    out.push(0);
    finish(seed, &mut out);
    out
}

/// Bytes that the record at the start of `bytes` takes, of which only the beginning is present; fewer if even its
/// lengths are not complete.
pub(crate) fn len_at_least(bytes: &[u8]) -> usize {
    record_len(bytes).unwrap_or(bytes.len() + 1)
}

/// Encodes a batch of which some items have links.
#[derive(Debug, Default)]
pub(crate) struct LinkedBatch {
    payload: Vec<u8>,
    /// Where each item begins in the payload.
    starts: Vec<usize>,
}

impl LinkedBatch {
    /// Bytes in front of the payload: room for a length of any form.
    const PAYLOAD_START: usize = CHECKSUM_LEN + 1 + 5;

    /// Adds an item without a link.
    pub fn push(&mut self, keyspace: KeyspaceId, item: &Item<'_>) {
        varint::write(u64::from(keyspace.0) + TAG_ITEM_BASE, &mut self.payload);
        self.starts.push(self.payload.len());
        item.encode(&mut self.payload);
    }

    /// Where the record of an item with a link would begin if it were added next, counted from the start of the batch's
    /// record.
    pub fn next_linked(&self) -> usize {
        (Self::PAYLOAD_START + self.payload.len() + 2).next_multiple_of(LINK_UNIT)
    }

    /// Adds an item with a link.
    pub fn push_linked(&mut self, seed: u64, keyspace: KeyspaceId, item: &Item<'_>, link: Link) {
        let start = self.next_linked() - Self::PAYLOAD_START;
        let zeros = start - self.payload.len() - 2;
        self.payload.extend_from_slice(&[LINKED, zeros as u8]);
        self.payload.resize(start, 0);
        let item_start = encode_linked_item(seed, keyspace, item, link, &mut self.payload);
        self.starts.push(item_start);
    }

    /// Replaces the content of `out` with the record; returns where each item's encoding starts in it.
    pub fn finish(self, seed: u64, out: &mut Vec<u8>) -> Vec<usize> {
        out.clear();
        out.extend_from_slice(&[0; CHECKSUM_LEN]);
        varint::write(TAG_BATCH, out);
        varint::write(self.payload.len() as u64, out);
        while out.len() < Self::PAYLOAD_START {
            *out.last_mut().expect("a length has bytes") |= 0x80;
            out.push(0);
        }
        out.extend_from_slice(&self.payload);
        finish(seed, out);
        self.starts.into_iter().map(|start| Self::PAYLOAD_START + start).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{Parsed, decode};
    use super::*;

    #[test]
    fn slots_read_back() {
        let slots = encode_slots(7, KeyspaceId(300), 1 << 40);
        let expected = Record::Slots { keyspace: KeyspaceId(300), doubled: 1 << 40 };
        assert_eq!(decode(7, &slots, true), Parsed::Record(expected, slots.len()));
    }

    #[test]
    fn records_with_links_read_back_and_begin_at_units() {
        let mut segment = Vec::new();
        for number in 0..300_u32 {
            let key = vec![b'k'; number as usize % 41];
            let item = Item::value(&key, b"value");
            let link =
                Link { pointer: u64::from(number), is_long: number % 3 == 0, is_in_second: number % 2 == 0 };
            segment.extend_from_slice(&encode_filler(7, segment.len() as u64));
            assert!(segment.len().is_multiple_of(LINK_UNIT));
            let start = segment.len();
            let keyspace = KeyspaceId(number * 1000);
            if number % 5 == 0 {
                let mut batch = LinkedBatch::default();
                batch.push(KeyspaceId(1), &Item::tombstone(&key));
                let at = batch.next_linked();
                batch.push_linked(7, keyspace, &item, link);
                let mut record = Vec::new();
                let starts = batch.finish(7, &mut record);
                let Parsed::Record(Record::Batch(items), len) = decode(7, &record, true) else {
                    panic!("no batch")
                };
                assert_eq!(len, record.len());
                let items: Vec<_> = items.collect();
                assert_eq!(items[0], (KeyspaceId(1), Item::tombstone(&key), starts[0]));
                assert_eq!(items[1], (keyspace, item, starts[1]));
                let encoded = &record[starts[1]..];
                assert_eq!(Link::of(encoded), Some(link));
                assert_eq!(linked_record_start(keyspace, starts[1], Item::skip(encoded).unwrap()), Some(at));
                let nested = Record::Item { keyspace, item, item_start: starts[1] - at };
                assert_eq!(decode(7, &record[at..], true), Parsed::Record(nested, record.len() - at));
                segment.extend_from_slice(&record);
            } else {
                let item_start = encode_linked_item(7, keyspace, &item, link, &mut segment);
                let record = &segment[start..];
                let expected = Record::Item { keyspace, item, item_start: item_start - start };
                assert_eq!(decode(7, record, true), Parsed::Record(expected, record.len()));
                let item_len = Item::skip(&segment[item_start..]).unwrap();
                assert_eq!(linked_record_start(keyspace, item_start, item_len), Some(start));
            }
            // A mark.
            segment.extend_from_slice(&vec![0; number as usize % 4]);
        }
    }
}
