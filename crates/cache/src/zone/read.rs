//! Lookups, which any thread may do at any time, and what a hit means for the block.

use alluvium_base::KeyHash;

use crate::canary::{Canary, is_broken};
use crate::index::Version;
use crate::item::Metadata;
use crate::partition::Common;
use crate::sync::spin_hint;

use super::block::{Block, all};
use super::contents::{Contents, with_contents};
use super::directory::{Handle, Path};
use super::{Zone, add, fingerprint, is_expired};

/// Where a reader found an item, as long as the block's version is the same.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    version: Version,
    handle: Handle,
    item: usize,
}

/// An item of a block, copied.
pub(crate) struct OwnedRecord {
    pub key: Vec<u8>,
    pub value: Vec<u8>,
    pub metadata: Metadata,
}

/// What a block's header says about a key.
enum Look {
    /// The key has no item here.
    Absent,
    /// The key may have an item that was hidden.
    Hidden,
    /// These items may be the key's, one bit each. The block was copied.
    Candidates(Handle, u32),
}

/// The result of a lookup.
pub(crate) enum Lookup<T> {
    /// The key has an item; the result of the caller's function.
    Found(T),
    /// The key has none.
    Absent,
    /// The key has none, but may have had one that moved to the hot zone.
    Hidden,
}

impl Zone {
    /// Calls `take` with value and metadata of the item of `key`, if there is one, and returns its result. `take` may
    /// read the cache.
    ///
    /// Costs two accesses to memory if the key is absent, except for one key in 65,536 an item of its block;
    /// decompresses a block otherwise.
    pub fn read<T>(
        &self,
        common: &Common,
        hash: KeyHash,
        key: &[u8],
        take: impl FnOnce(&[u8], Metadata, Seen) -> T,
    ) -> Lookup<T> {
        let path = Path::of(hash);
        with_contents(|contents| {
            let (version, look) = loop {
                let version = self.directory.version(path).begin_read();
                let look = self.look(path, fingerprint(hash), contents);
                if self.directory.version(path).is_unchanged(version) {
                    break (version, look);
                }
                spin_hint();
            };
            let (handle, candidates) = match look {
                Look::Absent => return Lookup::Absent,
                Look::Hidden => return Lookup::Hidden,
                Look::Candidates(handle, candidates) => (handle, candidates),
            };
            let Some(item) = contents.find(candidates, key, self.raw_bytes_max) else {
                return Lookup::Absent;
            };
            let Some(found) = contents.item(item) else { return Lookup::Absent };
            if is_expired(found.metadata, common) {
                return Lookup::Absent;
            }
            Lookup::Found(take(found.value, found.metadata, Seen { version, handle, item }))
        })
    }

    fn look(&self, path: Path, fingerprint: u16, contents: &mut Contents) -> Look {
        let Some(handle) = self.directory.get(path) else { return Look::Absent };
        let Some(block) = Block::at(&self.ring, self.words, handle.unit()) else { return Look::Absent };
        let (matches, dead) = (block.matches(fingerprint), block.dead());
        if matches & !dead == 0 {
            return if matches == 0 { Look::Absent } else { Look::Hidden };
        }
        contents.copy(&block, &self.compression);
        Look::Candidates(handle, matches & !dead)
    }

    /// Writer: notes an access of an item, if its block has not changed since. Returns the milliseconds since its last
    /// access, if that is known: then the item is still the key's, and may move to the hot zone.
    pub fn note_access(&self, common: &Common, hash: KeyHash, seen: Seen) -> Option<u64> {
        if !self.is_as_seen(hash, seen) {
            return None;
        }
        let block = Block::at(&self.ring, self.words, seen.handle.unit())?;
        block.set_marks(block.dead(), block.accessed() | 1 << seen.item);
        let (gap, records) = block.records().access(seen.item, common.now_ms());
        block.set_records(records);
        gap
    }

    /// Writer: whether the block of a key with this hash has not changed since it was seen.
    pub fn is_as_seen(&self, hash: KeyHash, seen: Seen) -> bool {
        self.directory.version(Path::of(hash)).is_unchanged(seen.version)
            || is_broken(Canary::PromotedUnchecked)
    }

