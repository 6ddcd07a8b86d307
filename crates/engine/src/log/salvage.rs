//! Reads what is still readable of a damaged log segment: after an unsound record, searches for the next sound one.
//!
//! Records are framed by their own lengths, so damage to one hides where the next begins. But every record has a
//! checksum under the secret seed of its segment, so every offset can be tried. A checksum of 32 bits that fits and a
//! second record, the end or zeros right behind it are no accident. Values that look like records were written under
//! another seed.

use alluvium_base::SegmentId;

use super::record::{self, Parsed, Record};
use super::segment::BLOCK;
use super::writer::Position;

/// Number of zeros behind a record that show that it is the last.
const ZEROS_BEHIND_LAST: usize = 8;

/// How far the marks in `bytes` from offset `start` on prove that the log was durable. `bytes` is the file of segment
/// `id`. The records around the marks need not be sound. `None` if there is no mark beyond doubt.
pub(crate) fn proven_durable(id: SegmentId, seed: u64, bytes: &[u8], start: usize) -> Option<Position> {
    let pieces = Pieces::new(seed, bytes, start);
    let durable = |at: usize| -> Option<Position> {
        let (mark, _) = record::decode_mark(seed, &bytes[at..])?;
        mark.durable(id).filter(|_| pieces.is_certain(at))
    };
    (start..bytes.len().saturating_sub(record::MARK_LEN_MIN - 1)).filter_map(durable).max()
}

/// Whether the file of a segment begins with a record under this seed, beyond doubt.
pub(crate) fn starts_with_record(seed: u64, bytes: &[u8]) -> bool {
    Pieces::new(seed, bytes, BLOCK as usize).is_certain(BLOCK as usize)
}

/// A part of a segment's content.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// A sound record and where it starts.
    Record { record: Record<'a>, start: usize },
    /// Bytes that are not a sound record, followed by one that is.
    Gap { bytes: usize },
}

/// The sound records of a segment and the gaps between them, in order.
#[derive(Debug)]
pub(crate) struct Pieces<'a> {
    seed: u64,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Pieces<'a> {
    /// The pieces of `bytes`, which is a whole segment, from offset `start` on, under the segment's seed.
    pub fn new(seed: u64, bytes: &'a [u8], start: usize) -> Self {
        Self { seed, bytes, at: start.min(bytes.len()) }
    }

    /// The end of the last piece.
    pub fn position(&self) -> usize {
        self.at
    }

    fn record_at(&self, at: usize) -> Option<(Record<'a>, usize)> {
        match record::decode(self.seed, self.bytes.get(at..)?, true) {
            Parsed::Record(record, len) => Some((record, len)),
            Parsed::Incomplete | Parsed::Invalid => None,
        }
    }

    /// Whether there is a record at `at`, beyond doubt.
    fn is_certain(&self, at: usize) -> bool {
        let Some((record, len)) = self.record_at(at) else { return false };
        let behind = self.bytes.get(at + len..).unwrap_or_default();
        let zeros = &behind[..behind.len().min(ZEROS_BEHIND_LAST)];
        matches!(record, Record::Seal { .. })
            || zeros.iter().all(|&byte| byte == 0)
            || self.record_at(at + len).is_some()
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        if let Some((record, len)) = self.record_at(self.at) {
            let start = self.at;
            self.at += len;
            if matches!(record, Record::Seal { .. }) {
                // What follows is left from an earlier use of the file.
                self.bytes = &self.bytes[..self.at];
            }
            return Some(Piece::Record { record, start });
        }
        let next = (self.at + 1..self.bytes.len()).find(|&at| self.is_certain(at))?;
        let bytes = next - self.at;
        self.at = next;
        Some(Piece::Gap { bytes })
    }
}

#[cfg(test)]
mod tests {
    use alluvium_base::KeyspaceId;

    use super::*;
    use crate::item::Item;
    use proptest::prelude::*;

    const SEED: u64 = 7;

    fn segment(count: usize, tail: usize) -> (Vec<u8>, Vec<usize>) {
        let (mut bytes, mut starts, mut record) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..count {
            starts.push(bytes.len());
            let key = [number as u8; 3];
            if number % 4 == 3 {
                let items =
                    [(KeyspaceId(0), Item::value(&key, b"one")), (KeyspaceId(1), Item::tombstone(&key))];
                record::encode_batch(SEED, items.into_iter(), &mut record);
            } else {
                record::encode_item(SEED, KeyspaceId(2), &Item::value(&key, &[9; 20]), &mut record);
            }
            bytes.extend_from_slice(&record);
        }
        starts.push(bytes.len());
        bytes.resize(bytes.len() + tail, 0);
        (bytes, starts)
    }

    fn records(bytes: &[u8]) -> Vec<usize> {
        let starts = |piece| match piece {
            Piece::Record { start, .. } => Some(start),
            Piece::Gap { .. } => None,
        };
        Pieces::new(SEED, bytes, 0).filter_map(starts).collect()
    }

    proptest! {
        /// The reference: the records that the damage does not touch.
        #[test]
        fn damage_costs_the_records_that_it_touches_and_no_other(
            count in 1usize..12,
            tail in 0usize..40,
            from: prop::sample::Index,
            damage in prop::collection::vec(1u8.., 1..60),
        ) {
            let (mut bytes, starts) = segment(count, tail);
            let from = from.index(starts[count]);
            let to = (from + damage.len()).min(starts[count]);
            bytes[from..to].iter_mut().zip(&damage).for_each(|(byte, mask)| *byte ^= mask);
            let sound = starts.windows(2).filter(|record| record[1] <= from || record[0] >= to);
            let expected: Vec<usize> = sound.map(|record| record[0]).collect();
            prop_assert_eq!(records(&bytes), expected);
        }

        #[test]
        fn arbitrary_bytes_hold_no_records(bytes: Vec<u8>, start: usize) {
            let is_gap = |piece| matches!(piece, Piece::Gap { .. });
            prop_assert!(Pieces::new(SEED, &bytes, start).all(is_gap));
        }
    }

    #[test]
    fn nothing_behind_a_seal_counts() {
        let (mut bytes, starts) = segment(3, 0);
        let sealed = record::encode_seal(SEED, SegmentId(2));
        let rest = bytes.split_off(starts[1]);
        bytes.extend_from_slice(&sealed);
        bytes.extend_from_slice(&rest);
        assert_eq!(records(&bytes), [0, starts[1]]);
    }
}
