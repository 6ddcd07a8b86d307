//! Converts items between slices and the words of a ring.

use crate::memory::{Ring, UNIT_BYTES};
use crate::sync::Ordering;

use super::header::Header;
use super::view::Metadata;

/// Writes an item, starting at word `unit`. Unused bytes at its end keep their value.
#[inline(always)]
pub(crate) fn write_item(
    ring: &Ring,
    unit: usize,
    header: Header,
    metadata: Metadata,
    key: &[u8],
    value: &[u8],
) {
    let store = |word: usize, content: u64| ring.word(unit + word).store(content, Ordering::Relaxed);
    store(0, header.0);
    if header.has_expiry() {
        store(1, metadata.expires_at_ms);
    }
    if header.has_flags() {
        store(header.fixed_words() - 1, u64::from(metadata.flags));
    }
    ring.copy_in(unit * UNIT_BYTES + header.key_start(), key);
    ring.copy_in(unit * UNIT_BYTES + header.value_start(), value);
}

/// The header at word `unit`, if it is the header of an item with this `key` and at most `words_max` words. Beside a
/// writer the word may be anything.
#[inline(always)]
pub(crate) fn header_of(ring: &Ring, unit: usize, words_max: usize, key: &[u8]) -> Option<Header> {
    let header = Header(ring.word(unit).load(Ordering::Relaxed));
    let is_it = header.key_len() == key.len()
        && header.is_sound()
        && header.words() <= words_max
        && ring.is_equal(unit * UNIT_BYTES + header.key_start(), key);
    is_it.then_some(header)
}

/// [`header_of`] for an item without expiry and flags, in fewer instructions.
#[inline(always)]
pub(crate) fn plain_header_of(ring: &Ring, unit: usize, words_max: usize, key: &[u8]) -> Option<Header> {
    let [word, first] = ring.load(unit)?;
    let header = Header(word);
    // Check that the key is within the item before comparing it: the word may be anything.
    if !header.is_plain(key.len()) || header.words() > words_max {
        return None;
    }
    header.plain_value_len(key.len())?;
    let is_it = match <[u8; UNIT_BYTES]>::try_from(key) {
        Ok(key) => first == u64::from_ne_bytes(key),
        Err(_) => ring.is_equal((unit + 1) * UNIT_BYTES, key),
    };
    is_it.then_some(header)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_of_all_lengths_come_back_also_across_the_end() {
        let ring = Ring::new(4096, 4096, crate::memory::Pages::AsUsed).unwrap();
        let bytes: Vec<u8> = (0..=255).cycle().take(600).collect();
        for unit in [0, 17, 500, 511] {
            for key_len in 0..40 {
                for value_len in [0, 1, 7, 8, 9, 31, 64, 255, 500] {
                    let (key, value) = (&bytes[1..1 + key_len], &bytes[3..3 + value_len]);
                    let header =
                        Header::new(key_len, value_len, key_len % 2 == 1, value_len % 2 == 1).unwrap();
                    let metadata = Metadata { expires_at_ms: 9, flags: 7 };
                    write_item(&ring, unit, header, metadata, key, value);
                    assert_eq!(header_of(&ring, unit, header.words(), key), Some(header));
                    assert_eq!(header_of(&ring, unit, header.words() - 1, key), None);
                    let mut out = vec![0; value_len];
                    ring.copy_out(unit * UNIT_BYTES + header.value_start(), &mut out);
                    assert_eq!(out, value, "unit {unit}, key of {key_len}, value of {value_len}");
                    if key_len > 0 {
                        let mut other = key.to_vec();
                        other[key_len - 1] ^= 0x80;
                        assert_eq!(header_of(&ring, unit, header.words(), &other), None);
                    }
                }
            }
        }
    }
}