    /// Writer: an item with this hash, of which only the low half counts, and where it is.
    pub fn item_of_hash(&self, common: &Common, hash: KeyHash) -> Option<(OwnedRecord, Seen)> {
        let path = Path::of(hash);
        let handle = self.directory.get(path)?;
        let version = self.directory.version(path).begin_read();
        let block = self.block(path)?;
        with_contents(|contents| {
            contents.copy(&block, &self.compression);
            contents.decompress(self.raw_bytes_max)?;
            let mut items = contents.items().enumerate();
            let (item, found) = items.find(|(number, item)| {
                block.dead() >> number & 1 == 0
                    && common.hasher.hash(item.key).low() == hash.low()
                    && !is_expired(item.metadata, common)
            })?;
            let (key, value) = (found.key.to_vec(), found.value.to_vec());
            Some((OwnedRecord { key, value, metadata: found.metadata }, Seen { version, handle, item }))
        })
    }

    /// Writer: hides the items that may be the key's; returns how many there were. Others are hidden with a probability
    /// of 1 in 65,536 for each item of the block.
    pub fn hide(&self, hash: KeyHash) -> u64 {
        let path = Path::of(hash);
        let Some(block) = self.block(path) else { return 0 };
        let hidden = self.hide_some(path, &block, block.matches(fingerprint(hash)));
        add(&self.counters.hidden, hidden);
        hidden
    }

    fn hide_some(&self, path: Path, block: &Block<'_>, items: u32) -> u64 {
        let hidden = items & !block.dead();
        if hidden != 0 {
            let _changing = self.directory.begin_change(path);
            block.set_marks(block.dead() | hidden, block.accessed() & !hidden);
        }
        add(&self.counters.items, u64::from(hidden.count_ones()).wrapping_neg());
        u64::from(hidden.count_ones())
    }

    /// Writer: removes the item of `key`; returns whether there was one.
    pub fn remove(&self, common: &Common, hash: KeyHash, key: &[u8]) -> bool {
        let Lookup::Found(seen) = self.read(common, hash, key, |_, _, seen| seen) else { return false };
        let path = Path::of(hash);
        if let Some(block) = self.block(path) {
            add(&self.counters.removed, self.hide_some(path, &block, 1 << seen.item));
        }
        true
    }

    /// Calls `visit` with key, value and metadata of the items whose hashes have low halves from `from` up to before
    /// `end`. Beside a writer, which may move items to the hot zone or back, the caller validates the hot zone
    /// afterwards.
    pub fn visit(
        &self,
        common: &Common,
        from: u64,
        end: Option<u64>,
        visit: &mut impl FnMut(&[u8], &[u8], Metadata),
    ) {
        let mut low = from;
        loop {
            let path = Path::of(KeyHash::from_halves(0, low));
            let next = with_contents(|contents| {
                let (dead, depth) = loop {
                    let version = self.directory.version(path).begin_read();
                    let block = self.block(path);
                    if let Some(block) = &block {
                        contents.copy(block, &self.compression);
                    }
                    let dead_and_depth = block.map(|block| (block.dead(), block.head.depth));
                    let depth = self.directory.depth();
                    if self.directory.version(path).is_unchanged(version) {
                        break dead_and_depth.map_or((u32::MAX, depth), |(dead, depth)| (dead, depth));
                    }
                    spin_hint();
                };
                if dead != u32::MAX && contents.decompress(self.raw_bytes_max).is_some() {
                    for (number, item) in contents.items().enumerate() {
                        let is_seen = dead >> number & 1 == 0 && !is_expired(item.metadata, common);
                        let item_low = common.hasher.hash(item.key).low();
                        if is_seen && item_low >= from && end.is_none_or(|end| item_low < end) {
                            visit(item.key, item.value, item.metadata);
                        }
                    }
                }
                // The first hash of the next block.
                (low | (u64::MAX >> depth)).checked_add(1)
            });
            match next {
                Some(next) if end.is_none_or(|end| next < end) => low = next,
                _ => return,
            }
        }
    }

    /// Writer: drops the items that have expired.
    pub fn drop_expired(&self, common: &Common) {
        let mut low = Some(0_u64);
        while let Some(from) = low {
            let path = Path::of(KeyHash::from_halves(0, from));
            let mut depth = self.directory.depth();
            if let Some(block) = self.block(path) {
                depth = block.head.depth;
                let expired = with_contents(|contents| {
                    contents.copy(&block, &self.compression);
                    contents.decompress(self.raw_bytes_max)?;
                    let expired =
                        contents.items().enumerate().filter(|(_, item)| is_expired(item.metadata, common));
                    Some(expired.fold(0, |bits, (number, _)| bits | 1_u32 << number))
                });
                let expired = expired.unwrap_or(0) & all(block.head.items as usize);
                add(&self.counters.expired, self.hide_some(path, &block, expired));
            }
            low = (from | (u64::MAX >> depth)).checked_add(1);
        }
    }
}
