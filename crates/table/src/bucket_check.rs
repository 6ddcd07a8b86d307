//! [`BucketCheck`]: checks that lookups find the items of a group of buckets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use alluvium_base::KeyHash;
use alluvium_index::bucketed::{BucketDirectory, Home, Migration, destination_of, rank};

use crate::page::Page;

/// What was seen of a group of buckets, with the hashes and keys of its items.
#[derive(Debug)]
pub(super) struct BucketCheck {
    directory: Arc<BucketDirectory>,
    /// Migrations out of the sound pages of the group.
    migrations: BTreeMap<u32, Vec<Migration>>,
    items: BTreeMap<(KeyHash, Vec<u8>), u32>,
    /// Hashes of keys that occur twice.
    twice: BTreeSet<KeyHash>,
}

/// An item or bucket that is not as it should be.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Misplaced {
    pub expected: String,
    pub found: String,
}

impl BucketCheck {
    /// A check of the section that has this directory.
    pub fn new(directory: Arc<BucketDirectory>) -> Self {
        Self { directory, migrations: BTreeMap::new(), items: BTreeMap::new(), twice: BTreeSet::new() }
    }

    /// Notes a sound page.
    pub fn begin_page(&mut self, number: u32, page: &Page<'_>) {
        self.migrations.insert(number, page.migrations());
    }

    /// Notes an item of the page of this number.
    pub fn add(&mut self, number: u32, hash: KeyHash, key: &[u8]) {
        if self.items.insert((hash, key.to_vec()), number).is_some() {
            self.twice.insert(hash);
        }
    }

    /// After the last page of a group, looks for each of its items as a lookup does, except items whose home page is
    /// damaged.
    pub fn end_page(&mut self, number: u32) -> Result<(), Misplaced> {
        if number + 1 < self.directory.pages_around(number).end {
            return Ok(());
        }
        let items = std::mem::take(&mut self.items);
        let migrations = std::mem::take(&mut self.migrations);
        if let Some(hash) = std::mem::take(&mut self.twice).first() {
            return Err(Misplaced { expected: "each key once".to_owned(), found: format!("twice {hash:?}") });
        }
        for ((hash, _), page) in items {
            let Some(Home::Page(home)) = self.directory.home(hash) else {
                if self.is_among(hash, page) {
                    continue;
                }
                return Err(misplaced(hash, "in its group", page));
            };
            let Some(given) = migrations.get(&home) else { continue };
            let distance = destination_of(given.iter().copied(), rank(hash, home)).unwrap_or(0);
            let place = home.wrapping_add_signed(distance.into());
            if page != place {
                return Err(misplaced(hash, &format!("on page {place}"), page));
            }
            let remembered = self.directory.locate(hash);
            if remembered != Some(Home::Page(home)) && remembered != Some(Home::Page(page)) {
                return Err(misplaced(hash, &format!("where the directory says, {remembered:?}"), page));
            }
        }
        Ok(())
    }

    /// Whether the page belongs to the group of the hash, if lookups read all pages of that group.
    fn is_among(&self, hash: KeyHash, page: u32) -> bool {
        let home = self.directory.home(hash);
        matches!(home, Some(Home::Pages { first, last }) if (first..=last).contains(&page))
    }
}

fn misplaced(hash: KeyHash, expected: &str, page: u32) -> Misplaced {
    Misplaced { expected: format!("hash {hash:?} {expected}"), found: format!("it on page {page}") }
}
