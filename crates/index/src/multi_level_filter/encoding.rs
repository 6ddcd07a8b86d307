//! A filter as bytes: the primary table in the envelope of hash filters, the secondary table behind it.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | n | envelope `ALVMLEVF`: lane bits, buckets, occupied lanes; slot after slot as in a hash filter |
//! | n | 4 | entries of the secondary table, e |
//! | n + 4 | 4 | 1 if the filter is ambiguous, else 0 |
//! | n + 8 | 4 | keys |
//! | n + 12 | 17 e | by rising low half of the hash, then high half: 16 bytes of hash, 1 of run |
//! | n + 12 + 17 e | 8 | `checksum64` of the bytes from n on, seed 1 |
//!
//! All numbers are little endian.

use alluvium_base::checksum::checksum64;
use alluvium_base::{Corruption, KeyHash};

use super::filter::{FINGERPRINT_BITS_MAX, FINGERPRINT_BITS_MIN, MultiLevelFilter, RUN_BITS, RUNS_MAX};
use super::secondary::{Secondary, order};
use crate::cuckoo::envelope::{CHECKSUM_LEN, HEADER_LEN, Header, Kind};
use crate::cuckoo::placement::WAYS;
use crate::packed_tags::{PackedTags, packed_len};

const KIND: Kind = Kind {
    name: "multi-level filter",
    magic: *b"ALVMLEVF",
    tag_bits: FINGERPRINT_BITS_MIN + RUN_BITS..=FINGERPRINT_BITS_MAX + RUN_BITS,
    payload_len: |header| packed_len(header.buckets, header.tag_bits),
};

/// Bytes of the secondary table's head.
const HEAD_LEN: usize = 12;
/// Distinguishes the secondary table's checksum from the primary one's.
const SECONDARY_SEED: u64 = 1;
/// Bytes of a secondary entry.
const ENTRY_LEN: usize = 17;

impl MultiLevelFilter {
    /// The filter as bytes: its lanes, 17 bytes for each key of the secondary table, and 52 more; protected by
    /// checksums.
    pub fn to_bytes(&self) -> Vec<u8> {
        let lanes = self.lanes();
        let occupied = occupied(lanes) as u32;
        let mut bytes =
            KIND.begin(Header { tag_bits: lanes.width(), buckets: lanes.buckets(), entries: occupied });
        bytes.extend_from_slice(lanes.packed());
        let mut bytes = KIND.seal(bytes);
        let start = bytes.len();
        let fields = [self.secondary_len() as u32, u32::from(self.is_ambiguous()), self.len() as u32];
        fields.iter().for_each(|field| bytes.extend_from_slice(&field.to_le_bytes()));
        for (hash, run) in self.secondary().entries() {
            bytes.extend_from_slice(&hash.0.to_le_bytes());
            bytes.push(run);
        }
        let checksum = checksum64(&bytes[start..], SECONDARY_SEED);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads the filter from `bytes` that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// [`Corruption`] when `bytes` are anything else. Its offset is relative to `bytes`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Corruption> {
        let start = KIND.len_in(bytes)?;
        let (header, payload) = KIND.open(&bytes[..start])?;
        let lanes = PackedTags::from_stored(&KIND, &header, payload)?;
        for bucket in 0..lanes.buckets() {
            for lane in (0..WAYS).map(|way| lanes.tag(bucket, way)) {
                if lane != 0 && lane >> RUN_BITS == 0 {
                    let expected = "lanes with a fingerprint, or 0".to_owned();
                    return Err(KIND.corruption(HEADER_LEN, expected, format!("{lane} in bucket {bucket}")));
                }
            }
        }
        KIND.check_entries(&header, occupied(&lanes))?;
        let (secondary, is_ambiguous, len) = secondary(bytes, start)?;
        Ok(Self::from_parts(lanes, secondary, len, is_ambiguous))
    }
}

fn occupied(lanes: &PackedTags) -> u64 {
    let of_bucket = |bucket| (0..WAYS).filter(|&way| lanes.tag(bucket, way) != 0).count() as u64;
    (0..lanes.buckets()).map(of_bucket).sum()
}

/// The secondary table at `start` of `bytes`, whether the filter is ambiguous, and its number of keys.
fn secondary(bytes: &[u8], start: usize) -> Result<(Secondary, bool, u32), Corruption> {
    let rest = &bytes[start..];
    let wrong_len = |expected: usize| {
        KIND.corruption(
            start,
            format!("{expected} bytes of secondary table"),
            format!("{} bytes", rest.len()),
        )
    };
    if rest.len() < HEAD_LEN + CHECKSUM_LEN {
        return Err(wrong_len(HEAD_LEN + CHECKSUM_LEN));
    }
    let field = |at: usize| u32::from_le_bytes(std::array::from_fn(|index| rest[at + index]));
    let (entries, ambiguous, len) = (field(0), field(4), field(8));
    let expected = HEAD_LEN + entries as usize * ENTRY_LEN + CHECKSUM_LEN;
    if rest.len() != expected {
        return Err(wrong_len(expected));
    }
    let (body, stored) = rest.split_at(expected - CHECKSUM_LEN);
    let checksum = checksum64(body, SECONDARY_SEED);
    if stored != checksum.to_le_bytes() {
        let offset = start + body.len();
        return Err(KIND.corruption(offset, format!("checksum {checksum:016x}"), format!("{stored:02x?}")));
    }
    if ambiguous > 1 {
        return Err(KIND.corruption(start + 4, "0 or 1", ambiguous.to_string()));
    }
    let mut table: Vec<(KeyHash, u8)> = Vec::with_capacity(entries as usize);
    for (number, entry) in body[HEAD_LEN..].chunks_exact(ENTRY_LEN).enumerate() {
        let offset = start + HEAD_LEN + number * ENTRY_LEN;
        let hash = KeyHash(u128::from_le_bytes(std::array::from_fn(|index| entry[index])));
        let run = entry[ENTRY_LEN - 1];
        if u32::from(run) >= RUNS_MAX {
            return Err(KIND.corruption(offset, format!("a run below {RUNS_MAX}"), run.to_string()));
        }
        if table.last().is_some_and(|(before, _)| order(*before) >= order(hash)) {
            return Err(KIND.corruption(offset, "rising hashes", format!("{:032x}", hash.0)));
        }
        table.push((hash, run));
    }
    Ok((Secondary::new(table), ambiguous == 1, len))
}
