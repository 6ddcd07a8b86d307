//! Log records as bytes.
//!
//! ```text
//! checksum   4 bytes   low 32 bits of XXH3-64 over the rest of the record, seeded with the segment's seed
//! tag        varint    0 invalid, 1 seal, 2 batch, n >= 3 one item of keyspace n - 3
//! seal:      8 bytes   id of the next segment
//! batch:     varint    bytes of the payload, then the payload: items, each preceded by its tag
//! mark:      a batch whose payload is a byte 0 and two varints, see [`Mark`]
//! unlogged:  a batch whose payload is a byte 1 and a varint, the number of a keyspace, see [`Record::Unlogged`]
//! slots:     a batch whose payload is bytes 2 and 255 and two varints, see [`Record::Slots`]
//! filler:    a batch without payload
//! item:      see `item`
//! ```
//!
//! The seed is unique to a segment, so leftovers of an earlier segment in a recycled file are not valid records.

use alluvium_base::checksum::checksum32;
use alluvium_base::{KeyspaceId, SegmentId, varint};

use super::linked_record::{decode_slots, skipped_before_linked};
use super::segment::BLOCK;
use super::writer::Position;
use crate::item::Item;

const TAG_SEAL: u64 = 1;
pub(super) const TAG_BATCH: u64 = 2;
pub(super) const TAG_ITEM_BASE: u64 = 3;
/// First byte of a mark's payload. No item begins with it.
const MARK: u8 = 0;
/// First byte of the payload of [`Record::Unlogged`]. No item begins with it.
const UNLOGGED: u8 = 1;
pub(super) const CHECKSUM_LEN: usize = 4;

/// A decoded record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    /// One item, and where its encoding starts, counted from the start of the record.
    Item { keyspace: KeyspaceId, item: Item<'a>, item_start: usize },
    /// Items that apply together or not at all.
    Batch(BatchItems<'a>),
    /// The end of the segment; the log continues in the named one.
    Seal { next_segment: SegmentId },
    /// How far the log was durable when this was written.
    Mark(Mark),
    /// Items of the keyspace changed, or were about to, without a record for each. Since major version 3 of the log.
    Unlogged { keyspace: KeyspaceId },
    /// The chains of the keyspace's items in this segment, from here on, are those of this number of slots in each
    /// region of its directory. The number is doubled, and has 1 added if a key has two slots. Since major version 4 of
    /// the log.
    Slots { keyspace: KeyspaceId, doubled: u64 },
}

/// How far the log was durable when a mark was appended. Everything in front of that position was synced to the device,
/// so unsound bytes there are damage, not a torn write. Since major version 2 of the log.
///
/// The position is absolute, so that a copy of log bytes inside a value states nothing false.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Segments from the durable one to the mark's own; 0 within a segment.
    pub segments_back: u64,
    /// Offset of the position in its segment.
    pub offset: u64,
}

impl Mark {
    /// The mark in segment `id` if everything up to `durable` is durable; `None` if nothing is.
    pub fn of(durable: Position, id: SegmentId) -> Option<Self> {
        let segments_back = id.0.checked_sub(durable.segment.0).filter(|_| durable != Position::default())?;
        Some(Self { segments_back, offset: durable.offset })
    }

    /// The position that a mark in segment `id` proves durable; `None` for a mark that was never written there.
    pub fn durable(&self, id: SegmentId) -> Option<Position> {
        let segment = SegmentId(id.0.checked_sub(self.segments_back)?);
        (self.offset >= BLOCK).then_some(Position { segment, offset: self.offset })
    }
}

/// The items of a batch record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BatchItems<'a> {
    payload: &'a [u8],
    /// Start of the payload, counted from the start of the record.
    payload_start: usize,
    position: usize,
}

impl<'a> Iterator for BatchItems<'a> {
    /// Keyspace, item, and where the item's encoding starts, counted from the start of the record.
    type Item = (KeyspaceId, Item<'a>, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = &self.payload[self.position..];
        let skipped = skipped_before_linked(rest).map_or(0, |skipped| skipped + CHECKSUM_LEN);
        let (keyspace, item, item_start, len) = decode_tagged_item(rest.get(skipped..)?)?;
        let start = self.payload_start + self.position + skipped + item_start;
        self.position += skipped + len;
        Some((keyspace, item, start))
    }
}

