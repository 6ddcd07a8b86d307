//! A page: the unit of reading, 4 KiB of items with a directory of tags in front.
//!
//! ```text
//!  0   8  checksum64 of bytes 8..4096, seeded with file seed XOR page number
//!  8   2  items that begin here
//! 10   2  bytes used, this header included
//! 12   1  layout of the section (1 hash, 2 sorted, 3 bucketed)
//! 13   1  bit 0: the page begins with the rest of an item; bit 1: its last item continues in the next page
//! 14   2  with bit 0 the length of that rest, else the length of every item, or 0 when they differ
//! 16      one tag byte per item, the rest of an item, then the items, back to back; zeros up to 4096
//! ```
//!
//! In bucketed layout no item continues, and the bucket's migrations are stored in the position of an item's rest (see
//! `alluvium_index::bucketed`).
//!
//! If a page that ends in front of an item would waste more than [`PAGE_LOSS_MAX`] bytes, the item continues in the
//! next page ([decision 0014](../../../docs/decisions/0014-large-items-go-on-in-the-next-page.md)). Small items
//! never do.
//!
//! Thirty-four items of 116 bytes fill a page exactly. A search compares tags eight at a time and decodes only items
//! whose tag matches, one in 256 of the others. If all items have one length, the position of an item follows from its
//! number; otherwise the headers before it are read one after the other. Unlike SILT (§3.2), whose HashStore has slots
//! of fixed size, items are packed, whatever their lengths. [`PageBuilder`](crate::page_builder::PageBuilder) writes
//! pages.

use alluvium_base::checksum::checksum64;
use alluvium_base::{Corruption, KeyHash};
use alluvium_index::bucketed::{Migration, destination_of, rank, read_migrations};

use crate::item::{EncodedItem, Item};
pub(crate) use crate::layout::Layout;

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;
/// Bytes in front of the tags.
pub(crate) const HEADER_BYTES: usize = 16;
/// Maximum encoded bytes of an item: with its tag it takes at most half of what the header leaves.
pub const ITEM_BYTES_MAX: usize = (PAGE_BYTES - HEADER_BYTES) / 2 - 1;

/// Maximum bytes that a page leaves unused to keep items whole: a sixteenth. Pages of items of any size lose at most
/// this, except where the index cannot distinguish items' hashes.
pub(crate) const PAGE_LOSS_MAX: usize = PAGE_BYTES / 16;

/// Flag of a page that begins with the rest of an item. On disk: do not renumber.
pub(super) const CARRIES: u8 = 1;
/// Flag of a page whose last item continues in the next page. On disk: do not renumber.
pub(super) const GOES_ON: u8 = 2;

const _: () = assert!(HEADER_BYTES + 34 * (1 + 3 + 116) == PAGE_BYTES);
const _: () = assert!(PAGE_BYTES == alluvium_io::ALIGNMENT && PAGE_BYTES <= u16::MAX as usize);

/// The byte of `hash` that identifies an item in its page. These bits choose neither the cuckoo bucket nor the cuckoo
/// tag, so they also detect a false positive of the filter.
#[inline]
pub(crate) fn page_tag(hash: KeyHash) -> u8 {
    (hash.low() >> TAG_SHIFT) as u8
}

const TAG_SHIFT: u32 = 16;

/// The seed of the checksum of page `number`, so that a page at the position of another fails its check.
#[inline]
pub(crate) fn page_seed(file_seed: u64, number: u64) -> u64 {
    file_seed ^ number
}

/// A page whose checksum and header are right.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page<'a> {
    tags: &'a [u8],
    /// The rest of the last item of the page before.
    carried: &'a [u8],
    /// The migrations of the bucket, if the page is one. Checked.
    migrations: &'a [u8],
    body: &'a [u8],
    uniform_len: usize,
    goes_on: bool,
}

