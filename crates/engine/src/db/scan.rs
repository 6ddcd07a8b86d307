//! Iterating over all items, in hash order.

use std::collections::VecDeque;
use std::sync::Arc;

use alluvium_base::{HashRange, KeyHash};
use alluvium_cache::Era;

use super::found_item::{FoundItem, KeyValue};
use super::group::Group;
use super::iterator_share::{IteratorShare, read_room};
use super::keyspace::Keyspace;
use super::merged_items::MergedItems;
use super::read::View;
use crate::core::{KeyspaceShared, MemoryBudget, Moment, Pin, Shared};
use crate::error::{Error, Result};
use crate::item::Item;
use crate::level::{Version, shard_range};
use crate::merge::{YoungItems, for_each_merged, scan_streams};
use crate::metadata::Metadata;
use crate::table::SectionScanner;

/// All items of a keyspace in the order of their key hashes.
///
/// Items present during the whole iteration are returned exactly once, with a value that they had during it. The young
/// items of one part of the hash space are in memory together: about the plan's share of filtered items divided by the
/// number of shards, or less if the memory limit at the beginning of the iteration demands it.
#[derive(Debug)]
pub struct Iter {
    shared: Arc<Shared>,
    keyspace: Arc<KeyspaceShared>,
    /// The version that it reads; pinned so that statistics include it.
    pub(super) pin: Arc<Pin>,
    /// When it began: items that expire later are returned.
    pub(super) now_ms: u64,
    budget: MemoryBudget,
    /// The hash at which the next chunk starts; `None` at the end.
    pub(super) next: Option<u128>,
    /// The part of the hash space whose young items are in memory, and these items.
    unit: Option<(HashRange, YoungItems)>,
    chunk: VecDeque<FoundItem>,
    /// The items of a semi-sorted keyspace. It is not divided into pieces of the hash space, since a piece may have all
    /// items or none.
    pub(super) merged: Option<Box<MergedItems>>,
    /// The requested prefix; `None` for all items.
    prefix: Option<Vec<u8>>,
    /// For an iterator that sees the active log store as of one moment: the offsets of its items, for each shard.
    pub(super) logged: Option<Vec<Vec<u32>>>,
    /// The memory that it may use.
    share: IteratorShare,
    /// Why nothing can be read; the first call of `next` returns it.
    pub(super) refusal: Option<Error>,
    /// Whether it reads a snapshot, which keeps everything to which its items refer.
    is_of_snapshot: bool,
}

impl Keyspace {
    /// Iterates over all items, in the order of their key hashes.
    ///
    /// The iterator keeps the tables and the log from the time when it began, without delaying writes and merges. What
    /// is not needed otherwise is freed when the iterator is dropped; [`crate::Stats::iterators`] says how much that
    /// is.
    pub fn iter(&self) -> Iter {
        let (keyspace, version) = (self.shared.clone(), self.shared.version.load_full());
        let refusal = keyspace.check_present().err();
        let now_ms = self.database().now_ms();
        let iter = Iter::over(&self.handle.shared, keyspace, version, now_ms);
        match refusal {
            Some(refusal) => Iter { refusal: Some(refusal), ..iter },
            None => iter,
        }
    }

    /// Iterates over the items whose keys have this prefix by the keyspace's prefix rule: the whole prefix, not a part
    /// of it. The order has no meaning. Keys are compared, so other prefixes with the same hash are skipped.
    ///
    /// Returns the items present when it was called; the writes of one batch are either all seen or none. Costs reads
    /// of the prefix's pages in each run with items of it, all started together, and of one page of each other run
    /// whose filter does not know prefixes; and 32 bytes of memory for each of the prefix's items that is still in the
    /// log. The row cache keeps the items of prefixes that have been scanned, up to 32 KiB of each: then it costs no
    /// read.
    ///
    /// # Errors
    /// [`Error::NotSemiSorted`] for a keyspace without prefixes.
    pub fn scan_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Iter> {
        self.shared.check_present()?;
        let era = self.database().rows.era();
        let (keyspace, version) = (self.shared.clone(), self.shared.version.load_full());
        let now_ms = self.database().now_ms();
        Iter::over_prefix(&self.handle.shared, keyspace, version, prefix.as_ref(), now_ms, era)
    }
}

