//! What every Alluvium crate shares: key hashes and their ranges, ids, checksums, varints, units and the common part of
//! errors.
//!
//! Nothing here allocates per call, does I/O or knows what a table is.
#![forbid(unsafe_code)]

pub mod checksum;
pub mod corruption;
pub mod hash_range;
pub mod ids;
pub mod key_hash;
pub mod prefix_rule;
pub mod units;
pub mod varint;

pub use corruption::Corruption;
pub use hash_range::HashRange;
pub use ids::{BlobId, KeyspaceId, SegmentId, TableId};
pub use key_hash::{KeyHash, KeyHasher, LastPrefix};
pub use prefix_rule::{PrefixFunction, PrefixName, PrefixRule};
