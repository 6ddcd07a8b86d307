//! [`GroupBuilder`]: gathers items in the order of their hashes until they fill a group of buckets, then balances the
//! buckets.

use alluvium_base::KeyHash;
use alluvium_base::checksum::checksum64;
use alluvium_index::bucketed::{
    Balance, BucketDirectory, BucketDirectoryBuilder, BucketRules, GroupRange, MIGRATION_BYTES, Migration,
    SizedItem, balance, write_migrations,
};

use crate::error::{Error, Result};
use crate::output::Output;
use crate::page::{CARRIES, HEADER_BYTES, Layout, PAGE_BYTES, page_seed, page_tag};

/// Bytes of a bucket for tags, items and migrations.
const CAPACITY_BYTES: usize = PAGE_BYTES - HEADER_BYTES;
/// Buckets of a group: enough that under-loaded ones have room for the excess of overloaded ones, and few enough that a
/// merge can hold a group of each table that it reads.
pub(super) const GROUP_BUCKETS: usize = 64;
/// Fill of the buckets. The paper has 0.95 (Wu's thesis, §4.2.4.2). Above 0.97, groups of items of 200 bytes begin to
/// need spare buckets; at 0.98, those of items of 100 bytes do.
const FILL: f64 = 0.97;
/// Share of the buckets whose migrations are kept in memory: those with the most migrations. The paper has a fifth
/// (1792 of 8192), and a second read for one present key in two hundred. With items of up to 200 bytes two buckets in
/// five have migrations, so this share includes all of them, for a third of a bit per item; filters would take four
/// times as many bits to save a tenth of these reads.
const REMEMBERED_SHARE: f64 = 0.5;
/// Numbers of home pages tried for a group, from the minimum on. Each home page more costs a page, as does each spare
/// page.
const HOMES_TRIED: u32 = 8;

/// A group being gathered, and the directory of those before it. Holds the items of a group: 256 KiB, or more if
/// leading hash bits do not distinguish the items.
#[derive(Debug)]
pub(super) struct GroupBuilder {
    directory: BucketDirectoryBuilder,
    /// Lowest hash of the group.
    low: u64,
    bytes: Vec<u8>,
    items: Vec<GroupItem>,
}

/// An item of the group.
#[derive(Clone, Copy, Debug)]
struct GroupItem {
    hash: KeyHash,
    start: u32,
    len: u32,
}

/// The pages of a group after it was written, and the bytes used in them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WrittenGroup {
    pub pages: u32,
    pub used_bytes: u64,
}

impl GroupBuilder {
    /// A builder of a section whose hashes begin with `low`.
    pub fn new(low: u64) -> Self {
        let directory = BucketDirectoryBuilder::new(REMEMBERED_SHARE);
        Self { directory, low, bytes: Vec::new(), items: Vec::new() }
    }

    /// The highest hash of the group, if it is full and an item of `hash` belongs to the next one.
    pub fn ends_before(&self, hash: KeyHash) -> Option<u64> {
        let last = self.items.last()?;
        let is_full = self.taken_bytes() as f64 >= GROUP_BUCKETS as f64 * FILL * CAPACITY_BYTES as f64;
        (is_full && hash.high() > last.hash.high()).then(|| hash.high() - 1)
    }

    /// Appends an encoded item.
    pub fn push(&mut self, hash: KeyHash, encoded: &[u8]) {
        self.items.push(GroupItem { hash, start: self.bytes.len() as u32, len: encoded.len() as u32 });
        self.bytes.extend_from_slice(encoded);
    }

    /// Bytes that the items take in buckets, with their tags.
    fn taken_bytes(&self) -> usize {
        self.bytes.len() + self.items.len()
    }

    /// Writes the group, which ends with the hash `high`, and begins the next one. Writes nothing if there are no
    /// items.
    pub fn write(&mut self, high: u64, output: &mut Output, seed: u64) -> Result<WrittenGroup> {
        if self.items.is_empty() {
            return Ok(WrittenGroup::default());
        }
        let written = match self.best_balance(high) {
            Some(balance) => {
                let written = self.write_balanced(&balance, output, seed)?;
                self.directory.push_group(self.low, &balance);
                written
            }
            None => {
                let written = self.write_unbalanced(output, seed)?;
                self.directory.push_unbalanced(self.low, written.pages);
                written
            }
        };
        self.items.clear();
        self.bytes.clear();
        self.low = high.saturating_add(1);
        Ok(written)
    }

    /// The directory of all groups of a section whose hashes end with `high`.
    pub fn finish(self, high: u64) -> BucketDirectory {
        self.directory.finish(high)
    }

