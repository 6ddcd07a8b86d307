//! [`BucketDirectoryBuilder`]: groups in, directory out.

use super::balance::Balance;
use super::directory::{BucketDirectory, Group, Remembered};

/// Collects the groups of a table in their order. Holds 12 bytes for each migration that is remembered.
#[derive(Clone, Debug)]
pub struct BucketDirectoryBuilder {
    remembered_share: f64,
    groups: Vec<Group>,
    pages: u32,
    /// What each giving bucket gave, with the bytes of its home items.
    given: Vec<(u32, Remembered)>,
}

impl BucketDirectoryBuilder {
    /// A builder of a directory that remembers the migrations of the fraction `remembered_share` of all buckets, the
    /// most overloaded ones: 0.2 in the paper. With 0, lookups of moved items read two buckets each; with 1, none does.
    pub fn new(remembered_share: f64) -> Self {
        Self { remembered_share, groups: Vec::new(), pages: 0, given: Vec::new() }
    }

    /// Sets the fraction to remember.
    #[must_use]
    pub fn with_remembered_share(self, remembered_share: f64) -> Self {
        Self { remembered_share, ..self }
    }

    /// Pages so far.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// Adds a balanced group whose hashes begin at `low`, above those of the groups before.
    pub fn push_group(&mut self, low: u64, balance: &Balance) {
        for given in balance.migrations.chunk_by(|(one, _), (other, _)| one == other) {
            let (source, page) = (given[0].0, self.pages + given[0].0);
            let remembered: Option<Vec<_>> =
                given.iter().map(|&(_, migration)| Remembered::new(page, migration)).collect();
            // One giving bucket in some thousand has marks that need all their bits.
            let remembered = remembered.into_iter().flatten();
            self.given.extend(remembered.map(|given| (balance.home_bytes[source as usize], given)));
        }
        self.push(low, balance.homes, balance.homes + balance.spares);
    }

    /// Adds a group of `pages` pages that could not be balanced: a lookup of its hashes reads all of them.
    pub fn push_unbalanced(&mut self, low: u64, pages: u32) {
        self.push(low, 0, pages);
    }

    fn push(&mut self, low: u64, homes: u32, pages: u32) {
        self.groups.push(Group { low, first_page: self.pages, homes, first_remembered: 0 });
        self.pages += pages;
    }

    /// Returns the directory of a table whose hashes end with `high`.
    pub fn finish(mut self, high: u64) -> BucketDirectory {
        // A bucket that gave to several is remembered as a whole or not at all, with its marks in order: hence the
        // stable sorts.
        self.given.sort_by_key(|(home_bytes, given)| (std::cmp::Reverse(*home_bytes), given.page));
        let buckets_max = (f64::from(self.pages) * self.remembered_share) as usize;
        let of_buckets = self.given.chunk_by(|(_, one), (_, other)| one.page == other.page);
        let chosen = of_buckets.take(buckets_max).flatten();
        let mut remembered: Vec<Remembered> = chosen.map(|(_, given)| *given).collect();
        remembered.shrink_to_fit();
        self.groups.shrink_to_fit();
        remembered.sort_by_key(|given| given.page);
        for group in &mut self.groups {
            let first = remembered.partition_point(|given| given.page < group.first_page);
            group.first_remembered = first as u32;
        }
        BucketDirectory::new(self.groups, remembered, self.pages, high)
    }
}
