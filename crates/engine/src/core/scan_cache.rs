//! [`ScanCache`]: items that scans have collected, for use by their next calls.
//!
//! A hint, never the truth: only the cursor says where a scan continues. A piece is valid only while its keyspace is
//! unchanged since the piece was collected. A section never changes, so items collected from one are always valid.
//! Nothing here refers to a version, a table or a log: an abandoned scan leaves some memory, which is bounded for all
//! scans of the database together and shown by [`crate::MemoryStats::scans`].

use std::collections::VecDeque;
use std::sync::Arc;

use alluvium_base::{HashRange, KeyspaceId, SegmentId, TableId};
use alluvium_io::sync::Mutex;

use super::scan_piece::{KeyspaceState, Piece};
use super::shared::Shared;
use crate::chained::Chain;
use crate::merge::YoungItems;
use crate::table::{Loan, Section};

/// Maximum number of entries: each call searches all of them.
const ENTRIES_MAX: usize = 256;

/// Collected items, the most recently used last.
#[derive(Debug, Default)]
pub(crate) struct ScanCache {
    kept: Mutex<VecDeque<Kept>>,
}

#[derive(Debug)]
struct Kept {
    keyspace: KeyspaceId,
    items: Items,
    bytes: u64,
    /// The memory taken from the limit.
    _loan: Option<Loan>,
}

#[derive(Debug)]
enum Items {
    /// All items of a range of places, from `from` on.
    Piece { from: u64, target: usize, moment: KeyspaceState, piece: Arc<Piece> },
    /// The items of a section in the order of slots that are in a part of the hash space.
    Sorted { of: Collected, part: HashRange, items: Arc<YoungItems> },
}

/// What items were collected from. It never changes, and its name is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Collected {
    /// A section: number of the file, and offset.
    Section(TableId, u64),
    /// The files of a keyspace's chains, from the oldest to the youngest segment.
    Chains(KeyspaceId, SegmentId, SegmentId),
}

impl Collected {
    pub fn of_section(section: &Section) -> Self {
        Self::Section(section.file_number(), section.page_offset(0))
    }

    /// `None` for chains without files.
    pub fn of_chains(chain: &Chain) -> Option<Self> {
        let (oldest, youngest) = (chain.files.first()?, chain.files.last()?);
        Some(Self::Chains(chain.keyspace(), oldest.segment, youngest.segment))
    }
}

impl ScanCache {
    /// The piece with the items from `place` on, if the keyspace is unchanged.
    pub(crate) fn piece(&self, keyspace: KeyspaceId, place: u64, now: &KeyspaceState) -> Option<Arc<Piece>> {
        self.find(|kept| match &kept.items {
            Items::Piece { from, moment, piece, .. } => {
                let is_there = *from <= place && piece.to.is_none_or(|to| place < to);
                (kept.keyspace == keyspace && is_there && moment == now).then(|| piece.clone())
            }
            Items::Sorted { .. } => None,
        })
    }

    /// Removes the piece that ends at `place`, as its scan continues, and returns the number of items for which it was
    /// collected. `None` if the keyspace has changed since, or there is no such piece.
    pub(crate) fn take_piece_before(
        &self,
        keyspace: KeyspaceId,
        place: u64,
        now: &KeyspaceState,
    ) -> Option<usize> {
        let mut kept = self.lock();
        let at = kept.iter().position(|kept| {
            let ends_here =
                |items: &Items| matches!(items, Items::Piece { piece, .. } if piece.to == Some(place));
            kept.keyspace == keyspace && ends_here(&kept.items)
        })?;
        match kept.remove(at)?.items {
            Items::Piece { target, moment, .. } => (moment == *now).then_some(target),
            Items::Sorted { .. } => None,
        }
    }

    /// Keeps a piece.
    pub(crate) fn keep_piece(
        &self,
        shared: &Shared,
        keyspace: KeyspaceId,
        (from, target): (u64, usize),
        moment: KeyspaceState,
        piece: &Arc<Piece>,
    ) {
        let items = Items::Piece { from, target, moment, piece: piece.clone() };
        self.keep(shared, keyspace, items, piece.memory_bytes());
    }

    /// The items of a section, or of chains, in a part of the hash space.
    pub(crate) fn sorted(&self, wanted: Collected, within: HashRange) -> Option<Arc<YoungItems>> {
        self.find(|kept| match &kept.items {
            Items::Sorted { of, part, items } => (*of == wanted && *part == within).then(|| items.clone()),
            Items::Piece { .. } => None,
        })
    }

    /// Keeps the items of a section or of chains.
    pub fn keep_sorted(
        &self,
        shared: &Shared,
        (keyspace, of): (KeyspaceId, Collected),
        part: HashRange,
        items: &Arc<YoungItems>,
    ) {
        let bytes = items.memory_bytes();
        let items = Items::Sorted { of, part, items: items.clone() };
        self.keep(shared, keyspace, items, bytes);
    }

    /// Drops the sections' items in a part of the hash space that a scan has passed.
    pub fn drop_part(&self, keyspace: KeyspaceId, passed: HashRange) {
        self.lock().retain(|kept| {
            let is_passed = matches!(kept.items, Items::Sorted { part, .. } if part == passed);
            kept.keyspace != keyspace || !is_passed
        });
    }

    /// Drops everything that was collected from a keyspace.
    pub fn forget(&self, keyspace: KeyspaceId) {
        self.lock().retain(|kept| kept.keyspace != keyspace);
    }

    /// Drops everything.
    pub fn clear(&self) {
        self.lock().clear();
    }

    /// Memory in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.lock().iter().map(|kept| kept.bytes).sum()
    }

    /// Keeps items. If there is no room for all, those that have not been used for the longest time are dropped.
    fn keep(&self, shared: &Shared, keyspace: KeyspaceId, items: Items, bytes: u64) {
        let bytes_max = shared.memory.budget().scan_bytes();
        if bytes > bytes_max {
            return;
        }
        let loan = shared.memory.lend(bytes);
        let mut kept = self.lock();
        kept.push_back(Kept { keyspace, items, bytes, _loan: loan });
        let mut held: u64 = kept.iter().map(|kept| kept.bytes).sum();
        while held > bytes_max || kept.len() > ENTRIES_MAX {
            let Some(oldest) = kept.pop_front() else { break };
            held -= oldest.bytes;
        }
    }

    /// The result of `wanted` for one of the entries, which becomes the most recently used.
    fn find<R>(&self, wanted: impl Fn(&Kept) -> Option<R>) -> Option<R> {
        let mut kept = self.lock();
        let (at, found) = kept.iter().enumerate().find_map(|(at, kept)| Some((at, wanted(kept)?)))?;
        let used = kept.remove(at)?;
        kept.push_back(used);
        Some(found)
    }

    fn lock(&self) -> alluvium_io::sync::MutexGuard<'_, VecDeque<Kept>> {
        self.kept.lock().expect("no panic while held")
    }
}
