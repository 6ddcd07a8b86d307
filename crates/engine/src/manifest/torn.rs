//! Distinguishes the end of a manifest that a crash tore from one that is damaged.

use alluvium_base::checksum::checksum64;

use super::file::{RECORD_HEADER_LEN, record_at};

/// The unit that a device writes completely or not at all.
const SECTOR_BYTES: usize = 512;

/// Whether the unsound bytes at `at`, behind a record of the checksum `chain`, are what a crash leaves of a record that
/// was being appended: the file is shorter than the record, or some of its sectors are still zeros. A record is text,
/// so it has no sector of zeros. Nothing is appended before the previous record is durable, so nothing sound follows.
pub(super) fn is_torn(bytes: &[u8], at: usize, chain: u64) -> bool {
    let Some(header) = bytes.get(at..at + RECORD_HEADER_LEN) else { return true };
    let len = u32::from_le_bytes(header[..4].try_into().expect("four bytes")) as usize;
    let stored = u64::from_le_bytes(header[4..].try_into().expect("eight bytes"));
    let start = at + RECORD_HEADER_LEN;
    let end = start.saturating_add(len);
    if end > bytes.len() {
        // Cut short, or its length is damaged: in that case the rest of it, or what follows, is sound.
        let is_whole = checksum64(&bytes[start..], chain) == stored;
        return !is_whole && !(start..bytes.len()).any(|end| record_at(bytes, end, stored).is_some());
    }
    if record_at(bytes, end, stored).is_some() {
        return false;
    }
    let mut at = at;
    while at < end {
        let piece_end = end.min((at / SECTOR_BYTES + 1) * SECTOR_BYTES);
        if bytes[at..piece_end].iter().all(|&byte| byte == 0) {
            return true;
        }
        at = piece_end;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::edit::Edit;
    use super::super::file::{HEADER_LEN, encode_record, header};
    use alluvium_base::BlobId;

    use super::*;
    use proptest::prelude::*;

    fn manifest(records: usize) -> (Vec<u8>, usize, u64) {
        let (mut bytes, mut chain) = header();
        let mut last = (HEADER_LEN, chain);
        for number in 0..records {
            last = (bytes.len(), chain);
            let edits: Vec<_> =
                (0..number as u64 * 7 + 1).map(|file| Edit::AddBlob { file: BlobId(file) }).collect();
            chain = encode_record(chain, &edits, &mut bytes);
        }
        (bytes, last.0, last.1)
    }

    proptest! {
        #[test]
        fn what_sectors_leave_of_a_record_is_torn(records in 1usize..12, kept: u64, cut: prop::sample::Index) {
            let (mut bytes, at, chain) = manifest(records);
            let end = bytes.len();
            for sector in at / SECTOR_BYTES..=(end - 1) / SECTOR_BYTES {
                if kept >> (sector % 64) & 1 == 0 {
                    let (from, to) = (at.max(sector * SECTOR_BYTES), end.min((sector + 1) * SECTOR_BYTES));
                    bytes[from..to].fill(0);
                }
            }
            let is_whole = record_at(&bytes, at, chain).is_some();
            prop_assert!(is_whole || is_torn(&bytes, at, chain));
            let (whole, at, chain) = manifest(records);
            let cut = at + cut.index(whole.len() - at);
            prop_assert!(is_torn(&whole[..cut], at, chain));
        }

        #[test]
        fn a_changed_byte_is_damage(records in 1usize..12, place: prop::sample::Index, mask in 1u8..) {
            let (mut bytes, at, chain) = manifest(records);
            let place = at + place.index(bytes.len() - at);
            bytes[place] ^= mask;
            prop_assert!(!is_torn(&bytes, at, chain));
        }
    }
}
