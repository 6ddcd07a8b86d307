//! Counts references, that is, how many bytes of each blob file are live.
//!
//! Every reference to a record counts: from an entry of a log's index, an item of a hash section, an item of a sorted
//! table. During a merge an item is in two of them and counts twice; after the merge, once again. A crash in between
//! changes nothing: each count belongs to a log index or a table, and the manifest changes both in one record. Items
//! hidden by younger ones count until a merge drops them, so a count of zero means that nothing refers to the file.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_base::{BlobId, KeyspaceId};

use super::file::BlobFiles;
use super::reference::Reference;
use crate::item::Item;
use crate::manifest::Edit;

/// References that were added and removed, in bytes of records by file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReferenceCounts(BTreeMap<BlobId, i64>);

impl ReferenceCounts {
    /// Counts the references of `item`, if it has any.
    #[inline]
    pub fn add(&mut self, item: &Item<'_>) {
        if item.is_reference() {
            self.count(item, 1);
        }
    }

    /// Subtracts the references of `item`, if it has any.
    #[inline]
    pub fn remove(&mut self, item: &Item<'_>) {
        if item.is_reference() {
            self.count(item, -1);
        }
    }

    #[cold]
    fn count(&mut self, item: &Item<'_>, sign: i64) {
        // Bytes that are not a reference are reported by the operation that reads them.
        for reference in Reference::all_of(item) {
            *self.0.entry(reference.file).or_default() += sign * reference.stored_bytes() as i64;
        }
    }

    pub fn merge(&mut self, other: &Self) {
        for (file, delta) in other.iter() {
            *self.0.entry(file).or_default() += delta;
        }
    }

    /// Subtracts `bytes` of references to a file.
    pub fn take(&mut self, file: BlobId, bytes: u64) {
        *self.0.entry(file).or_default() -= bytes as i64;
    }

    /// Subtracts all these references.
    pub fn take_all(&mut self, other: &Self) {
        for (file, delta) in other.iter() {
            *self.0.entry(file).or_default() -= delta;
        }
    }

    /// Files, with the change of their live bytes.
    pub fn iter(&self) -> impl Iterator<Item = (BlobId, i64)> {
        self.0.iter().map(|(&file, &delta)| (file, delta)).filter(|&(_, delta)| delta != 0)
    }

    /// The change of a keyspace's tables as edits of the manifest.
    pub fn edits(&self, keyspace: KeyspaceId) -> impl Iterator<Item = Edit> {
        self.iter().map(move |(file, delta)| Edit::BlobReferences { keyspace, file, delta, durable: 0 })
    }
}

/// What a version of a keyspace knows of blobs: the files that it may refer to, which it keeps open, and the bytes of
/// each to which its tables refer.
#[derive(Debug, Clone, Default)]
pub(crate) struct VersionBlobs {
    pub files: Arc<BlobFiles>,
    pub live: BTreeMap<BlobId, u64>,
}

impl VersionBlobs {
    /// The same with other files. References to files that no longer exist are dropped: younger items hide them.
    pub fn with_files(&self, files: &Arc<BlobFiles>) -> Arc<Self> {
        let mut live = self.live.clone();
        live.retain(|file, _| files.contains_key(file));
        Arc::new(Self { files: files.clone(), live })
    }

    /// The same after a change of tables.
    pub fn with_counts(self: &Arc<Self>, counts: &ReferenceCounts) -> Arc<Self> {
        if counts.iter().next().is_none() {
            return self.clone();
        }
        let mut next = Self::clone(self);
        for (file, delta) in counts.iter().filter(|(file, _)| self.files.contains_key(file)) {
            let live = next.live.entry(file).or_default();
            *live = live.saturating_add_signed(delta);
        }
        next.live.retain(|_, live| *live > 0);
        Arc::new(next)
    }

    /// Bytes to which the tables refer.
    pub fn live_bytes(&self) -> u64 {
        self.live.values().sum()
    }
}
