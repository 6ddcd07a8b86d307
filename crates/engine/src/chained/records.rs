//! [`LinkedRecords`]: the records with links of a segment, in the order in which they were written.

use alluvium_base::{Corruption, KeyspaceId, SegmentId};
use alluvium_io::AlignedBuffer;

use super::address::{Address, SEGMENT_BYTES_MAX};
use super::chain::ChainFile;
use crate::error::{IoContext, Result};
use crate::item::{EncodedItem, Link};
use crate::log::Slots;
use crate::log::linked_record::{LINK_UNIT, linked_record_start};
use crate::log::record::{self, Parsed, Record};
use crate::log::segment::BLOCK;

/// Bytes of a segment that are read at a time, unless a record takes more.
const READ_BYTES: usize = 1 << 20;

/// A record with a link.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinkedRecord<'a> {
    pub keyspace: KeyspaceId,
    pub item: EncodedItem<'a>,
    pub link: Link,
    pub address: Address,
}

/// What a segment says about chained keyspaces.
#[derive(Debug)]
pub(crate) enum Linked<'a> {
    /// Regions of the keyspace have this number of slots from here on.
    Slots {
        keyspace: KeyspaceId,
        slots: Slots,
    },
    Record(LinkedRecord<'a>),
}

/// Calls `found` with what the log record at `start` of a segment says about chained keyspaces.
pub(crate) fn linked_of<'a>(
    segment: SegmentId,
    bytes: &'a [u8],
    record: &Record<'a>,
    start: usize,
    mut found: impl FnMut(Linked<'a>) -> Result<()>,
) -> Result<()> {
    let mut item = |keyspace: KeyspaceId, item_start: usize| {
        let encoded = bytes.get(item_start..).and_then(EncodedItem::decode);
        let Some(encoded) = encoded else { return Ok(()) };
        let Some(link) = Link::of(encoded.bytes) else { return Ok(()) };
        let at = linked_record_start(keyspace, start + item_start, encoded.bytes.len());
        let is_possible = |at: &usize| at.is_multiple_of(LINK_UNIT) && (*at as u64) < SEGMENT_BYTES_MAX;
        match at.filter(is_possible) {
            Some(at) => {
                let address = Address::new(segment, at as u64);
                found(Linked::Record(LinkedRecord { keyspace, item: encoded, link, address }))
            }
            None => Ok(()),
        }
    };
    match record {
        Record::Item { keyspace, item_start, .. } => item(*keyspace, *item_start),
        Record::Batch(items) => items.clone().try_for_each(|(keyspace, _, start)| item(keyspace, start)),
        Record::Slots { keyspace, doubled } => {
            let Some(slots) = Slots::of_doubled(*doubled) else {
                let (expected, number) = ("a possible number of slots", doubled.to_string());
                return Err(Corruption::new("the log", start as u64, expected, number).into());
            };
            found(Linked::Slots { keyspace: *keyspace, slots })
        }
        Record::Seal { .. } | Record::Mark(_) | Record::Unlogged { .. } => Ok(()),
    }
}

/// Calls `found` with everything that the segment in memory says about chained keyspaces.
pub(crate) fn for_each_linked<'a>(
    segment: SegmentId,
    seed: u64,
    bytes: &'a [u8],
    mut found: impl FnMut(Linked<'a>) -> Result<()>,
) -> Result<()> {
    let mut at = BLOCK as usize;
    while let Parsed::Record(record, len) = record::decode(seed, &bytes[at.min(bytes.len())..], false) {
        linked_of(segment, &bytes[at..at + len], &record, at, &mut found)?;
        at += len;
        if matches!(record, Record::Seal { .. }) {
            break;
        }
    }
    Ok(())
}

impl ChainFile {
    /// Reads the file, and calls `found` with everything that it says about chained keyspaces. Reads a mebibyte at a
    /// time, or `read_bytes` if that is less.
    ///
    /// # Errors
    /// [`Corruption`] at the first record that is not sound.
    pub fn for_each_linked(
        &self,
        read_bytes: usize,
        mut found: impl FnMut(Linked<'_>) -> Result<()>,
    ) -> Result<()> {
        let read_bytes = read_bytes.clamp(BLOCK as usize, READ_BYTES) as u64;
        let mut buffer = AlignedBuffer::new();
        // Everything before was seen.
        let mut at = BLOCK;
        let mut wanted = read_bytes;
        while at < self.bytes {
            let start = at / BLOCK * BLOCK;
            let len = wanted.min((self.bytes - start).next_multiple_of(BLOCK)) as usize;
            buffer.resize_unspecified(len);
            let read =
                self.file.read_at(&mut buffer, start).context(|| format!("reading {}", self.name()))?;
            let len = read.min((self.bytes - start) as usize);
            let before = at;
            loop {
                let bytes = &buffer[((at - start) as usize).min(len)..len];
                match record::decode(self.seed, bytes, true) {
                    Parsed::Record(record, record_len) => {
                        linked_of(self.segment, &bytes[..record_len], &record, at as usize, &mut found)?;
                        at += record_len as u64;
                        if matches!(record, Record::Seal { .. }) {
                            return Ok(());
                        }
                    }
                    Parsed::Incomplete if start + (len as u64) < self.bytes => break,
                    _ if at >= self.bytes => return Ok(()),
                    _ => {
                        let (expected, found) = ("a sound record of the log", "none");
                        return Err(Corruption::new(self.name(), at, expected, found).into());
                    }
                }
            }
            // A record that is longer than what was read.
            wanted = if at == before { wanted.saturating_mul(2) } else { read_bytes };
        }
        Ok(())
    }
}
