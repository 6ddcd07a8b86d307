//! Appends records with links to the log.
//!
//! A thread that appends holds the lock of the key's shard, then that of its region, until the record is the head of
//! its chain: so the link of a record leads to the head before it.

use std::collections::BTreeMap;

use alluvium_base::{KeyHash, KeyspaceId};
use alluvium_index::chain_region::Slot;
use alluvium_io::AlignedBuffer;
use alluvium_io::sync::atomic::{AtomicU64, Ordering};

use super::address::Address;
use super::chain::Chain;
use super::directory::Directory;
use super::locked_region::{Decision, LockedRegion, Place};
use super::read_chain::ReadChain;
use super::walk::{ChainWalk, Step};
use crate::error::{Error, IoContext, Result};
use crate::item::{Item, Link};
use crate::level::Version;
use crate::log::linked_record::{LinkedBatch, encode_linked_item};
use crate::log::{LinkedStore, Log, LogStore, Segment};
use crate::planted_race::PlantedRace;

/// The outcome of [`Chain::append`].
#[derive(Debug)]
pub(crate) enum Appended {
    /// Start and length of the record, and where the item begins in the segment.
    Done { start: u64, len: usize, item: u32 },
    /// The segment is full.
    Full,
    /// Both chains of the key may have it: [`Chain::decide`] finds out.
    Undecided,
}

/// The slot of an item that a log store has.
pub(crate) fn known_slot(segment: &Segment, offset: u32) -> Option<bool> {
    let encoded = segment.encoded_item_at(offset).ok()?;
    Link::of(encoded.bytes).map(|link| link.is_in_second)
}

impl Chain {
    /// Appends an item to the active segment, and makes it the head of its chain. The caller holds the lock of the
    /// key's shard in `store`, which is open. `existing` is where `store` has the key; `is_in_second` says in which of
    /// its two slots a key is whose present record the caller moves.
    pub fn append(
        &self,
        log: &Log,
        store: &LogStore,
        (hash, item): (KeyHash, &Item<'_>),
        (existing, is_in_second): (Option<u32>, Option<bool>),
        decision: Option<&Decision>,
    ) -> Result<Appended> {
        let (segment, directory) = (&*store.segment, &*self.directory);
        let Some(linked) = store.linked() else { return Ok(Appended::Full) };
        let end = Address::end_of(segment.id);
        let mut region = directory.lock(hash);
        region.grow_to(linked.slots.number);
        let known = existing.and_then(|offset| known_slot(segment, offset)).or(is_in_second);
        let Place::In(slot) = region.place(hash, known, decision) else { return Ok(Appended::Undecided) };
        let Some(link) = region.link(slot, end) else { return Err(too_long(segment)) };
        if !linked.note(log, segment, directory.keyspace) {
            return Ok(Appended::Full);
        }
        let mut bytes = Vec::with_capacity(item.encoded_len() + 16);
        let item_start = encode_linked_item(segment.seed, directory.keyspace, item, link, &mut bytes);
        let len = bytes.len();
        let mut region = Some(region);
        let mut push = |start| {
            if let Some(mut region) = region.take() {
                region.push(slot, hash, Address::new(segment.id, start));
            }
        };
        let append = |start| {
            if log.planted_bugs.has(PlantedRace::HeadBeforeRecord) {
                push(start);
            }
            &bytes
        };
        let Some(start) = log.append_linked(segment, len, append) else { return Ok(Appended::Full) };
        // Readers that take the region's lock find the whole record.
        push(start);
        directory.sample.note(hash, item, len);
        directory.passes.note_appended(len);
        Ok(Appended::Done { start, len, item: start as u32 + item_start as u32 })
    }

    /// Finds out in which of its two chains a key is. Walks them, which costs a read for each record that is not in
    /// memory; so it is done before any lock is taken.
    ///
    /// # Errors
    /// [`Error::MissingFile`] if a chain leads to a segment that is younger than the version.
    pub fn decide(
        &self,
        version: &Version,
        reads: &AtomicU64,
        hash: KeyHash,
        key: &[u8],
    ) -> Result<Decision> {
        let (mut decision, heads) = {
            let region = self.directory.lock(hash);
            let heads = [false, true].map(|is_in_second| region.head_of(hash, is_in_second));
            (region.undecided(hash), heads)
        };
        for store in version.log_stores.iter().filter(|store| store.linked().is_some()) {
            if let Some((_, offset, _)) = store.find(store.shard(hash), hash, key)? {
                decision.is_in_second = known_slot(&store.segment, offset).unwrap_or(decision.is_in_second);
                return Ok(decision);
            }
        }
        for (head, is_in_second) in heads.into_iter().zip([false, true]) {
            if self.has(version, reads, head, key)? {
                decision.is_in_second = is_in_second;
                break;
            }
        }
        Ok(decision)
    }

    /// Whether the chain with this head has the key.
    fn has(&self, version: &Version, reads: &AtomicU64, head: Option<Address>, key: &[u8]) -> Result<bool> {
        let mut walk = ChainWalk::over(version, self, head.into_iter().collect());
        let mut buffer = AlignedBuffer::new();
        loop {
            match walk.step(key)? {
                Step::End => return Ok(false),
                Step::Item(_) => return Ok(true),
                Step::Read(read) => {
                    buffer.resize_unspecified(read.bytes);
                    reads.fetch_add(1, Ordering::Relaxed);
                    let context = || format!("reading {}", read.file.name());
                    read.file.file.read_at(&mut buffer, read.offset).context(context)?;
                    if walk.search(&read, &buffer, key)?.is_some() {
                        return Ok(true);
                    }
                }
            }
        }
    }
}

/// Bytes that the record of a batch with links may take beside itself: a mark, a filler and the numbers of slots.
pub(crate) const LINKED_EXTRA_BYTES_MAX: usize = 1 << 10;

/// An item of a batch that is to be appended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchItem<'a> {
    pub keyspace: KeyspaceId,
    pub item: Item<'a>,
    pub hash: KeyHash,
    /// The chains and the log store of a chained keyspace.
    pub chained: Option<(&'a Chain, &'a LogStore)>,
}