    /// The group with as few pages as its items fit in, or `None` if their hashes are too much alike.
    fn best_balance(&self, high: u64) -> Option<Balance> {
        let sized = |item: &GroupItem| SizedItem { hash: item.hash, bytes: item.len + 1 };
        let items: Vec<SizedItem> = self.items.iter().map(sized).collect();
        let range = GroupRange { low: self.low, high };
        let rules = BucketRules { capacity_bytes: CAPACITY_BYTES as u32, first_page: self.directory.pages() };
        // A group ends when its last item has filled it, so the last item may be one too many.
        let before_last = self.taken_bytes() - items.last().map_or(0, |last| last.bytes as usize);
        let homes_min = (before_last as f64 / (FILL * CAPACITY_BYTES as f64)).ceil().max(1.0) as u32;
        let mut best: Option<Balance> = None;
        for homes in homes_min..homes_min + HOMES_TRIED {
            let pages = |balance: &Balance| balance.homes + balance.spares;
            if best.as_ref().is_some_and(|best| pages(best) <= homes) {
                break;
            }
            let Ok(balance) = balance(&items, range, homes, rules) else { continue };
            if best.as_ref().is_none_or(|best| pages(&balance) < pages(best)) {
                best = Some(balance);
            }
        }
        best
    }

    fn write_balanced(&self, balance: &Balance, output: &mut Output, seed: u64) -> Result<WrittenGroup> {
        let pages = balance.homes + balance.spares;
        let mut of_bucket: Vec<Vec<GroupItem>> = vec![Vec::new(); pages as usize];
        for (item, &bucket) in self.items.iter().zip(&balance.buckets) {
            of_bucket[bucket as usize].push(*item);
        }
        let mut written = WrittenGroup::default();
        let mut migrations: Vec<Migration> = Vec::new();
        let mut given = balance.migrations.iter().peekable();
        for (bucket, items) in (0u32..).zip(&of_bucket) {
            migrations.clear();
            while let Some((_, migration)) = given.next_if(|(source, _)| *source == bucket) {
                migrations.push(*migration);
            }
            self.write_page(items, &migrations, output, seed, &mut written)?;
        }
        Ok(written)
    }

    /// Writes the items one after the other, for lookups that search all pages of the group.
    fn write_unbalanced(&self, output: &mut Output, seed: u64) -> Result<WrittenGroup> {
        let mut written = WrittenGroup::default();
        let mut rest = &self.items[..];
        while !rest.is_empty() {
            let mut taken = 0;
            let fits = rest.iter().take_while(|item| {
                taken += item.len as usize + 1;
                taken <= CAPACITY_BYTES
            });
            let (page, later) = rest.split_at(fits.count());
            self.write_page(page, &[], output, seed, &mut written)?;
            rest = later;
        }
        Ok(written)
    }

    fn write_page(
        &self,
        items: &[GroupItem],
        migrations: &[Migration],
        output: &mut Output,
        seed: u64,
        written: &mut WrittenGroup,
    ) -> Result<()> {
        if u64::from(self.directory.pages()) + u64::from(written.pages) >= u64::from(u32::MAX) {
            return Err(Error::SectionTooLarge { pages: self.directory.pages().into() });
        }
        let used =
            output.append_page(|number, page| self.seal(items, migrations, page_seed(seed, number), page))?;
        written.pages += 1;
        written.used_bytes += used as u64;
        Ok(())
    }

    /// Fills `out` with a bucket; returns how many of its bytes are used.
    fn seal(&self, items: &[GroupItem], migrations: &[Migration], seed: u64, out: &mut [u8]) -> usize {
        let mut given = Vec::with_capacity(migrations.len() * MIGRATION_BYTES);
        write_migrations(migrations, &mut given);
        let first_len = items.first().map_or(0, |item| item.len);
        let is_uniform = items.iter().all(|item| item.len == first_len);
        let (flags, len) = match given.len() {
            0 if is_uniform => (0, first_len as u16),
            0 => (0, 0),
            given => (CARRIES, given as u16),
        };
        let (mut tags_at, mut at) = (HEADER_BYTES, HEADER_BYTES + items.len());
        out[at..at + given.len()].copy_from_slice(&given);
        at += given.len();
        for item in items {
            let encoded = &self.bytes[item.start as usize..(item.start + item.len) as usize];
            out[tags_at] = page_tag(item.hash);
            out[at..at + encoded.len()].copy_from_slice(encoded);
            (tags_at, at) = (tags_at + 1, at + encoded.len());
        }
        out[at..].fill(0);
        out[8..10].copy_from_slice(&(items.len() as u16).to_le_bytes());
        out[10..12].copy_from_slice(&(at as u16).to_le_bytes());
        out[12..14].copy_from_slice(&[Layout::Bucketed as u8, flags]);
        out[14..16].copy_from_slice(&len.to_le_bytes());
        let checksum = checksum64(&out[8..], seed);
        out[..8].copy_from_slice(&checksum.to_le_bytes());
        at
    }
}
