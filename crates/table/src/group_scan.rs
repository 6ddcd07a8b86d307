//! [`GroupItems`]: the items of a group of buckets, returned to the order of their hashes.

use std::ops::Range;

use alluvium_base::{Corruption, HashRange, KeyHash};
use alluvium_index::bucketed::BucketDirectory;

use crate::bucket_group::GROUP_BUCKETS;
use crate::error::Result;
use crate::item::Item;
use crate::page::{PAGE_BYTES, Page};
use crate::section::Section;

/// Memory of a scanner's group of buckets, for items of a hundred bytes.
pub const GROUP_BYTES: usize = GROUP_BUCKETS * (PAGE_BYTES + 34 * size_of::<GroupItem>());

/// The items of a group of buckets, while it is read and while it is scanned. Takes the bytes of its pages and 24 per
/// item.
#[derive(Debug, Default)]
pub(super) struct GroupItems {
    bytes: Vec<u8>,
    items: Vec<GroupItem>,
    /// The next item; equal to the number of items while the group is being read.
    next: usize,
    /// The page after the group's last; 0 before the first group.
    end_page: u32,
}

#[derive(Clone, Copy, Debug)]
struct GroupItem {
    hash: KeyHash,
    start: u32,
    end: u32,
}

impl GroupItems {
    /// The bytes that contain the items.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Number of items of the group that was read.
    #[inline]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Forgets the group.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.items.clear();
        (self.next, self.end_page) = (0, 0);
    }

    /// The next item of a group that has been read.
    #[inline]
    pub fn next(&mut self) -> Option<(KeyHash, Range<usize>)> {
        let item = self.items.get(self.next)?;
        self.next += 1;
        Some((item.hash, item.start as usize..item.end as usize))
    }

    /// Adds the page of this number. Returns `true` for the last page of a group that has items, which are then in
    /// order.
    ///
    /// # Errors
    /// If the page contains other items than a writer puts there. Does not check that each is in the right bucket.
    pub fn take_in(
        &mut self,
        section: &Section,
        buckets: &BucketDirectory,
        number: u32,
        page: &Page<'_>,
    ) -> Result<bool> {
        if number >= self.end_page {
            self.bytes.clear();
            self.items.clear();
            self.end_page = buckets.pages_around(number).end;
        }
        let mut items = 0;
        let mut rest = page.body();
        let start = self.bytes.len();
        self.bytes.extend_from_slice(rest);
        let range = section.range();
        let mut at = start;
        while let Some((item, len)) = Item::decode(rest) {
            let hash = section.hasher().hash(item.key);
            if !range.contains(hash.0) {
                break;
            }
            self.items.push(GroupItem { hash, start: at as u32, end: (at + len) as u32 });
            (items, at, rest) = (items + 1, at + len, &rest[len..]);
        }
        if items != page.whole_count() || !rest.is_empty() {
            let HashRange { low, high } = range;
            let expected = format!("{} items with hashes in {low:016x}..={high:016x}", page.whole_count());
            let found = format!("{items} and {} bytes more", rest.len());
            let offset = (page.items_start() + at - start) as u64;
            return Err(section.within_page(number, Corruption::new("page", offset, expected, found)).into());
        }
        self.next = self.items.len();
        if number + 1 < self.end_page || self.items.is_empty() {
            return Ok(false);
        }
        let bytes = &self.bytes;
        let key = |item: &GroupItem| {
            Item::decode(&bytes[item.start as usize..item.end as usize]).map(|(item, _)| item.key)
        };
        // Nearly in order: all except the items that were moved.
        self.items.sort_by(|one, other| one.hash.cmp(&other.hash).then_with(|| key(one).cmp(&key(other))));
        self.next = 0;
        Ok(true)
    }
}
