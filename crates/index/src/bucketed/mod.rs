//! Tables without an index: fixed buckets of a page each, an item's bucket follows from its hash, and what a bucket
//! can't hold is moved to another by a mark in hash space (LSM-trie's HTable, Wu, Xu, Shao, Jiang, USENIX ATC 2015;
//! X. Wu's thesis, §4.2.4.2).
//!
//! ```text
//!   group of buckets               homes             spare
//!   items by hash    [ 0 ][ 1 ][ 2 ][ 3 ]...[ 66 ]   [ 67 ]
//!                      |              ^
//!                      '-- rank ≥ mark: moved
//! ```
//!
//! [`balance`] decides who moves: the most overloaded bucket gives the items of the highest [`rank`] to the most
//! under-loaded one, until no bucket holds more than a page. A bucket that gives never takes, so an item is in its
//! home or one step away. Who gave what is a [`Migration`]: in the giving bucket itself, and for the most overloaded
//! buckets also in memory, in the [`BucketDirectory`], so that a lookup goes to the right bucket at once.
//!
//! # Figures
//!
//! Buckets are 95 % full. With items of 1 to 200 bytes and a fifth of the buckets remembered, 8 bytes each, a lookup
//! reads 1.01 buckets; the directory takes 0.05 bits an item besides. `bench index --structure bucketed`,
//! `bench paper wu-4.5`, `wu-4.7`.
//!
//! # Where we differ
//!
//! - An item's home follows from the *leading* bits of its hash, not from its last ones, and buckets are balanced
//!   within groups of some dozens of neighbours, not over the whole table. So groups lie in the order of hashes, and
//!   tables are written and merged as they are read, with one group in memory.
//! - A group has as many homes as its bytes need, so that tables are as full whatever was expected of their size. What
//!   the paper keeps in a special bucket with an index of its own, items that no bucket takes, goes to *spare* buckets
//!   at the end of the group: they have no homes and take what others give.
//! - A bucket may give to several others, each a range of ranks, and what was moved is never moved again (§4.2.4.2
//!   allows walks over several buckets, and says nothing of buckets that no single other one can relieve).

mod balance;
mod builder;
mod directory;
mod migration;

pub use balance::{Balance, BucketRules, GroupRange, SizedItem, Unbalanced, balance, bucket_of};
pub use builder::BucketDirectoryBuilder;
pub use directory::{BucketDirectory, Home};
pub use migration::{MIGRATION_BYTES, Migration, destination_of, read_migrations, write_migrations};

use alluvium_base::KeyHash;

/// The share of all buckets whose migrations are in memory: 1792 of 8192, the paper's 14 KB.
pub const REMEMBERED_SHARE: f64 = 1792.0 / 8192.0;

/// Where an item stands among those of the bucket on page `page` of its table: the highest are moved first.
///
/// Bits of the hash that choose neither bucket nor tag, rotated by the page (§4.2.4.2), so that a bucket's order says
/// nothing of another's.
#[inline]
pub fn rank(hash: KeyHash, page: u32) -> u32 {
    ((hash.low() >> 32) as u32).rotate_left(page.wrapping_mul(11) % 32)
}