/// The locked regions of a batch, and the slots of its items there. While it exists, nobody reads these chains.
#[derive(Debug)]
pub(crate) struct BatchRegions<'a> {
    regions: BTreeMap<(KeyspaceId, usize), LockedRegion<'a>>,
    /// The slot of each item and whether its link is long, if it has one.
    links: Vec<Option<(Slot, bool)>>,
    /// The chain that begins with these items.
    anew: Option<(KeyspaceId, ReadChain)>,
}

/// The outcome of [`BatchRegions::lock`].
#[derive(Debug)]
pub(crate) enum Locked<'a> {
    Done(BatchRegions<'a>),
    /// The segment is full.
    Full,
    /// [`Chain::decide`] must find out in which chain the item of this number is.
    Undecided(usize),
}

impl<'a> BatchRegions<'a> {
    /// Locks the regions of all items, in ascending order, and finds their slots. The caller holds the locks of all
    /// shards.
    pub fn lock(
        log: &Log,
        items: &[BatchItem<'a>],
        decisions: &BTreeMap<usize, Decision>,
    ) -> Result<Locked<'a>> {
        let mut regions = BTreeMap::new();
        let chained = || items.iter().filter_map(|item| Some((item, item.chained?)));
        let mut numbers: Vec<_> = chained()
            .map(|(item, (chain, _))| (item.keyspace, Directory::region_of(item.hash), &*chain.directory))
            .collect();
        numbers.sort_unstable_by_key(|&(keyspace, region, _)| (keyspace, region));
        for (keyspace, number, directory) in numbers {
            regions.entry((keyspace, number)).or_insert_with(|| directory.lock_region(number));
        }
        let mut links = Vec::with_capacity(items.len());
        for (number, item) in items.iter().enumerate() {
            let Some((chain, store)) = item.chained else {
                links.push(None);
                continue;
            };
            let Some(linked) = store.linked() else { return Ok(Locked::Full) };
            let region = regions.get_mut(&(item.keyspace, Directory::region_of(item.hash)));
            let region = region.expect("locked above");
            region.grow_to(linked.slots.number);
            let existing = store.find(store.shard(item.hash), item.hash, item.item.key)?;
            let known = existing.and_then(|(_, offset, _)| known_slot(&store.segment, offset));
            let Place::In(slot) = region.place(item.hash, known, decisions.get(&number)) else {
                return Ok(Locked::Undecided(number));
            };
            let end = Address::end_of(store.segment.id);
            let Some(link) = region.link(slot, end) else { return Err(too_long(&store.segment)) };
            if !linked.note(log, &store.segment, chain.keyspace()) {
                return Ok(Locked::Full);
            }
            links.push(Some((slot, link.is_long)));
        }
        Ok(Locked::Done(Self { regions, links, anew: None }))
    }