impl Iter {
    /// An iterator over all items except those that had expired by `now_ms`.
    pub(super) fn over(
        shared: &Arc<Shared>,
        keyspace: Arc<KeyspaceShared>,
        version: Arc<Version>,
        now_ms: u64,
    ) -> Self {
        let mut iter = Self::unfilled(shared, keyspace, version, 0, now_ms);
        if iter.keyspace.hasher.is_semi_sorted() {
            iter.merge_items(HashRange::ALL);
        } else {
            iter.pin.set_follows(true);
        }
        iter
    }

    /// An iterator over the items of a prefix except those that had expired by `now_ms`. In an era that had begun when
    /// the version was loaded it uses the row cache.
    ///
    /// # Errors
    /// [`Error::NotSemiSorted`] for a keyspace without prefixes.
    pub(super) fn over_prefix(
        shared: &Arc<Shared>,
        keyspace: Arc<KeyspaceShared>,
        version: Arc<Version>,
        prefix: &[u8],
        now_ms: u64,
        era: Option<Era>,
    ) -> Result<Self> {
        let Some(hash) = keyspace.hasher.prefix_hash(prefix) else {
            return Err(Error::NotSemiSorted { keyspace: keyspace.name.clone() });
        };
        let range = HashRange::of_high_half(hash);
        let mut iter = Self::unfilled(shared, keyspace.clone(), version.clone(), range.low, now_ms);
        iter.prefix = Some(prefix.to_vec());
        let Some(era) = era else {
            iter.merge_items(range);
            return Ok(iter);
        };
        let group = Group { keyspace: &keyspace, version: &version, prefix, range, era };
        match shared.check_open().and_then(|()| group.find(shared)) {
            Ok(Some(merged)) => iter.merged = Some(Box::new(merged)),
            Ok(None) => {
                iter.merge_items(range);
                if let Some(merged) = &mut iter.merged
                    && let Err(error) = group.fill(shared, merged)
                {
                    iter.refusal = Some(error);
                }
            }
            Err(error) => iter.refusal = Some(error),
        }
        Ok(iter)
    }

    fn unfilled(
        shared: &Arc<Shared>,
        keyspace: Arc<KeyspaceShared>,
        version: Arc<Version>,
        low: u128,
        now_ms: u64,
    ) -> Self {
        let (shared, budget) = (shared.clone(), shared.memory.budget());
        let pin = keyspace.pin(version, shared.now_ms());
        Self {
            shared,
            keyspace,
            pin,
            now_ms,
            budget,
            next: Some(low),
            unit: None,
            chunk: VecDeque::new(),
            merged: None,
            prefix: None,
            logged: None,
            share: IteratorShare::default(),
            refusal: None,
            is_of_snapshot: false,
        }
    }

    /// The same iterator, over a version that a snapshot keeps.
    pub(super) fn of_snapshot(self) -> Self {
        Self { is_of_snapshot: true, ..self }
    }

    /// Prepares the merge of all items in `range`. Reads when items are requested.
    fn merge_items(&mut self, range: HashRange) {
        let version = self.pin.version();
        let share = self.shared.check_open().and_then(|()| {
            self.share.take_merging(&self.shared, &self.budget, &version, self.prefix.is_some())
        });
        let merged = share.and_then(|read_bytes| {
            let budget = MemoryBudget { read_bytes, ..self.budget };
            MergedItems::of(&self.shared, &version, &budget, range)
        });
        match merged {
            Ok(merged) => self.merged = Some(Box::new(merged)),
            Err(error) => self.refusal = Some(error),
        }
    }