/// Replaces the content of `out` with the record of one item; returns where the item's encoding starts in it.
pub(crate) fn encode_item(seed: u64, keyspace: KeyspaceId, item: &Item<'_>, out: &mut Vec<u8>) -> usize {
    out.clear();
    out.extend_from_slice(&[0; CHECKSUM_LEN]);
    varint::write(u64::from(keyspace.0) + TAG_ITEM_BASE, out);
    let item_start = out.len();
    item.encode(out);
    finish(seed, out);
    item_start
}

/// Replaces the content of `out` with the record of a batch; returns where each item's encoding starts in it.
pub(crate) fn encode_batch<'a>(
    seed: u64,
    items: impl Iterator<Item = (KeyspaceId, Item<'a>)>,
    out: &mut Vec<u8>,
) -> Vec<usize> {
    let mut payload = Vec::new();
    let mut starts = Vec::new();
    for (keyspace, item) in items {
        varint::write(u64::from(keyspace.0) + TAG_ITEM_BASE, &mut payload);
        starts.push(payload.len());
        item.encode(&mut payload);
    }
    out.clear();
    out.extend_from_slice(&[0; CHECKSUM_LEN]);
    varint::write(TAG_BATCH, out);
    varint::write(payload.len() as u64, out);
    let payload_start = out.len();
    out.extend_from_slice(&payload);
    finish(seed, out);
    for start in &mut starts {
        *start += payload_start;
    }
    starts
}

/// The record that ends a segment.
pub(crate) fn encode_seal(seed: u64, next_segment: SegmentId) -> Vec<u8> {
    let mut out = vec![0; CHECKSUM_LEN];
    varint::write(TAG_SEAL, &mut out);
    out.extend_from_slice(&next_segment.0.to_le_bytes());
    finish(seed, &mut out);
    out
}

/// The record of a batch with this payload.
pub(super) fn encode_payload(seed: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0; CHECKSUM_LEN];
    varint::write(TAG_BATCH, &mut out);
    varint::write(payload.len() as u64, &mut out);
    out.extend_from_slice(payload);
    finish(seed, &mut out);
    out
}

/// The record of a mark.
pub(crate) fn encode_mark(seed: u64, mark: Mark) -> Vec<u8> {
    let mut payload = vec![MARK];
    varint::write(mark.segments_back, &mut payload);
    varint::write(mark.offset, &mut payload);
    encode_payload(seed, &payload)
}

/// The record that says that items of a keyspace change without records.
pub(crate) fn encode_unlogged(seed: u64, keyspace: KeyspaceId) -> Vec<u8> {
    let mut payload = vec![UNLOGGED];
    varint::write(u64::from(keyspace.0), &mut payload);
    encode_payload(seed, &payload)
}

/// Maximum bytes of a mark. In a segment of less than 2 MiB it takes 11.
pub(crate) const MARK_LEN_MAX: usize = MARK_LEN_MIN - 2 + 2 * varint::LEN_MAX;
/// Minimum bytes of a mark.
pub(crate) const MARK_LEN_MIN: usize = CHECKSUM_LEN + 5;

/// The mark at the start of `bytes`, and its length. Reads only few bytes if there is no mark.
pub(crate) fn decode_mark(seed: u64, bytes: &[u8]) -> Option<(Mark, usize)> {
    let start = bytes.get(CHECKSUM_LEN..MARK_LEN_MIN)?;
    if u64::from(start[0]) != TAG_BATCH || usize::from(start[1]) > MARK_LEN_MAX || start[2] != MARK {
        return None;
    }
    match decode(seed, &bytes[..bytes.len().min(MARK_LEN_MAX)], true) {
        Parsed::Record(Record::Mark(mark), len) => Some((mark, len)),
        _ => None,
    }
}

/// Bytes of a seal record.
pub(crate) const SEAL_LEN: usize = CHECKSUM_LEN + 1 + 8;

pub(super) fn finish(seed: u64, record: &mut [u8]) {
    let checksum = checksum32(&record[CHECKSUM_LEN..], seed);
    record[..CHECKSUM_LEN].copy_from_slice(&checksum.to_le_bytes());
}

/// What the first bytes of some input are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed<'a> {
    /// A sound record of this many bytes.
    Record(Record<'a>, usize),
    /// Possibly a record, of which only the beginning is present.
    Incomplete,
    /// No record: the log ends here.
    Invalid,
}

