//! What distinguishes kinds of partitions: the index, the region of the items, and what happens when there is no room.

use std::fmt;

use alluvium_base::KeyHash;

use crate::access::Access;
use crate::index::{Entry, Index, Slot, Versioned};
use crate::item::{Header, Metadata};
use crate::region::Region;

use super::Partition;
use super::body::{Body, Found};

/// The policy of a partition, with the state that it keeps. All calls are resolved when the program is compiled.
///
/// Reads and writes are the same for all policies: `fast`, `read` and `write`. What a policy leaves at its default
/// costs it nothing.
pub(crate) trait Policy: Sized + fmt::Debug + Send + Sync + 'static {
    /// Where keys are looked up.
    type Index: Index;
    /// Where items are stored.
    type Region: Region;
    /// Why an item is refused.
    type Refusal;

    /// Whether small items may be stored in cells in front of the index.
    const HAS_CELLS: bool;
    /// Whether an exclusive partition lends out values without a copy.
    const LENDS: bool;
    /// Whether a change that ends by a panic makes its chain unusable, since nothing may be forgotten.
    const REFUSES_BROKEN: bool;

    /// Maximum accesses that are counted per item.
    fn counted_max(&self) -> u32;

    /// Whether a read does nothing for the policy except counting an access, so that a few instructions suffice.
    fn only_counts(&self) -> bool;

    /// Whether entries of evicted items stay in the index.
    fn leaves_entries(&self) -> bool {
        false
    }

    /// Counts a hit or miss.
    #[inline(always)]
    fn count_read<A: Access>(&self, _is_hit: bool) {}

    /// Called for each item that a read found. Returns the item's entry, which may have changed.
    #[inline(always)]
    fn on_hit<A: Access>(
        _partition: &Partition<Self, A>,
        _body: &Body<Self>,
        found: &Found<'_>,
        _hash: KeyHash,
    ) -> Entry {
        found.entry
    }

    /// Called for each item that was overwritten in place.
    #[inline(always)]
    fn on_update<A: Access>(_partition: &Partition<Self, A>, _body: &Body<Self>, _found: &Found<'_>) {}

    /// Calls `take` with the item of a key that neither cells nor region have, if there is another tier that has it.
    #[inline(always)]
    fn read_behind<A: Access, T>(
        _partition: &Partition<Self, A>,
        _hash: KeyHash,
        _key: &[u8],
        _take: impl FnOnce(&[u8], Metadata) -> T,
    ) -> Option<T> {
        None
    }

    /// Whether another tier has an item of a key that neither cells nor region have. Does not count as an access.
    fn is_behind<A: Access>(_partition: &Partition<Self, A>, _hash: KeyHash, _key: &[u8]) -> bool {
        false
    }

    /// Writer: a copy of the item of a key that neither cells nor region have, if there is another tier that has it.
    fn copy_behind<A: Access>(
        _partition: &Partition<Self, A>,
        _hash: KeyHash,
        _key: &[u8],
    ) -> Option<(Vec<u8>, Metadata)> {
        None
    }

    /// Writer: removes the item of a key that neither cells nor region have from another tier; returns whether it was
    /// there.
    fn remove_behind<A: Access>(_partition: &Partition<Self, A>, _hash: KeyHash, _key: &[u8]) -> bool {
        false
    }

    /// Writer: called when a key that neither cells nor region had has got an item there.
    #[inline(always)]
    fn on_insert<A: Access>(_partition: &Partition<Self, A>, _hash: KeyHash) {}

    /// Calls `visit` with the items of other tiers whose hashes have low halves from `from` up to before `end`.
    fn visit_behind<A: Access>(
        _partition: &Partition<Self, A>,
        _from: u64,
        _end: Option<u64>,
        _visit: &mut impl FnMut(&[u8], &[u8], Metadata),
    ) {
    }

    /// The access count of an item that replaces one with this count at another position.
    fn replaced_count(&self, _count: u32) -> u32 {
        0
    }

    /// The first step of every write: upkeep that reads or the passing of time made due.
    #[inline(always)]
    fn before_write<A: Access>(_partition: &Partition<Self, A>, _body: &Body<Self>) {}

    /// Whether a write has upkeep to do besides its own operation.
    #[inline(always)]
    fn is_upkeep_due(&self) -> bool {
        false
    }

    /// Called when the tables have grown.
    fn on_growth(&self, _body: &Body<Self>) {}

    /// Starts loading what the insertion of a key needs.
    #[inline(always)]
    fn prefetch_insertion(_body: &Body<Self>, _hash: KeyHash) {}

    /// Stores a plain item of a key that has none in a cell, if there is one for it; returns whether it did.
    #[inline(always)]
    fn put_in_cell<A: Access>(
        _partition: &Partition<Self, A>,
        _body: &Body<Self>,
        _hash: KeyHash,
        _key: &[u8],
        _value: &[u8],
    ) -> bool {
        false
    }

    /// The refusal of an item that is larger than any that can be stored.
    fn too_large(body: &Body<Self>) -> Self::Refusal;

    /// Makes room for an item in the region: returns its future entry, and its header, to be written there. The item
    /// replaces `before`, which may be moved or evicted for it.
    ///
    /// # Errors
    /// The policy's refusal; nothing was changed.
    fn admit<A: Access>(
        partition: &Partition<Self, A>,
        body: &Body<Self>,
        hash: KeyHash,
        header: Header,
        before: Option<&Found<'_>>,
    ) -> Result<(Entry, Header), Self::Refusal>;

    /// Makes room for an entry in the chain that starts at bucket `chain` and is full.
    ///
    /// # Errors
    /// The policy's refusal; nothing was changed.
    fn make_way<A: Access>(
        partition: &Partition<Self, A>,
        body: &Body<Self>,
        chain: usize,
    ) -> Result<Slot, Self::Refusal>;

    /// Called when a change of a bucket ended by a panic, so that the bucket's items may have any state. Readers
    /// continue unless the policy [refuses](Self::REFUSES_BROKEN) the chain.
    fn abandon<A: Access, B: Versioned>(partition: &Partition<Self, A>, bucket: &B);

    /// # Panics
    /// If a change has ended by a panic and the policy refuses what it left.
    fn refuse_if_broken(&self) {}
}
