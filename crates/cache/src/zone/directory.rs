//! Which block has a key: an extendible directory over the hashes of keys.
//!
//! ```text
//!  depth 2   [ A ][ B ][ C ][ B ]       index: the last 2 bits of the reversed hash
//!  B splits, its depth was 1: depth 2   [ A ][ B ][ C ][ B' ]
//!  C splits, its depth was 2: depth 3   [ A ][ B ][ C ][ B' ][ A ][ B ][ C'][ B' ]
//! ```
//!
//! The directory doubles in place: its second half is a copy of the first. So it needs no memory for the largest size
//! before that size is reached, and readers continue while it doubles. The bits of the hash are reversed, so that a
//! block has a contiguous range of hashes, as a chain of the index has. The thesis (§3.3.1) has a complete binary tree
//! with ghost leaves in a linear array instead, in which a lookup inspects up to three pointers; here it is one, for
//! about as many bytes.

use std::io;

use alluvium_base::KeyHash;

use crate::index::VersionCounter;
use crate::memory::{Array, Element};
use crate::sync::{AtomicU32, Ordering};

/// Blocks are told apart by at least this many bits, each combination of which has a version.
pub(super) const STRIPE_BITS: u32 = if cfg!(loom) { 1 } else { 6 };

/// Maximum bits by which blocks are told apart: a block's header has room for this many.
pub(super) const DEPTH_MAX: u32 = 27;

/// The bits of a hash in the order in which the directory uses them, the first one lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Path(pub u64);

impl Path {
    pub fn of(hash: KeyHash) -> Self {
        Self(hash.low().reverse_bits())
    }

    /// Its first `depth` bits.
    pub fn prefix(self, depth: u32) -> u32 {
        (self.0 & ((1 << depth) - 1)) as u32
    }

    /// The bit after the first `depth` bits.
    pub fn bit(self, depth: u32) -> bool {
        self.0 >> depth & 1 == 1
    }
}

/// Where a block starts in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handle(u32);

impl Handle {
    pub fn at(unit: u32) -> Self {
        Self(unit + 1)
    }

    /// The block's first word.
    pub fn unit(self) -> u32 {
        self.0 - 1
    }
}

/// A handle plus one; 0 for none.
#[derive(Debug)]
#[repr(transparent)]
struct Slot(AtomicU32);

// SAFETY: one atomic integer without drop glue, for which zeros are a valid value: no block.
unsafe impl Element for Slot {
    #[cfg(any(not(target_os = "linux"), miri, loom))]
    fn blank() -> Self {
        Self(AtomicU32::new(0))
    }
}

/// See the module. One writer; any thread reads.
#[derive(Debug)]
pub(super) struct Directory {
    slots: Array<Slot>,
    depth: AtomicU32,
    depth_max: u32,
    versions: Box<[VersionCounter]>,
}

/// A change of blocks with the same version; readers that run beside it repeat.
pub(super) struct Changing<'a>(&'a VersionCounter);

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.0.end_change();
    }
}

impl Directory {
    /// A directory without blocks, which may have up to 2^`depth_max` of them.
    ///
    /// # Errors
    /// The system's error if it refuses the memory.
    pub fn new(depth_max: u32) -> io::Result<Self> {
        let depth_max = depth_max.clamp(STRIPE_BITS, DEPTH_MAX);
        Ok(Self {
            slots: Array::doubling(1 << depth_max)?,
            depth: AtomicU32::new(STRIPE_BITS),
            depth_max,
            versions: (0..1 << STRIPE_BITS).map(|_| VersionCounter::new(0)).collect(),
        })
    }

    /// Bits that choose a slot.
    pub fn depth(&self) -> u32 {
        self.depth.load(Ordering::Acquire)
    }

    /// Resident bytes of the slots in use.
    pub fn bytes(&self) -> usize {
        (size_of::<Slot>() << self.depth()).next_multiple_of(crate::memory::PAGE_BYTES)
    }

    /// The version of the blocks on this path.
    pub fn version(&self, path: Path) -> &VersionCounter {
        &self.versions[path.prefix(STRIPE_BITS) as usize]
    }

    /// Writer: begins a change of blocks on this path.
    pub fn begin_change(&self, path: Path) -> Changing<'_> {
        let version = self.version(path);
        version.begin_change();
        Changing(version)
    }

    /// The block on this path.
    pub fn get(&self, path: Path) -> Option<Handle> {
        let slot = self.slots[path.prefix(self.depth()) as usize].0.load(Ordering::Relaxed);
        (slot > 0).then_some(Handle(slot))
    }

    /// Writer, within a change: the block whose paths start with the `depth` bits of `prefix` is now at `handle`, or
    /// there is none.
    pub fn set(&self, prefix: u32, depth: u32, handle: Option<Handle>) {
        let slot = handle.map_or(0, |Handle(slot)| slot);
        for number in 0..1_usize << (self.depth() - depth) {
            self.slots[prefix as usize | number << depth].0.store(slot, Ordering::Relaxed);
        }
    }

    /// Writer: makes room for blocks that `depth` bits tell apart; returns whether there is.
    pub fn deepen(&self, depth: u32) -> bool {
        while self.depth() < depth {
            let now = self.depth();
            if now == self.depth_max {
                return false;
            }
            let (first, second) = self.slots[..2 << now].split_at(1 << now);
            for (from, to) in first.iter().zip(second) {
                to.0.store(from.0.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            self.depth.store(now + 1, Ordering::Release);
        }
        true
    }

    /// Writer: drops all blocks.
    pub fn clear(&self) {
        for stripe in 0..1_u64 << STRIPE_BITS {
            let _changing = self.begin_change(Path(stripe));
            let depth = self.depth();
            for number in 0..1_usize << (depth - STRIPE_BITS) {
                self.slots[stripe as usize | number << STRIPE_BITS].0.store(0, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_while_the_directory_doubles() {
        let directory = Directory::new(STRIPE_BITS + 4).unwrap();
        let paths = (0..1 << (STRIPE_BITS + 4)).map(Path);
        assert!(paths.clone().all(|path| directory.get(path).is_none()));
        for stripe in 0..1 << STRIPE_BITS {
            directory.set(stripe, STRIPE_BITS, Some(Handle::at(stripe)));
        }
        assert!(directory.deepen(STRIPE_BITS + 3) && !directory.deepen(STRIPE_BITS + 5));
        for path in paths.clone() {
            assert_eq!(directory.get(path).map(Handle::unit), Some(path.prefix(STRIPE_BITS)));
        }
        directory.set(5, STRIPE_BITS + 2, Some(Handle::at(1000)));
        for path in paths {
            let is_moved = path.prefix(STRIPE_BITS + 2) == 5;
            let expected = if is_moved { 1000 } else { path.prefix(STRIPE_BITS) };
            assert_eq!(directory.get(path).map(Handle::unit), Some(expected));
        }
    }
}