/// Reads the record at the start of `bytes`. If `check` is false, the checksum is not verified: a planted bug, by which
/// the simulation proves that it would notice.
pub(crate) fn decode(seed: u64, bytes: &[u8], check: bool) -> Parsed<'_> {
    let Some(len) = record_len(bytes) else {
        return if is_possible_start(bytes) { Parsed::Incomplete } else { Parsed::Invalid };
    };
    let Some(record) = bytes.get(..len) else { return Parsed::Incomplete };
    let stored = u32::from_le_bytes([record[0], record[1], record[2], record[3]]);
    if check && stored != checksum32(&record[CHECKSUM_LEN..], seed) {
        return Parsed::Invalid;
    }
    match decode_body(record) {
        Some(body) => Parsed::Record(body, len),
        None => Parsed::Invalid,
    }
}

/// Length of the record at the start of `bytes`, by its own length fields; `None` if they are not complete yet.
pub(super) fn record_len(bytes: &[u8]) -> Option<usize> {
    let (tag, tag_len) = varint::read(bytes.get(CHECKSUM_LEN..)?)?;
    let body = CHECKSUM_LEN + tag_len;
    match tag {
        0 => None,
        TAG_SEAL => Some(body + 8),
        TAG_BATCH => {
            let (len, len_len) = varint::read(&bytes[body..])?;
            Some(body + len_len + usize::try_from(len).ok().filter(|&len| len <= 1 << 32)?)
        }
        _ => Some(body + Item::skip(&bytes[body..])?),
    }
}

/// Whether these bytes could be the beginning of a record.
fn is_possible_start(bytes: &[u8]) -> bool {
    const LONGEST_LENGTHS: usize = CHECKSUM_LEN + 3 * varint::LEN_MAX + 1;
    bytes.get(CHECKSUM_LEN) != Some(&0) && bytes.len() < LONGEST_LENGTHS
}

fn decode_body(record: &[u8]) -> Option<Record<'_>> {
    let (tag, tag_len) = varint::read(&record[CHECKSUM_LEN..])?;
    let body = CHECKSUM_LEN + tag_len;
    match tag {
        TAG_SEAL => {
            let id = record.get(body..body + 8)?.try_into().ok()?;
            Some(Record::Seal { next_segment: SegmentId(u64::from_le_bytes(id)) })
        }
        TAG_BATCH => {
            let (_, len_len) = varint::read(&record[body..])?;
            let payload_start = body + len_len;
            let payload = &record[payload_start..];
            if payload.first() == Some(&MARK) {
                return decode_mark_payload(&payload[1..]).map(Record::Mark);
            }
            if payload.first() == Some(&UNLOGGED) {
                let (keyspace, len) = varint::read(&payload[1..])?;
                let keyspace = u32::try_from(keyspace).ok().filter(|_| len + 1 == payload.len())?;
                return Some(Record::Unlogged { keyspace: KeyspaceId(keyspace) });
            }
            if let Some(slots) = decode_slots(payload) {
                return Some(slots);
            }
            let whole = BatchItems { payload, payload_start, position: 0 };
            let mut check = BatchItems { payload, payload_start, position: 0 };
            while check.next().is_some() {}
            (check.position == payload.len()).then_some(Record::Batch(whole))
        }
        _ => {
            let (keyspace, item, item_start, _) = decode_tagged_item(&record[CHECKSUM_LEN..])?;
            Some(Record::Item { keyspace, item, item_start: CHECKSUM_LEN + item_start })
        }
    }
}

fn decode_mark_payload(fields: &[u8]) -> Option<Mark> {
    let (segments_back, len) = varint::read(fields)?;
    let (offset, offset_len) = varint::read(&fields[len..])?;
    (len + offset_len == fields.len()).then_some(Mark { segments_back, offset })
}

