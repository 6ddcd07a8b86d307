//! Reads what is still readable of a damaged manifest.
//!
//! Each record's checksum seeds the next one's, which helps to locate a damaged byte. If it is in a checksum, the
//! payload gives the right one, which differs in one byte. If it is in a length, the start of the next record gives the
//! right one. If it is in a payload, a single flipped bit is found by trying all; otherwise the record is lost, and the
//! next one is read.

use alluvium_base::checksum::checksum64;

use super::edit::Edit;
use super::file::{HEADER_LEN, RECORD_HEADER_LEN, header, record_at};
use super::torn::is_torn;

/// Payloads up to this size are searched for a flipped bit, which takes at most half a second.
const SEARCHED_BYTES_MAX: usize = 32 << 10;

/// The readable records of a manifest.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Scraps {
    /// The edits of all readable records, in order.
    pub edits: Vec<Edit>,
    /// Whether the first record, or another one before a readable one, is missing.
    pub is_incomplete: bool,
    /// Where the last record ends.
    pub end: u64,
}

/// Reads what is readable of a manifest's bytes. Never fails: if the bytes are no manifest, nothing is readable.
pub(crate) fn salvage(bytes: &[u8]) -> Scraps {
    let mut scraps = Scraps::default();
    let mut at = HEADER_LEN;
    let mut chain = first_chain(bytes);
    let mut skipped = 0;
    while let Some(record) = find_record(bytes, at, chain) {
        match record.payload.and_then(|payload| serde_json::from_slice::<Vec<Edit>>(&payload).ok()) {
            Some(edits) => {
                scraps.is_incomplete |= std::mem::take(&mut skipped) > 0;
                scraps.edits.extend(edits);
            }
            None => skipped += 1,
        }
        (at, chain) = (record.end, record.chain);
    }
    scraps.is_incomplete |= scraps.edits.is_empty() || !is_torn(bytes, at, chain);
    scraps.end = at as u64;
    scraps
}

/// The seed of the first record: the stored checksum of the header, or what it should be.
fn first_chain(bytes: &[u8]) -> u64 {
    let stored = bytes.get(16..HEADER_LEN).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
    let candidates = [stored.unwrap_or_default(), header().1];
    let fits = |chain: &u64| record_at(bytes, HEADER_LEN, *chain).is_some();
    candidates.into_iter().find(fits).unwrap_or(candidates[1])
}

struct Salvaged {
    /// `None` if it is damaged beyond repair.
    payload: Option<Vec<u8>>,
    /// Seed of the next record.
    chain: u64,
    end: usize,
}

/// The record at `at`, corrected if the correction can be proved. `None` at the end, or if the bytes make no sense.
fn find_record(bytes: &[u8], at: usize, chain: u64) -> Option<Salvaged> {
    if let Some((payload, checksum)) = record_at(bytes, at, chain) {
        let end = at + RECORD_HEADER_LEN + payload.len();
        return Some(Salvaged { payload: Some(payload.to_vec()), chain: checksum, end });
    }
    let header = bytes.get(at..at.checked_add(RECORD_HEADER_LEN)?)?;
    let stored = u64::from_le_bytes(header[4..].try_into().ok()?);
    let start = at + RECORD_HEADER_LEN;
    let len = u32::from_le_bytes(header[..4].try_into().ok()?) as usize;
    if let Some(payload) = bytes.get(start..start.saturating_add(len)).filter(|payload| !payload.is_empty()) {
        let end = start + len;
        let computed = checksum64(payload, chain);
        if is_one_byte(stored ^ computed) {
            return Some(Salvaged { payload: Some(payload.to_vec()), chain: computed, end });
        }
        if let Some(corrected) = without_flipped_bit(payload, chain, stored) {
            return Some(Salvaged { payload: Some(corrected), chain: stored, end });
        }
        if record_at(bytes, end, stored).is_some() {
            return Some(Salvaged { payload: None, chain: stored, end });
        }
    }
    // The length is damaged: the start of the next record, or the end of the file, shows where this one ends.
    let ends = (start + 1..=bytes.len())
        .find(|&end| end == bytes.len() || record_at(bytes, end, stored).is_some())?;
    let payload = &bytes[start..ends];
    let is_sound = checksum64(payload, chain) == stored;
    (is_sound || ends < bytes.len()).then(|| Salvaged {
        payload: is_sound.then(|| payload.to_vec()),
        chain: stored,
        end: ends,
    })
}

/// Whether all set bits are in one byte, as after damage to one byte of a checksum.
fn is_one_byte(difference: u64) -> bool {
    difference.to_le_bytes().iter().filter(|&&byte| byte != 0).count() == 1
}

/// `payload` with one bit inverted such that its checksum is `expected`.
fn without_flipped_bit(payload: &[u8], seed: u64, expected: u64) -> Option<Vec<u8>> {
    if payload.len() > SEARCHED_BYTES_MAX {
        return None;
    }
    let mut corrected = payload.to_vec();
    for bit in 0..payload.len() * 8 {
        corrected[bit / 8] ^= 1 << (bit % 8);
        if checksum64(&corrected, seed) == expected {
            return Some(corrected);
        }
        corrected[bit / 8] ^= 1 << (bit % 8);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::file::encode_record;
    use alluvium_base::KeyspaceId;

    use alluvium_base::SegmentId;

    use super::*;
    use proptest::prelude::*;

    fn example() -> (Vec<u8>, Vec<Edit>) {
        let (mut bytes, mut chain) = header();
        let mut edits = vec![Edit::Database { seed: 5 }];
        edits.extend((1..5).map(|next_file| Edit::Counters {
            next_file,
            next_segment: SegmentId(1),
            next_keyspace: KeyspaceId(0),
        }));
        for edit in &edits {
            chain = encode_record(chain, std::slice::from_ref(edit), &mut bytes);
        }
        (bytes, edits)
    }

    #[test]
    fn a_sound_manifest_is_read_whole() {
        let (bytes, edits) = example();
        let end = bytes.len() as u64;
        assert_eq!(salvage(&bytes), Scraps { edits, is_incomplete: false, end });
        assert!(salvage(b"").is_incomplete);
    }

    #[test]
    fn a_flipped_bit_costs_nothing() {
        let (bytes, edits) = example();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let whole = Scraps { edits: edits.clone(), is_incomplete: false, end: bytes.len() as u64 };
            assert_eq!(salvage(&damaged), whole, "bit {bit}");
        }
    }

    proptest! {
        /// Everything that is read was written, and missing records before a readable one are reported.
        #[test]
        fn nothing_is_invented(damage in prop::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..4)) {
            let (mut bytes, edits) = example();
            for (at, mask) in damage {
                let at = at.index(bytes.len());
                bytes[at] ^= mask;
            }
            let scraps = salvage(&bytes);
            let mut written = edits.iter();
            prop_assert!(scraps.edits.iter().all(|edit| written.any(|written| written == edit)));
            let prefix = edits.starts_with(&scraps.edits);
            prop_assert!(prefix || scraps.is_incomplete);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            salvage(&bytes);
        }
    }
}
