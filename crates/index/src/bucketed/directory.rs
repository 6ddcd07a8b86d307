//! [`BucketDirectory`]: from hash to bucket.

use alluvium_base::{Corruption, KeyHash};

use super::balance::{GroupRange, MARK_HIGH_BITS, bucket_of};
use super::migration::Migration;
use super::rank;
use crate::elias_fano::wire::{WireReader, WireWriter};

const NAME: &str = "bucket directory";
const KIND: u64 = 0x3152_4944_544b_4342;

/// Maximum number of pages of a table.
const PAGES_MAX: u64 = u32::MAX as u64;

/// The part of a bucketed table that is in memory: where groups of buckets begin, and the migrations of the most
/// overloaded buckets. Immutable; built by a [`BucketDirectoryBuilder`](super::BucketDirectoryBuilder).
///
/// Cost: 20 bytes a group and 8 for each remembered migration; a lookup does a binary search in each list.
///
/// # Bytes
///
/// Little-endian 64-bit words: kind (`0x3152_4944_544b_4342`), pages, highest hash, number of groups, number of
/// remembered migrations; for each group, ascending, its lowest hash, and its first page | homes << 32; for each
/// migration, by page and mark, page | the mark's high half << 32 | distance << 48; XXH3-64 of everything before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketDirectory {
    groups: Vec<Group>,
    remembered: Vec<Remembered>,
    pages: u32,
    high: u64,
}

/// Buckets over a range of hashes that are balanced together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// Lowest hash.
    pub low: u64,
    pub first_page: u32,
    /// Number of buckets that hashes lead to; 0 when a lookup must read all buckets of the group.
    pub homes: u32,
    /// Index of the group's first migration among the remembered ones.
    pub first_remembered: u32,
}

/// A migration in memory. Its mark has no low bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Remembered {
    /// Page of the giving bucket.
    pub page: u32,
    mark_high: u16,
    distance: i16,
}

impl Remembered {
    /// Returns `None` when the high half of the mark is not enough.
    pub fn new(page: u32, migration: Migration) -> Option<Self> {
        let is_enough = migration.mark & !MARK_HIGH_BITS == 0;
        let mark_high = (migration.mark >> 16) as u16;
        is_enough.then_some(Self { page, mark_high, distance: migration.distance })
    }
}

/// Where to look for an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// On this page, or on another one if the bucket there says that the item was moved.
    Page(u32),
    /// On any of the pages `first..=last`, of a group that could not be balanced.
    Pages {
        /// The first one.
        first: u32,
        /// The last one.
        last: u32,
    },
}

impl BucketDirectory {
    pub(super) fn new(groups: Vec<Group>, remembered: Vec<Remembered>, pages: u32, high: u64) -> Self {
        Self { groups, remembered, pages, high }
    }

    /// Number of pages.
    pub fn pages(&self) -> u64 {
        self.pages.into()
    }

    /// Number of groups.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Migrations in memory.
    pub fn remembered(&self) -> usize {
        self.remembered.len()
    }

    /// The group, in `0..groups()`, that holds hashes with leading bits `high`; the nearest group if none does.
    #[inline]
    pub fn group_of(&self, high: u64) -> usize {
        self.groups.partition_point(|group| group.low <= high).saturating_sub(1)
    }

    /// Pages of group number `group`; empty if there is no such group.
    pub fn group_pages(&self, group: usize) -> std::ops::Range<u32> {
        let first = |group: usize| self.groups.get(group).map_or(self.pages, |group| group.first_page);
        first(group)..first(group + 1)
    }

    /// Pages of the group that `page` belongs to.
    pub fn pages_around(&self, page: u32) -> std::ops::Range<u32> {
        let group = self.groups.partition_point(|group| group.first_page <= page).saturating_sub(1);
        self.group_pages(group)
    }

    /// Lowest and highest hash of group `number`, which must exist.
    fn group_range(&self, number: usize) -> GroupRange {
        let high = self.groups.get(number + 1).map_or(self.high, |next| next.low - 1);
        GroupRange { low: self.groups[number].low, high }
    }

    /// The location of an item with `hash` before any migration, or `None` if no hash with its leading bits is here.
    #[inline]
    pub fn home(&self, hash: KeyHash) -> Option<Home> {
        let number = self.group_of(hash.high());
        let group = self.groups.get(number)?;
        let range = self.group_range(number);
        if !(range.low..=range.high).contains(&hash.high()) {
            return None;
        }
        if group.homes == 0 {
            return Some(Home::Pages { first: group.first_page, last: self.group_pages(number).end - 1 });
        }
        Some(Home::Page(group.first_page + bucket_of(hash.high(), range, group.homes)))
    }