/// The result of [`Page::find`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    Nothing,
    /// The item, and its position in the page.
    Item(usize, Item<'a>),
    /// The position of an item that continues in the next page. It may be the wanted one: its tag matches, and no other
    /// item of the page is.
    Begun(usize),
}

impl<'a> Page<'a> {
    /// Checks `bytes`, the page read under `seed`. Costs some 0.3 µs, nearly all of it for the checksum.
    ///
    /// Corruptions have offsets relative to the page; [`Corruption::within`] makes them absolute.
    #[inline]
    pub fn check(bytes: &'a [u8], seed: u64, layout: Layout) -> Result<Self, Corruption> {
        if bytes.len() != PAGE_BYTES {
            return Err(fault(format!("a page of {PAGE_BYTES} bytes"), format!("{} bytes", bytes.len())));
        }
        let stored = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
        let computed = checksum64(&bytes[8..], seed);
        if stored != computed {
            return Err(fault(format!("page checksum {computed:016x}"), format!("{stored:016x}")));
        }
        let items = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        let used = usize::from(u16::from_le_bytes([bytes[10], bytes[11]]));
        let flags = bytes[13];
        let goes_on = flags & GOES_ON != 0;
        let len = usize::from(u16::from_le_bytes([bytes[14], bytes[15]]));
        let (carried_len, uniform_len) = if flags & CARRIES != 0 { (len, 0) } else { (0, len) };
        if bytes[12] != layout as u8 {
            return Err(fault(format!("a page of layout {layout:?}"), format!("layout byte {}", bytes[12])));
        }
        if flags & !(CARRIES | GOES_ON) != 0 || (flags & CARRIES != 0 && len == 0) {
            return Err(fault("flags of a page".to_owned(), format!("{flags:02x} and length {len}")));
        }
        if used > PAGE_BYTES || used < HEADER_BYTES + items + carried_len {
            return Err(fault(
                format!("{items} tags within at most {PAGE_BYTES} used bytes"),
                format!("{used} used bytes"),
            ));
        }
        if goes_on && (items == 0 || used < PAGE_BYTES || uniform_len != 0) {
            return Err(fault(
                "a full page whose last item continues".to_owned(),
                format!("{used} used bytes"),
            ));
        }
        let (tags, rest) = bytes[HEADER_BYTES..used].split_at(items);
        let (carried, body) = rest.split_at(carried_len);
        let (carried, migrations) =
            if layout == Layout::Bucketed { (&[][..], carried) } else { (carried, &[][..]) };
        if goes_on && layout == Layout::Bucketed {
            return Err(fault("a bucket with whole items".to_owned(), "one that goes on".to_owned()));
        }
        if !migrations.is_empty() {
            let offset = (HEADER_BYTES + items) as u64;
            read_migrations(migrations).map(drop).map_err(|corruption| corruption.within("page", offset))?;
        }
        if uniform_len != 0 && uniform_len * items != body.len() {
            return Err(fault(
                format!("{items} items of {uniform_len} bytes"),
                format!("{} bytes of items", body.len()),
            ));
        }
        Ok(Self { tags, carried, migrations, body, uniform_len, goes_on })
    }

    /// Number of items that begin and end here.
    #[inline]
    pub fn whole_count(&self) -> usize {
        self.tags.len() - usize::from(self.goes_on)
    }

    /// Whether the last item continues in the next page.
    #[inline]
    pub fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// Position in the page of the rest of the last item of the page before; empty if there is none.
    #[inline]
    pub fn carried_range(&self) -> std::ops::Range<usize> {
        let start = HEADER_BYTES + self.tags.len();
        start..start + self.carried.len()
    }