    /// The next item as [`Iterator::next`] returns it, with its metadata.
    pub fn next_with_metadata(&mut self) -> Option<Result<(KeyValue, Metadata)>> {
        match self.next_resolved() {
            Ok(item) => item.map(Ok),
            Err(error) => {
                self.next = None;
                self.chunk.clear();
                Some(Err(self.shared.closed_or(error)))
            }
        }
    }

    /// The key of the next item, whose value is not read.
    pub(super) fn next_key(&mut self) -> Result<Option<Vec<u8>>> {
        Ok(self.next_item()?.map(|item| item.key))
    }

    fn next_resolved(&mut self) -> Result<Option<(KeyValue, Metadata)>> {
        while let Some(item) = self.next_item()? {
            if let Some(resolved) = self.resolve(item)? {
                return Ok(Some(resolved));
            }
        }
        Ok(None)
    }

    fn resolve(&self, item: FoundItem) -> Result<Option<(KeyValue, Metadata)>> {
        let Self { shared, keyspace, pin, now_ms, .. } = self;
        let version = pin.version();
        let view = View { shared, keyspace, version: &version, moment: Moment::At(*now_ms), era: None };
        if self.is_of_snapshot { item.resolve_held(view).map(Some) } else { item.resolve(view, &version) }
    }

    pub(super) fn next_item(&mut self) -> Result<Option<FoundItem>> {
        if let Some(refusal) = self.refusal.take() {
            return Err(refusal);
        }
        // An iterator at its end stays there, even after the database was closed.
        if self.next.is_some() || !self.chunk.is_empty() {
            self.shared.check_open()?;
        }
        loop {
            if let Some(item) = self.chunk.pop_front() {
                return Ok(Some(item));
            }
            let Some(low) = self.next else {
                self.unit = None;
                self.share.give_back();
                return Ok(None);
            };
            if self.merged.is_some() {
                self.fill_merged()?;
            } else {
                self.fill(low)?;
            }
        }
    }

    /// Finds the next live item of a semi-sorted keyspace, of the requested prefix.
    fn fill_merged(&mut self) -> Result<()> {
        let Some(merged) = &mut self.merged else { return Ok(()) };
        let moment = Moment::At(self.now_ms);
        let (chunk, hasher, prefix) = (&mut self.chunk, &self.keyspace.hasher, self.prefix.as_deref());
        while chunk.is_empty() {
            let is_there = merged.step(|_, item| {
                let is_wanted = prefix.is_none() || hasher.prefix_of(item.key) == prefix;
                if is_wanted && moment.is_live(item) {
                    chunk.push_back(FoundItem::of(item));
                }
            })?;
            if !is_there {
                self.next = None;
                self.merged = None;
                self.share.give_back();
                return Ok(());
            }
        }
        Ok(())
    }

    /// Collects the items of the next piece of the hash space, which starts at `low`.
    fn fill(&mut self, low: u128) -> Result<()> {
        let mut chunk = std::mem::take(&mut self.chunk);
        self.visit(low, |_, item| chunk.push_back(FoundItem::of(item)))?;
        self.chunk = chunk;
        Ok(())
    }

