//! Finds the newest item of a key: log stores first, then runs, then the levels below.

use alluvium_base::KeyHash;
use alluvium_io::AlignedBuffer;
use alluvium_io::sync::atomic::{AtomicU64, Ordering};

use super::version_lookup::{Next, VersionLookup};
use crate::error::Result;
use crate::item::Item;
use crate::level::Version;

/// The newest item of a key in the log.
#[inline]
pub(crate) fn find_in_log<'v>(version: &'v Version, hash: KeyHash, key: &[u8]) -> Result<Option<Item<'v>>> {
    for store in &version.log_stores {
        if let Some(item) = store.get(hash, key)? {
            return Ok(Some(item));
        }
    }
    Ok(None)
}

/// Calls `found` with the newest item of `key`, which is in its stored form, tombstones included; or with `None`. Adds
/// the number of pages that it reads to `reads`.
pub(crate) fn find<R>(
    version: &Version,
    reads: &AtomicU64,
    hash: KeyHash,
    key: &[u8],
    found: impl FnOnce(Option<&Item<'_>>) -> R,
) -> Result<R> {
    match find_in_log(version, hash, key)? {
        Some(item) => Ok(found(Some(&item))),
        None => find_in_tables(version, reads, hash, key, |item, _| found(item)),
    }
}

/// Like [`find`], without the log. Also passes the number of pages that were read.
pub(crate) fn find_in_tables<R>(
    version: &Version,
    reads: &AtomicU64,
    hash: KeyHash,
    key: &[u8],
    found: impl FnOnce(Option<&Item<'_>>, u32) -> R,
) -> Result<R> {
    let mut lookup = VersionLookup::new(version, hash);
    let first = lookup.next(key)?;
    find_by(lookup, first, reads, key, found)
}

/// Like [`find_in_tables`], in the tables that `lookup` visits; `next` is its next answer.
pub(crate) fn find_by<'v, R>(
    mut lookup: VersionLookup<'v>,
    mut next: Next<'v>,
    reads: &AtomicU64,
    key: &[u8],
    found: impl FnOnce(Option<&Item<'_>>, u32) -> R,
) -> Result<R> {
    let mut buffer = None;
    let mut pages_read = 0;
    loop {
        let read = match next {
            Next::Read(read) => read,
            Next::Item(item) => return Ok(found(Some(&item), pages_read)),
            Next::End => return Ok(found(None, pages_read)),
        };
        let buffer = buffer.get_or_insert_with(AlignedBuffer::new);
        buffer.resize_unspecified(read.bytes());
        if !read.copy_kept(buffer) {
            reads.fetch_add(1, Ordering::Relaxed);
            pages_read += 1;
            read.check(read.file().read_at(buffer, read.offset()))?;
        }
        if let Some(item) = lookup.search(&read, buffer, key)? {
            return Ok(found(Some(&item), pages_read));
        }
        next = lookup.next(key)?;
    }
}