/// Keyspace, item, start of the item, total bytes.
fn decode_tagged_item(bytes: &[u8]) -> Option<(KeyspaceId, Item<'_>, usize, usize)> {
    let (tag, tag_len) = varint::read(bytes)?;
    let keyspace = u32::try_from(tag.checked_sub(TAG_ITEM_BASE)?).ok()?;
    let (item, len) = Item::decode(&bytes[tag_len..])?;
    Some((KeyspaceId(keyspace), item, tag_len, tag_len + len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_item_record_adds_eight_bytes_to_a_small_item() {
        let mut out = Vec::new();
        encode_item(7, KeyspaceId(0), &Item::value(&[1; 16], &[2; 100]), &mut out);
        assert_eq!(out.len(), 116 + 8);
    }

    #[test]
    fn records_read_back() {
        let mut out = Vec::new();
        let item = Item::value(b"key", b"value");
        let item_start = encode_item(7, KeyspaceId(300), &item, &mut out);
        let expected = Record::Item { keyspace: KeyspaceId(300), item, item_start };
        assert_eq!(decode(7, &out, true), Parsed::Record(expected, out.len()));
        assert_eq!(decode(8, &out, true), Parsed::Invalid);

        let mark = Mark { segments_back: 1, offset: 1 << 40 };
        let encoded = encode_mark(7, mark);
        assert_eq!(decode(7, &encoded, true), Parsed::Record(Record::Mark(mark), encoded.len()));
        assert_eq!(decode_mark(7, &encoded), Some((mark, encoded.len())));
        assert_eq!(decode_mark(8, &encoded), None);
        let longest = encode_mark(7, Mark { segments_back: u64::MAX, offset: u64::MAX });
        assert_eq!(longest.len(), MARK_LEN_MAX);
        let shortest = encode_mark(7, Mark { segments_back: 0, offset: 0 });
        assert_eq!(shortest.len(), MARK_LEN_MIN);

        let unlogged = encode_unlogged(7, KeyspaceId(300));
        let expected = Record::Unlogged { keyspace: KeyspaceId(300) };
        assert_eq!(decode(7, &unlogged, true), Parsed::Record(expected, unlogged.len()));

        let seal = encode_seal(7, SegmentId(42));
        assert_eq!(seal.len(), SEAL_LEN);
        assert_eq!(
            decode(7, &seal, true),
            Parsed::Record(Record::Seal { next_segment: SegmentId(42) }, SEAL_LEN)
        );

        let items = [(KeyspaceId(0), Item::value(b"a", b"1")), (KeyspaceId(9), Item::tombstone(b"b"))];
        let starts = encode_batch(7, items.into_iter(), &mut out);
        let Parsed::Record(Record::Batch(batch), len) = decode(7, &out, true) else { panic!("no batch") };
        assert_eq!(len, out.len());
        let read: Vec<_> = batch.collect();
        assert_eq!(read.len(), 2);
        for ((keyspace, item, start), (expected, at)) in read.into_iter().zip(items.iter().zip(starts)) {
            assert_eq!((keyspace, item), *expected);
            assert_eq!(start, at);
            assert_eq!(Item::decode(&out[start..]).unwrap().0, item);
        }
    }

    #[test]
    fn the_example_in_the_documentation_is_true() {
        let documentation = include_str!("../../../../docs/format.md");
        let mut item = Vec::new();
        encode_item(7, KeyspaceId(0), &Item::value(b"key", b"value"), &mut item);
        let mark = encode_mark(7, Mark { segments_back: 0, offset: 4112 });
        for record in [item, mark, encode_seal(7, SegmentId(2))] {
            let line: Vec<String> = record.iter().map(|byte| format!("{byte:02x}")).collect();
            let line = line.join(" ");
            assert!(documentation.contains(&line), "docs/format.md lacks {line}");
        }
    }

    #[test]
    fn zeros_end_the_log() {
        assert_eq!(decode(7, &[0; 64], true), Parsed::Invalid);
    }

    proptest! {
        #[test]
        fn any_change_to_a_record_is_noticed(key: Vec<u8>, value: Vec<u8>, at: prop::sample::Index, bit in 0u8..8) {
            let mut out = Vec::new();
            encode_item(7, KeyspaceId(5), &Item::value(&key, &value), &mut out);
            let at = at.index(out.len());
            out[at] ^= 1 << bit;
            prop_assert!(!matches!(decode(7, &out, true), Parsed::Record(..)));
        }

        #[test]
        fn a_cut_record_is_never_a_record(key: Vec<u8>, cut: prop::sample::Index) {
            let mut out = Vec::new();
            encode_item(7, KeyspaceId(5), &Item::value(&key, b"v"), &mut out);
            let cut = cut.index(out.len());
            prop_assert_eq!(decode(7, &out[..cut], true), Parsed::Incomplete);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = decode(7, &bytes, true);
            if let Parsed::Record(Record::Batch(items), _) = decode(7, &bytes, false) {
                items.for_each(drop);
            }
        }
    }
}
