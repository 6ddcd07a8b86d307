//! [`ReadChain`]: a chain that was read, to be written anew (SkimpyStash, SIGMOD 2011, §4.6).

use std::sync::Arc;

use alluvium_base::{KeyHash, KeyHasher};
use alluvium_index::chain_region::{ChainRegion, Slot};
use alluvium_io::AlignedBuffer;
use alluvium_io::sync::atomic::{AtomicU64, Ordering};

use super::address::Address;
use super::chain::Chain;
use super::directory::Directory;
use super::walk::{ChainWalk, Step};
use crate::error::{IoContext, Result};
use crate::item::EncodedItem;
use crate::level::Version;
use crate::table::PAGE_BYTES;

/// Where a chain was when it was read. While its head is the same, and its region has as many slots, no key of it was
/// written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReadChain {
    pub region: usize,
    pub slot: Slot,
    /// Slots of the region.
    pub slots: usize,
    pub head: Address,
}

/// A record of a chain: where it is, and its item as it is encoded there.
#[derive(Debug)]
pub(crate) struct ChainRecord {
    pub address: Address,
    pub hash: KeyHash,
    pub bytes: Vec<u8>,
}

/// A region of a directory as it was.
#[derive(Debug)]
pub(crate) struct RegionHeads {
    number: usize,
    region: Arc<ChainRegion>,
    end: Address,
}

impl RegionHeads {
    pub(super) fn new(number: usize, region: Arc<ChainRegion>, end: Address) -> Self {
        Self { number, region, end }
    }

    /// The number of the region.
    pub fn number(&self) -> usize {
        self.number
    }

    /// The first or second slot of a key.
    pub fn slot(&self, hash: KeyHash, is_in_second: bool) -> Option<Slot> {
        let (first, second) = self.region.slots_of(hash);
        if is_in_second { second } else { Some(first) }
    }

    /// The chain of a slot. `None` if it is empty.
    pub fn chain(&self, slot: Slot) -> Option<ReadChain> {
        let head = self.end.before(self.region.head(slot)?.0, self.region.shape().pointer_bytes)?;
        Some(ReadChain { region: self.number, slot, slots: self.region.len(), head })
    }
}

/// Whether records at these addresses, which take `bytes` in all, are so near to each other that writing them anew
/// would save no read.
pub(crate) fn are_together(addresses: impl Iterator<Item = Address> + Clone, bytes: usize) -> bool {
    let (Some(first), Some(last)) = (addresses.clone().min(), addresses.max()) else { return true };
    first.segment() == last.segment() && last.offset() - first.offset() <= (2 * bytes + PAGE_BYTES) as u64
}

impl Chain {
    /// Reads the chain that a key has in its first or second slot. Returns its records with keys of that slot, young to
    /// old, obsolete ones included; `None` if it is empty. Costs a read for each record that is not near the one before
    /// it.
    pub fn read_chain(
        &self,
        version: &Version,
        reads: &AtomicU64,
        hasher: &KeyHasher,
        (hash, is_in_second): (KeyHash, bool),
    ) -> Result<Option<(ReadChain, Vec<ChainRecord>)>> {
        let heads = self.directory.lock(hash).heads(Directory::region_of(hash));
        let read = heads.slot(hash, is_in_second).and_then(|slot| heads.chain(slot));
        let Some(read) = read else { return Ok(None) };
        let mut records = Vec::new();
        let mut note = |address: Address, item: &EncodedItem<'_>| {
            let hash = hasher.hash(item.item.key);
            if heads.slot(hash, is_in_second) == Some(read.slot) {
                records.push(ChainRecord { address, hash, bytes: item.bytes.to_vec() });
            }
            false
        };
        let mut walk = ChainWalk::over(version, self, [read.head].into_iter().collect());
        let mut buffer = AlignedBuffer::new();
        while let Step::Read(part) = walk.step_by(&mut note)? {
            buffer.resize_unspecified(part.bytes);
            reads.fetch_add(1, Ordering::Relaxed);
            let context = || format!("reading {}", part.file.name());
            part.file.file.read_at(&mut buffer, part.offset).context(context)?;
            walk.search_by(&part, &buffer, &mut note)?;
        }
        Ok(Some((read, records)))
    }
}
