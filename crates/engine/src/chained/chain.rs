//! [`Chain`]: the part of a keyspace that is stored in segments of the log, behind the log in memory.

use std::sync::Arc;

use alluvium_base::{HashRange, KeyHash, KeyHasher, KeyspaceId, SegmentId};
use alluvium_io::File;
use alluvium_io::sync::atomic::{AtomicBool, Ordering};
use alluvium_model::ChainedSpec;

use super::address::Address;
use super::directory::Directory;
use super::records::Linked;
use crate::error::Result;
use crate::item::EncodedItem;
use crate::level::{Reclaimer, Version};
use crate::log::{FileUser, FileUsers, LogStore};
use crate::merge::YoungItems;

/// Assumed bytes of a record, for estimates of memory.
const RECORD_BYTES_GUESS: u64 = 64;

/// The file of a segment of which records with links are still in use. Shared by all versions and keyspaces with such
/// records; removed when the last of them drops it, unless the manifest names it or readers of the log need it.
#[derive(Debug)]
pub(crate) struct ChainFile {
    pub segment: SegmentId,
    /// The seed of the checksums of the segment's records.
    pub seed: u64,
    /// End of the content.
    pub bytes: u64,
    pub file: Arc<dyn File>,
    users: Arc<FileUsers>,
    is_obsolete: AtomicBool,
    reclaimer: Arc<Reclaimer>,
}

impl ChainFile {
    pub fn new(
        segment: SegmentId,
        (seed, bytes): (u64, u64),
        (file, users): (Arc<dyn File>, Arc<FileUsers>),
        reclaimer: &Arc<Reclaimer>,
    ) -> Arc<Self> {
        let reclaimer = reclaimer.clone();
        Arc::new(Self { segment, seed, bytes, file, users, is_obsolete: AtomicBool::new(false), reclaimer })
    }

    pub fn name(&self) -> &str {
        self.file.name()
    }

    /// Declares that the manifest no longer names the file.
    pub fn set_obsolete(&self) {
        self.is_obsolete.store(true, Ordering::Release);
    }
}

impl Drop for ChainFile {
    fn drop(&mut self) {
        if self.is_obsolete.load(Ordering::Acquire) && self.users.end(FileUser::Chains) {
            self.reclaimer.remove(self.file.name().to_owned());
        }
    }
}

/// The chains of a keyspace, and the files that have the records which are no longer in memory. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Chain {
    pub directory: Arc<Directory>,
    /// Old to young.
    pub files: Vec<Arc<ChainFile>>,
}

impl Chain {
    /// Empty chains for a new keyspace, and the number of slots of a region.
    pub fn new(keyspace: KeyspaceId, spec: ChainedSpec, expected_items: u64) -> (Self, u64) {
        let slots = Directory::slots_for(&spec, expected_items);
        let directory = Arc::new(Directory::new(keyspace, spec, slots));
        (Self { directory, files: Vec::new() }, slots)
    }

    pub fn keyspace(&self) -> KeyspaceId {
        self.directory.keyspace
    }

    /// The file of a segment.
    pub fn file(&self, segment: SegmentId) -> Option<&Arc<ChainFile>> {
        let at = self.files.binary_search_by_key(&segment, |file| file.segment).ok()?;
        Some(&self.files[at])
    }

    /// Estimated live items, those in memory included; 0 without files.
    pub fn items(&self) -> u64 {
        if self.files.is_empty() { 0 } else { self.directory.sample.live(0).items as u64 }
    }

    /// Calls `found` with hash and item of all records in the files, old to young, obsolete ones included. Reads all
    /// files, `read_bytes` at a time.
    pub fn for_each_item(
        &self,
        hasher: &KeyHasher,
        read_bytes: usize,
        mut found: impl FnMut(KeyHash, EncodedItem<'_>) -> Result<()>,
    ) -> Result<()> {
        self.files.iter().try_for_each(|file| {
            file.for_each_linked(read_bytes, |linked| match linked {
                Linked::Record(record) if record.keyspace == self.keyspace() => {
                    found(hasher.hash(record.item.item.key), record.item)
                }
                Linked::Record(_) | Linked::Slots { .. } => Ok(()),
            })
        })
    }

    /// Adds the items of all records in a range of hashes. Reads all files.
    pub fn add_to(
        &self,
        items: &mut YoungItems,
        age: u32,
        hasher: &KeyHasher,
        read_bytes: usize,
        part: HashRange,
    ) -> Result<()> {
        self.for_each_item(hasher, read_bytes, |hash, item| {
            if part.contains(hash.0) {
                items.push(hash, age, item.bytes);
            }
            Ok(())
        })
    }

    /// The newest items of all keys in the files in a range of hashes. Reads all files.
    pub fn sorted(&self, hasher: &KeyHasher, read_bytes: usize, part: HashRange) -> Result<YoungItems> {
        let mut items = YoungItems::default();
        self.add_to(&mut items, 0, hasher, read_bytes, part)?;
        items.finish();
        Ok(items)
    }

    /// Estimated memory of all records in order.
    pub fn memory_bytes_sorted(&self) -> u64 {
        YoungItems::memory_bytes_for(self.bytes() / RECORD_BYTES_GUESS, self.bytes())
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Estimated share of the files' bytes that is garbage, at this time.
    pub fn garbage_share(&self, version: &Version, now_ms: u64) -> f64 {
        let live = self.directory.sample.live(now_ms);
        let logged: u64 = version.log_stores.iter().map(|store| store.len() as u64).sum();
        // What is newest in memory is not in the files.
        let bytes = live.bytes * (1.0 - logged as f64 / live.items.max(1.0)).max(0.0);
        1.0 - (bytes / self.bytes().max(1) as f64).min(1.0)
    }

    /// Whether an opening would have to read a file, for want of a newer directory.
    pub fn is_unsaved(&self) -> bool {
        self.files.last().is_some_and(|file| self.directory.saving.lacks(file.segment))
    }

    /// The same with another file, younger than all others.
    pub fn with(&self, file: Arc<ChainFile>) -> Self {
        let mut next = self.clone();
        debug_assert!(next.files.last().is_none_or(|last| last.segment < file.segment));
        next.files.push(file);
        next
    }

    /// The same for a snapshot, which does not see later changes.
    pub fn at_present(&self) -> Self {
        Self { directory: Arc::new(self.directory.at_present()), files: self.files.clone() }
    }

    /// The same without the oldest file.
    pub fn without_oldest(&self) -> Self {
        Self { directory: self.directory.clone(), files: self.files[1..].to_vec() }
    }

    /// Chains without items, for a keyspace of which `active` is the only log store, to which nothing was written.
    pub fn begun_anew(&self, active: &LogStore) -> Self {
        let Directory { keyspace, spec, .. } = *self.directory;
        let slots = active.linked().map_or(0, |linked| linked.slots.number);
        let directory = Arc::new(Directory::new(keyspace, spec, slots.max(Directory::slots_for(&spec, 0))));
        Self { directory, files: Vec::new() }
    }

    /// Where the oldest record may be, if `log` is the oldest segment in memory. Links to older ones end a chain.
    pub fn oldest(&self, log: Option<SegmentId>) -> Address {
        let oldest = self.files.first().map(|file| file.segment).or(log);
        oldest.map_or(Address::NEVER, Address::start_of)
    }
}
