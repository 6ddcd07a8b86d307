//! Tables without an index. Buckets are fixed pages, an item's bucket follows from its hash, and items that a bucket
//! can't hold are moved to another bucket by a mark in hash space (LSM-trie's HTable, Wu, Xu, Shao, Jiang, USENIX ATC
//! 2015; X. Wu's thesis, §4.2.4.2).
//!
//! ```text
//!   group of buckets               homes             spare
//!   items by hash    [ 0 ][ 1 ][ 2 ][ 3 ]...[ 66 ]   [ 67 ]
//!                      |              ^
//!                      '-- rank ≥ mark: moved
//! ```
//!
//! [`balance`] decides which items move: the most overloaded bucket gives the items of the highest [`rank`] to the most
//! under-loaded one, until no bucket holds more than a page. A bucket that gives never takes, so an item is in its
//! home or one step away. Each move is recorded as a [`Migration`]: in the giving bucket itself, and for the most
//! overloaded buckets also in memory, in the [`BucketDirectory`], so that a lookup goes to the right bucket at once.
//!
//! # Figures
//!
//! Buckets are 95 % full. With items of 1 to 200 bytes and a fifth of the buckets remembered, 8 bytes each, a lookup
//! reads 1.01 buckets; the directory takes another 0.05 bits an item. `bench index --structure bucketed`,
//! `cargo papers figure wu-4.5 wu-4.7`.
//!
//! # Where we differ
//!
//! - An item's home follows from the *leading* bits of its hash, not from its last ones, and buckets are balanced
//!   within groups of some dozens of neighbours, not over the whole table. So groups are in hash order, and tables are
//!   written and merged in one pass, with one group in memory.
//! - A group has as many homes as its bytes need, so tables are equally full even if their expected size was wrong.
//!   The paper keeps items that no bucket takes in a special bucket with an index of its own. Here they go to *spare*
//!   buckets at the end of the group, which have no homes and take what others give.
//! - A bucket may give to several others, each a range of ranks, and a moved item is never moved again (§4.2.4.2
//!   allows walks over several buckets, and does not cover buckets that no single other one can relieve).

mod balance;
mod builder;
mod directory;
mod migration;

pub use balance::{Balance, BucketRules, GroupRange, SizedItem, Unbalanced, balance, bucket_of};
pub use builder::BucketDirectoryBuilder;
pub use directory::{BucketDirectory, Home};
pub use migration::{MIGRATION_BYTES, Migration, destination_of, read_migrations, write_migrations};

use alluvium_base::KeyHash;

/// The fraction of all buckets whose migrations are in memory: 1792 of 8192, the paper's 14 KB.
pub const REMEMBERED_SHARE: f64 = 1792.0 / 8192.0;

/// The rank of an item among those of the bucket on page `page` of its table: the highest ranks are moved first.
///
/// Consists of hash bits that choose neither bucket nor tag, rotated by the page (§4.2.4.2), so that a bucket's order
/// is independent of another's.
#[inline]
pub fn rank(hash: KeyHash, page: u32) -> u32 {
    ((hash.low() >> 32) as u32).rotate_left(page.wrapping_mul(11) % 32)
}