    /// Calls `visit` with the live items of the next piece of the hash space, which starts at `low`, in order.
    pub(super) fn visit(&mut self, low: u128, mut visit: impl FnMut(KeyHash, &Item<'_>)) -> Result<()> {
        self.share.take(&self.shared, &self.budget)?;
        if self.unit.as_ref().is_none_or(|(unit, _)| low > unit.high) {
            self.unit = Some(self.gather(low)?);
        }
        let version = self.pin.version();
        let (unit, young) = self.unit.as_ref().expect("gathered above");
        let items = young.len() as u64 + version.body.deep_items_within(*unit) as u64;
        let pieces = (items / self.chunk_items() + 1).next_power_of_two();
        let width = (unit.high - unit.low) / u128::from(pieces);
        let range = HashRange::new(low, low.saturating_add(width).min(unit.high));
        let moment = Moment::At(self.now_ms);
        let streams = version.body.deep_streams_within(range);
        let (_room, read_bytes) = read_room(&self.shared, &self.budget, streams.len());
        let mut scanners = scan_streams(&*self.shared.storage, &streams, read_bytes)?;
        for_each_merged(
            young.range(range),
            &mut scanners,
            |_, _| {},
            |hash, item| {
                let item = &item.item;
                if moment.is_live(item) {
                    visit(hash, item);
                }
                Ok(())
            },
        )?;
        self.next = range.high.checked_add(1);
        Ok(())
    }

    fn chunk_items(&self) -> u64 {
        let version = self.pin.version();
        let sections = || version.body.sections();
        let items: u64 = sections().map(|section| section.item_count()).sum();
        let bytes: u64 = sections().map(|section| section.key_bytes() + section.value_bytes()).sum();
        self.share.chunk_items(bytes / items.max(1))
    }

    /// The part of the hash space around `low` that runs and log stores do not divide further, with its young items; a
    /// smaller part if these would not fit in memory.
    fn gather(&self, low: u128) -> Result<(HashRange, YoungItems)> {
        let version = self.pin.version();
        let store_bits = version.log_stores.iter().map(|store| store.shard_bits());
        let bits = store_bits.chain(version.body.shard_bits()).min().unwrap_or(0);
        let index = if bits == 0 { 0 } else { (low >> (128 - bits)) as u64 };
        let sections = || version.body.unit_sections(bits, index).map(|(_, _, section)| &section.section);
        let needed: u64 = sections()
            .map(|section| YoungItems::memory_bytes_for(section.item_count(), section.used_bytes()))
            .sum();
        let needed = needed + version.chain.as_ref().map_or(0, |chain| chain.memory_bytes_sorted() >> bits);
        // Several iterators share what a merge has for itself.
        let share = self.share.young_bytes();
        let bits_within = needed.div_ceil(share).next_power_of_two().ilog2().min(63 - bits);
        let part = match bits + bits_within {
            0 => shard_range(0, 0),
            part_bits => shard_range(part_bits, (low >> (128 - part_bits)) as u64),
        };
        let mut young = YoungItems::default();
        let mut age = 0;
        for store in &version.log_stores {
            let shift = store.shard_bits() - bits;
            let shards = (index << shift) as usize..((index + 1) << shift) as usize;
            for (shard, number) in store.shards()[shards.clone()].iter().zip(shards) {
                let logged = self.logged.as_ref().filter(|_| age == 0).map(|logged| &logged[number]);
                let _writer = logged.is_none().then(|| shard.lock());
                let index = shard.index();
                let present = logged.is_none().then(|| index.entries().map(|(_, _, offset)| offset));
                for offset in logged.into_iter().flatten().copied().chain(present.into_iter().flatten()) {
                    let item = store.segment.encoded_item_at(offset)?;
                    let hash = self.keyspace.hasher.hash(item.item.key);
                    if part.contains(hash.0) {
                        young.push(hash, age, item.bytes);
                    }
                }
            }
            age += 1;
        }
        if let Some(chain) = &version.chain {
            let (_room, read_bytes) = read_room(&self.shared, &self.budget, 1);
            chain.add_to(&mut young, age, &self.keyspace.hasher, read_bytes, part)?;
            age += 1;
        }
        for section in sections() {
            let (_room, read_bytes) = read_room(&self.shared, &self.budget, 1);
            let mut scanner = SectionScanner::with_read_bytes(section.clone(), 0, read_bytes);
            while scanner.advance()? {
                if let Some((hash, item)) = scanner.current_encoded()
                    && part.contains(hash.0)
                {
                    young.push(hash, age, item.bytes);
                }
            }
            age += 1;
        }
        young.finish();
        Ok((part, young))
    }
}

impl Iterator for Iter {
    type Item = Result<KeyValue>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.next_with_metadata()?.map(|(item, _)| item))
    }
}