    /// The rest of the last item of the page before.
    #[inline]
    pub fn carried(&self) -> &'a [u8] {
        self.carried
    }

    /// The migrations of a bucket.
    pub fn migrations(&self) -> Vec<Migration> {
        read_migrations(self.migrations).map(Iterator::collect).unwrap_or_default()
    }

    /// The items that begin here, back to back.
    #[inline]
    pub fn body(&self) -> &'a [u8] {
        self.body
    }

    /// Bytes used, header included.
    #[inline]
    pub fn used_bytes(&self) -> usize {
        self.items_start() + self.body.len()
    }

    /// Position of the first item in the page.
    #[inline]
    pub fn items_start(&self) -> usize {
        HEADER_BYTES + self.tags.len() + self.carried.len() + self.migrations.len()
    }

    /// The page that stores an item of `hash` whose home is this page, number `page` of its section. Returns `None` if
    /// the item, if present, is here.
    #[inline]
    pub fn moved_to(&self, hash: KeyHash, page: u32) -> Option<u32> {
        if self.migrations.is_empty() {
            return None;
        }
        let migrations = read_migrations(self.migrations).ok()?;
        let distance = destination_of(migrations, rank(hash, page))?;
        Some(page.wrapping_add_signed(distance.into()))
    }

    /// Finds the item with `key` among those that begin here. Compares only items whose tag is `tag`.
    #[inline]
    pub fn find(&self, tag: u8, key: &[u8]) -> Result<Found<'a>, Corruption> {
        const ONES: u64 = 0x0101_0101_0101_0101;
        let pattern = u64::from(tag) * ONES;
        let mut walk = Walk { number: 0, position: 0 };
        let (words, rest) = self.tags.as_chunks::<8>();
        let mut last = [!tag; 8];
        last[..rest.len()].copy_from_slice(rest);
        for (group, word) in words.iter().chain(std::iter::once(&last)).enumerate() {
            let mut matches = zero_bytes(u64::from_le_bytes(*word) ^ pattern);
            while matches != 0 {
                let number = group * 8 + matches.trailing_zeros() as usize / 8;
                matches &= matches - 1;
                self.walk_to(number, &mut walk)?;
                if number == self.whole_count() {
                    return Ok(Found::Begun(self.items_start() + walk.position));
                }
                let (item, _) = self.decode(walk.position)?;
                if item.key == key {
                    return Ok(Found::Item(self.items_start() + walk.position, item));
                }
            }
        }
        Ok(Found::Nothing)
    }

    /// Moves forward to the position of item `number`.
    #[inline]
    fn walk_to(&self, number: usize, walk: &mut Walk) -> Result<(), Corruption> {
        if self.uniform_len != 0 {
            walk.position = number * self.uniform_len;
            return Ok(());
        }
        while walk.number < number {
            let len = self.body.get(walk.position..).and_then(Item::skip);
            walk.position += len.ok_or_else(|| self.no_item(walk.position))?;
            walk.number += 1;
        }
        Ok(())
    }

    #[inline]
    fn decode(&self, position: usize) -> Result<(Item<'a>, usize), Corruption> {
        self.body.get(position..).and_then(Item::decode).ok_or_else(|| self.no_item(position))
    }

    #[cold]
    fn no_item(&self, position: usize) -> Corruption {
        let offset = self.items_start() + position;
        Corruption::new("page", offset as u64, "an item", "other bytes")
    }

    /// Decodes every whole item. The last must end where the used bytes do, unless another one begins after it.
    pub fn items(&self) -> Result<Vec<(u8, Item<'a>)>, Corruption> {
        Ok(self.encoded_items()?.into_iter().map(|(tag, encoded)| (tag, encoded.item)).collect())
    }

    /// Like [`Page::items`], with the items' encoded bytes.
    pub fn encoded_items(&self) -> Result<Vec<(u8, EncodedItem<'a>)>, Corruption> {
        let mut items = Vec::with_capacity(self.tags.len());
        let mut position = 0;
        for &tag in &self.tags[..self.whole_count()] {
            let (item, len) = self.decode(position)?;
            if self.uniform_len != 0 && len != self.uniform_len {
                return Err(Corruption::new(
                    "page",
                    (self.items_start() + position) as u64,
                    format!("an item of {} bytes, as all of the page", self.uniform_len),
                    format!("{len} bytes"),
                ));
            }
            items.push((tag, EncodedItem { item, bytes: &self.body[position..position + len] }));
            position += len;
        }
        if (position != self.body.len()) != self.goes_on {
            return Err(fault(
                format!("items that end at {}", self.used_bytes()),
                format!("{} bytes more", self.body.len() - position),
            ));
        }
        Ok(items)
    }

    /// The last item's tag and the part of the item that is here, if it continues in the next page.
    pub fn begun(&self) -> Result<Option<(u8, &'a [u8])>, Corruption> {
        if !self.goes_on {
            return Ok(None);
        }
        let last = self.whole_count();
        let mut walk = Walk { number: 0, position: 0 };
        self.walk_to(last, &mut walk)?;
        match self.body.get(walk.position..) {
            Some(head) if !head.is_empty() => Ok(Some((self.tags[last], head))),
            _ => Err(self.no_item(walk.position)),
        }
    }
}

