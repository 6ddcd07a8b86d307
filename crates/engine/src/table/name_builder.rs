//! [`NameBuilder`]: the names of a section's prefixes, on their way into pages behind those of its items.
//!
//! Items lie by the hashes of their prefixes, which says nothing of the prefixes' order. SlimDB's answer (§3.3) is a
//! secondary index of all prefixes, which every insertion would have to ask. Here every table has the names of its own
//! prefixes, in order: a listing merges those of all tables, and writes ask nothing
//! ([decision 0027](../../../../docs/decisions/0027-tables-name-their-prefixes.md)).

use alluvium_base::KeyHasher;

use super::error::{Error, Result};
use super::output::Output;
use super::page::{Layout, page_seed, page_tag};
use super::page_builder::PageBuilder;
use crate::item::{Item, ItemKind};
use alluvium_base::KeyHash;

/// The distinct prefixes of items that come in the order of their hashes: all of one prefix together, but for those of
/// equal hash. Holds the bytes of each and 24 besides.
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
    is_live: bool,
}

/// A prefix of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name<'a> {
    /// Its bytes.
    pub prefix: &'a [u8],
    /// Whether no item of it here is a tombstone or expires some time: where that is so in all tables and in the log,
    /// the prefix has items.
    pub is_live: bool,
}

/// Whether the item keeps its prefix alive for as long as nothing newer hides it.
pub(crate) fn is_lasting(item: &Item<'_>) -> bool {
    !item.is_tombstone() && item.expires_at_ms.is_none()
}

impl NameBuilder {
    /// Adds the prefix of an item; keys without one have no place in a semi-sorted keyspace.
    #[inline]
    pub fn push(&mut self, hasher: &KeyHasher, item: &Item<'_>) {
        let Some(prefix) = hasher.prefix_of(item.key) else { return };
        let is_live = is_lasting(item);
        match self.places.last_mut() {
            Some(last) if self.bytes[last.start..] == *prefix => last.is_live &= is_live,
            _ => {
                self.places.push(Place { start: self.bytes.len(), len: prefix.len(), is_live });
                self.bytes.extend_from_slice(prefix);
            }
        }
    }

    /// Puts the names in order; each comes once from now on.
    pub fn sort(&mut self) {
        let bytes = &self.bytes;
        let name = |place: &Place| &bytes[place.start..place.start + place.len];
        self.places.sort_unstable_by(|one, other| name(one).cmp(name(other)));
        self.places.dedup_by(|again, first| {
            let is_same = name(again) == name(first);
            first.is_live &= again.is_live || !is_same;
            is_same
        });
    }

    /// The names in their present order.
    pub fn names(&self) -> impl Iterator<Item = Name<'_>> {
        let name = |place: &Place| Name {
            prefix: &self.bytes[place.start..place.start + place.len],
            is_live: place.is_live,
        };
        self.places.iter().map(name)
    }

    /// Writes the names as pages of the file with this seed, and returns how many.
    pub fn write(mut self, hasher: &KeyHasher, output: &mut Output, seed: u64) -> Result<u32> {
        self.sort();
        let mut page = PageBuilder::default();
        let mut page_count: u32 = 0;
        let mut encoding = Vec::new();
        let mut seal = |page: &mut PageBuilder| {
            let (items, body_len) = (page.len(), page.body_len());
            output.append_page(|number, bytes| {
                page.seal(items, body_len, Layout::Names, page_seed(seed, number), bytes)
            })?;
            // One less than can be told: the directory counts one more.
            page_count = page_count
                .checked_add(1)
                .filter(|&count| count < u32::MAX)
                .ok_or_else(|| Error::SectionTooLarge { pages: u64::from(u32::MAX) })?;
            Ok::<_, Error>(())
        };
        for name in self.names() {
            encoding.clear();
            name.item().encode(&mut encoding);
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
    /// How it is stored: a key without a value, as a tombstone where it may have no items.
    fn item(&self) -> Item<'a> {
        let kind = if self.is_live { ItemKind::Value } else { ItemKind::Tombstone };
        Item { kind, flags: 0, expires_at_ms: None, key: self.prefix, value: &[] }
    }

    /// The name that is stored as `item`.
    pub(super) fn of(item: &Item<'a>) -> Self {
        Self { prefix: item.key, is_live: !item.is_tombstone() }
    }

    /// The tag of its page.
    pub(super) fn tag(&self, hasher: &KeyHasher) -> u8 {
        page_tag(KeyHash(hasher.prefix_hash(self.prefix).unwrap_or_default().into()))
    }
}