    /// Where to look first for an item with `hash`: where it was moved, if that is remembered, else at home.
    #[inline]
    pub fn locate(&self, hash: KeyHash) -> Option<Home> {
        let home = self.home(hash)?;
        let Home::Page(page) = home else { return Some(home) };
        let number = self.group_of(hash.high());
        let start = self.groups[number].first_remembered as usize;
        let next = self.groups.get(number + 1).map(|next| next.first_remembered as usize);
        let given = &self.remembered[start..next.unwrap_or(self.remembered.len())];
        let first = given.partition_point(|given| given.page < page);
        let rank_high = (rank(hash, page) >> 16) as u16;
        let mut moved = page;
        for given in given[first..].iter().take_while(|given| given.page == page) {
            if given.mark_high <= rank_high {
                moved = page.wrapping_add_signed(given.distance.into());
            }
        }
        Some(Home::Page(moved))
    }

    /// Bytes of memory, this value included.
    pub fn memory_bytes(&self) -> u64 {
        let groups = self.groups.capacity() * size_of::<Group>();
        let remembered = self.remembered.capacity() * size_of::<Remembered>();
        (size_of::<Self>() + groups + remembered) as u64
    }

    /// The directory as bytes, in the layout above.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = WireWriter::new(KIND, 6 + 2 * self.groups.len() + self.remembered.len());
        writer.words(&[self.pages.into(), self.high, self.groups.len() as u64, self.remembered.len() as u64]);
        for group in &self.groups {
            writer.words(&[group.low, u64::from(group.first_page) | u64::from(group.homes) << 32]);
        }
        for given in &self.remembered {
            let distance = u64::from(given.distance as u16);
            writer.word(u64::from(given.page) | u64::from(given.mark_high) << 32 | distance << 48);
        }
        writer.finish()
    }

    /// The directory that [`to_bytes`](Self::to_bytes) wrote. Every page that it leads to is one of its pages.
    ///
    /// # Errors
    /// When checksum, order or numbers are wrong.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Corruption> {
        let mut reader = WireReader::new(NAME, KIND, bytes)?;
        let pages = reader.word_up_to(PAGES_MAX, "a number of pages")? as u32;
        let high = reader.word()?;
        let group_count = reader.word_up_to(u64::from(pages), "a number of groups")? as usize;
        let remembered_count = reader.word_up_to(PAGES_MAX, "a number of migrations")? as usize;
        let groups = reader.words(group_count * 2)?;
        let remembered = reader.words(remembered_count)?;
        let groups: Vec<Group> = groups
            .chunks_exact(2)
            .map(|words| Group {
                low: words[0],
                first_page: words[1] as u32,
                homes: (words[1] >> 32) as u32,
                first_remembered: 0,
            })
            .collect();
        let remembered: Vec<Remembered> = remembered
            .into_iter()
            .map(|word| Remembered {
                page: word as u32,
                mark_high: (word >> 32) as u16,
                distance: (word >> 48) as u16 as i16,
            })
            .collect();
        let mut directory = Self::new(groups, remembered, pages, high);
        if let Err(expected) = directory.check() {
            return Err(reader.corruption(expected, "others"));
        }
        reader.finish()?;
        for group in &mut directory.groups {
            let first = directory.remembered.partition_point(|given| given.page < group.first_page);
            group.first_remembered = first as u32;
        }
        Ok(directory)
    }

    /// Returns the first violated expectation, if any.
    fn check(&self) -> Result<(), &'static str> {
        let ascends = |one: &Group, other: &Group| one.low < other.low && one.first_page < other.first_page;
        if !self.groups.is_sorted_by(ascends) {
            return Err("groups in the order of hashes and pages");
        }
        if self.groups.first().map_or(self.pages, |first| first.first_page) != 0
            || self.groups.last().is_some_and(|last| last.first_page >= self.pages || last.low > self.high)
        {
            return Err("groups over all pages");
        }
        let within = |number: usize| self.groups[number].homes <= self.group_pages(number).len() as u32;
        if !(0..self.groups.len()).all(within) {
            return Err("homes within their groups");
        }
        if !self
            .remembered
            .is_sorted_by(|one, other| (one.page, one.mark_high) < (other.page, other.mark_high))
        {
            return Err("migrations in order");
        }
        let leads_here = |given: &Remembered| {
            given.page < self.pages
                && given.page.checked_add_signed(given.distance.into()).is_some_and(|page| page < self.pages)
        };
        if !self.remembered.iter().all(leads_here) {
            return Err("migrations between pages of the table");
        }
        Ok(())
    }
}