struct Walk {
    number: usize,
    position: usize,
}

/// The high bit of every byte of `word` that is zero, exactly: no carry crosses a byte.
#[inline]
fn zero_bytes(word: u64) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    !(((word & LOW) + LOW) | word | LOW)
}

#[cold]
fn fault(expected: String, found: String) -> Corruption {
    Corruption::new("page", 0, expected, found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page_builder::PageBuilder;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_page_finds_what_a_vector_finds(
            entries in prop::collection::vec((0u8..4, any::<u8>(), 0usize..60), 0..30),
            is_uniform: bool,
            absent_tag: u8,
        ) {
            let entries: Vec<_> = entries
                .into_iter()
                .zip(0u8..)
                .map(|((tag, byte, len), number)| (tag, [number; 3], vec![byte; if is_uniform { 9 } else { len }]))
                .collect();
            let mut builder = PageBuilder::default();
            for (tag, key, value) in &entries {
                let item = Item::value(key, value);
                prop_assert!(builder.fits(item.encoded_len()));
                let mut encoded = Vec::new();
                item.encode(&mut encoded);
                builder.push(*tag, &encoded);
            }
            let mut bytes = [0xff; PAGE_BYTES];
            let (len, body_len) = (builder.len(), builder.body_len());
            let used = builder.seal(len, body_len, Layout::Sorted, 5, &mut bytes);
            prop_assert_eq!(builder.len(), 0);

            let page = Page::check(&bytes, 5, Layout::Sorted).unwrap();
            prop_assert_eq!((page.whole_count(), page.used_bytes()), (entries.len(), used));
            let items = page.items().unwrap();
            for ((tag, key, value), (found_tag, found)) in entries.iter().zip(&items) {
                prop_assert_eq!((tag, &Item::value(key, value)), (found_tag, found));
                let Found::Item(start, found) = page.find(*tag, key).unwrap() else { panic!("an item") };
                prop_assert_eq!(found, Item::value(key, value));
                prop_assert_eq!(Item::decode(&bytes[start..]).unwrap().0, found);
                prop_assert_eq!(page.find(tag ^ 1, key).unwrap(), Found::Nothing);
            }
            prop_assert_eq!(page.find(absent_tag, b"absent").unwrap(), Found::Nothing);
            prop_assert!(Page::check(&bytes, 6, Layout::Sorted).is_err());
            prop_assert!(Page::check(&bytes, 5, Layout::Hash).is_err());
        }

        #[test]
        fn zero_bytes_are_marked_exactly(word: u64, zeros: u8) {
            let mut bytes = word.to_le_bytes();
            for (at, byte) in bytes.iter_mut().enumerate() {
                *byte = if zeros >> at & 1 == 1 { 0 } else { *byte };
            }
            let expected = bytes.map(|byte| if byte == 0 { 0x80 } else { 0 });
            prop_assert_eq!(zero_bytes(u64::from_le_bytes(bytes)).to_le_bytes(), expected);
        }
    }
}
