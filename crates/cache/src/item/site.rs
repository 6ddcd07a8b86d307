//! Places of items in a ring: writes items there, and finds them again by key.

use crate::memory::{Ring, UNIT_BYTES};
use crate::sync::Ordering;

use super::header::Header;
use super::stored::Stored;
use super::view::Metadata;

/// The word of a ring at which an item starts, or will start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site<'a> {
    pub ring: &'a Ring,
    pub unit: usize,
    /// Maximum words of an item here.
    pub words_max: usize,
}

impl<'a> Site<'a> {
    /// Writes an item. Unused bytes at its end keep their value.
    #[inline(always)]
    pub fn write(&self, header: Header, metadata: Metadata, key: &[u8], value: &[u8]) {
        let store =
            |word: usize, content: u64| self.ring.word(self.unit + word).store(content, Ordering::Relaxed);
        store(0, header.0);
        if header.has_expiry() {
            store(1, metadata.expires_at_ms);
        }
        if header.has_flags() {
            store(header.fixed_words() - 1, u64::from(metadata.flags));
        }
        self.ring.copy_in(self.unit * UNIT_BYTES + header.key_start(), key);
        self.ring.copy_in(self.unit * UNIT_BYTES + header.value_start(), value);
    }

    /// Starts loading an item of about `len` bytes.
    #[inline(always)]
    pub fn prefetch(&self, len: usize) {
        self.ring.prefetch(self.unit, len);
    }

    /// Writer: the item here.
    #[inline(always)]
    pub fn item(&self) -> Stored<'a> {
        let header = Header(self.ring.word(self.unit).load(Ordering::Relaxed));
        Stored { ring: self.ring, unit: self.unit, header }
    }

    /// The item here, if its header is sound. Beside a writer it may be anything.
    #[inline(always)]
    pub fn sound_item(&self) -> Option<Stored<'a>> {
        let item = self.item();
        (item.header.is_sound() && item.header.words() <= self.words_max).then_some(item)
    }

    /// The item here, if it has this `key`.
    #[inline(always)]
    pub fn item_of(&self, key: &[u8]) -> Option<Stored<'a>> {
        let item = self.item();
        let header = item.header;
        let is_it = header.key_len() == key.len()
            && header.is_sound()
            && header.words() <= self.words_max
            && self.ring.is_equal(self.unit * UNIT_BYTES + header.key_start(), key);
        is_it.then_some(item)
    }

    /// [`item_of`](Self::item_of) for an item without expiry and flags, in fewer instructions.
    #[inline(always)]
    pub fn plain_item_of(&self, key: &[u8]) -> Option<Stored<'a>> {
        let [word, first] = self.ring.load(self.unit)?;
        let header = Header(word);
        // Check that the key is within the item before comparing it: the word may be anything.
        if !header.is_plain(key.len()) || header.words() > self.words_max {
            return None;
        }
        header.plain_value_len(key.len())?;
        let is_it = match <[u8; UNIT_BYTES]>::try_from(key) {
            Ok(key) => first == u64::from_ne_bytes(key),
            Err(_) => self.ring.is_equal((self.unit + 1) * UNIT_BYTES, key),
        };
        is_it.then_some(Stored { ring: self.ring, unit: self.unit, header })
    }
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
                    let site = Site { ring: &ring, unit, words_max: header.words() };
                    site.write(header, metadata, key, value);
                    let item = site.item_of(key).unwrap();
                    assert_eq!(item.header, header);
                    assert!(Site { words_max: header.words() - 1, ..site }.item_of(key).is_none());
                    assert_eq!(
                        item.value().to_vec(),
                        value,
                        "unit {unit}, key of {key_len}, value of {value_len}"
                    );
                    if key_len > 0 {
                        let mut other = key.to_vec();
                        other[key_len - 1] ^= 0x80;
                        assert!(site.item_of(&other).is_none());
                    }
                }
            }
        }
    }
}