    /// Locks the region of a chain that was read, which is to become a chain of these items alone. `None` if it
    /// `is_checked` and not as it was any more. The caller holds the locks of all shards, and the segment is
    /// [noted](LinkedStore::note).
    pub fn lock_anew(
        items: &[BatchItem<'a>],
        linked: &LinkedStore,
        read: &ReadChain,
        is_checked: bool,
    ) -> Option<Self> {
        let (chain, _) = items.first()?.chained?;
        let mut region = chain.directory.lock_region(read.region);
        region.grow_to(linked.slots.number);
        if is_checked && !region.is_still(read) {
            return None;
        }
        let keyspace = chain.keyspace();
        Some(Self {
            regions: BTreeMap::from([((keyspace, read.region), region)]),
            links: vec![Some((read.slot, false)); items.len()],
            anew: Some((keyspace, *read)),
        })
    }

    /// Bytes of the batch's record.
    pub fn record_len(&self, segment: &Segment, items: &[BatchItem<'_>]) -> usize {
        let mut batch = LinkedBatch::default();
        for (item, link) in items.iter().zip(&self.links) {
            match *link {
                None => batch.push(item.keyspace, &item.item),
                Some((_, is_long)) => {
                    let link = Link { pointer: 0, is_long, is_in_second: false };
                    batch.push_linked(segment.seed, item.keyspace, &item.item, link);
                }
            }
        }
        let mut bytes = Vec::new();
        batch.finish(segment.seed, &mut bytes);
        bytes.len()
    }

    /// The batch's record if it begins at `start` of the segment, of which every item is the head of its chain from now
    /// on; and where each item begins in the record.
    pub fn encode(
        &mut self,
        segment: &Segment,
        items: &[BatchItem<'_>],
        start: u64,
    ) -> (Vec<u8>, Vec<usize>) {
        if let Some((keyspace, read)) = self.anew {
            self.regions.get_mut(&(keyspace, read.region)).expect("it was locked").clear(read.slot);
        }
        let mut batch = LinkedBatch::default();
        for (item, link) in items.iter().zip(&self.links) {
            let (Some((slot, is_long)), Some((chain, _))) = (*link, item.chained) else {
                batch.push(item.keyspace, &item.item);
                continue;
            };
            let region = self.regions.get_mut(&(item.keyspace, Directory::region_of(item.hash)));
            let region = region.expect("it was locked");
            let link = region.link_of(slot, is_long);
            let record = start + batch.next_linked() as u64;
            batch.push_linked(segment.seed, item.keyspace, &item.item, link);
            region.push(slot, item.hash, Address::new(segment.id, record));
            let len = item.item.encoded_len() + 12;
            chain.directory.sample.note(item.hash, &item.item, len);
            chain.directory.passes.note_appended(len);
        }
        let mut bytes = Vec::new();
        let starts = batch.finish(segment.seed, &mut bytes);
        (bytes, starts)
    }
}

#[cold]
fn too_long(segment: &Segment) -> Error {
    let reason = format!("the chained log behind {} is longer than its links reach", segment.name());
    Error::DiskFull { reason }
}
