//! [`NameBuilder`]: collects the names of a section's prefixes, and writes them to pages after those of its items.
//!
//! Items are ordered by the hashes of their prefixes, which are unrelated to the prefixes' order. SlimDB's answer
//! (§3.3) is a secondary index of all prefixes, which each insertion would have to search. Here every table has the
//! names of its own prefixes, in order: a listing merges those of all tables, and writes search nothing
//! ([decision 0027](../../../docs/decisions/0027-tables-name-their-prefixes.md)).

use alluvium_base::{KeyHash, KeyHasher};

use crate::error::{Error, Result};
use crate::item::Item;
use crate::output::Output;
use crate::page::{Layout, page_seed, page_tag};
use crate::page_builder::PageBuilder;
use crate::prefix_counts::PrefixCounts;

/// The distinct prefixes of items that arrive in the order of their hashes: all items of one prefix together, except
/// those of equal hash. Holds the bytes of each prefix and 32 more.
#[derive(Debug, Default)]
pub(super) struct NameBuilder {
    /// The names, back to back.
    bytes: Vec<u8>,
    places: Vec<Place>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    start: usize,
    len: usize,
    counts: PrefixCounts,
}

/// A prefix of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name<'a> {
    /// Its bytes.
    pub prefix: &'a [u8],
    /// What the table contains of it.
    pub counts: PrefixCounts,
}

impl NameBuilder {
    /// Adds the prefix of an item. Keys without a prefix do not occur in a semi-sorted keyspace.
    #[inline]
    pub fn push(&mut self, hasher: &KeyHasher, item: &Item<'_>) {
        let Some(prefix) = hasher.prefix_of(item.key) else { return };
        match self.places.last_mut() {
            Some(last) if self.bytes[last.start..] == *prefix => last.counts.add(item),
            _ => {
                let mut counts = PrefixCounts::default();
                counts.add(item);
                self.places.push(Place { start: self.bytes.len(), len: prefix.len(), counts });
                self.bytes.extend_from_slice(prefix);
            }
        }
    }

    /// Sorts the names and removes duplicates.
    pub fn sort(&mut self) {
        let bytes = &self.bytes;
        let name = |place: &Place| &bytes[place.start..place.start + place.len];
        self.places.sort_unstable_by(|one, other| name(one).cmp(name(other)));
        self.places.dedup_by(|again, first| {
            let is_same = name(again) == name(first);
            first.counts = if is_same { first.counts.and(again.counts) } else { first.counts };
            is_same
        });
    }

    /// The names in their present order.
    pub fn names(&self) -> impl Iterator<Item = Name<'_>> {
        let name = |place: &Place| Name {
            prefix: &self.bytes[place.start..place.start + place.len],
            counts: place.counts,
        };
        self.places.iter().map(name)
    }

    /// Writes the names as pages of the file with this seed, and returns the number of pages.
    pub fn write(mut self, hasher: &KeyHasher, output: &mut Output, seed: u64) -> Result<u32> {
        self.sort();
        let mut page = PageBuilder::default();
        let mut page_count: u32 = 0;
        let (mut encoding, mut counts) = (Vec::new(), Vec::new());
        let mut seal = |page: &mut PageBuilder| {
            let (items, body_len) = (page.len(), page.body_len());
            output.append_page(|number, bytes| {
                page.seal(items, body_len, Layout::Names, page_seed(seed, number), bytes)
            })?;
            // One less than the maximum: the directory stores this number plus one.
            page_count = page_count
                .checked_add(1)
                .filter(|&count| count < u32::MAX)
                .ok_or_else(|| Error::SectionTooLarge { pages: u64::from(u32::MAX) })?;
            Ok::<_, Error>(())
        };
        for name in self.names() {
            encoding.clear();
            counts.clear();
            name.counts.encode(&mut counts);
            Item::value(name.prefix, &counts).encode(&mut encoding);
            if !page.fits(encoding.len()) {
                seal(&mut page)?;
            }
            page.push(name.tag(hasher), &encoding);
        }
        if page.len() > 0 {
            seal(&mut page)?;
        }
        Ok(page_count)
    }
}

impl<'a> Name<'a> {
    /// The name stored as `item`: the key is the prefix, the value its counts.
    pub(super) fn of(item: &Item<'a>) -> Option<Self> {
        Some(Self { prefix: item.key, counts: PrefixCounts::decode(item.value)? })
    }

    /// The tag of the name in its page.
    pub(super) fn tag(&self, hasher: &KeyHasher) -> u8 {
        page_tag(KeyHash(hasher.prefix_hash(self.prefix).unwrap_or_default().into()))
    }
}
