//! The memory that survives: words, copies, and the two operations by which a write is made to survive.
//!
//! A store may survive a crash at any time after it was made, or not at all, each word by itself. What was flushed
//! before a fence has survived when the fence returns. So the code above decides what to flush, and nothing else is in
//! any order.

use std::fmt;

use crate::memory::UNIT_BYTES;

/// Bytes that are flushed together.
pub(crate) const LINE_BYTES: usize = 64;

/// Memory of which a part survives a crash. Offsets are bytes; those of words are multiples of eight. All accesses are
/// relaxed; words are shared as in a [`Ring`](crate::memory::Ring).
pub(crate) trait Medium: fmt::Debug + Send + Sync {
    /// Bytes of it.
    fn len(&self) -> usize;

    /// The word at byte `at`.
    fn load(&self, at: usize) -> u64;

    /// Replaces the word at byte `at`.
    fn store(&self, at: usize, word: u64);

    /// Copies bytes out, starting at byte `at`.
    fn copy_out(&self, at: usize, out: &mut [u8]) {
        for (number, bytes) in out.chunks_mut(UNIT_BYTES).enumerate() {
            let word = self.load(at + number * UNIT_BYTES).to_le_bytes();
            bytes.copy_from_slice(&word[..bytes.len()]);
        }
    }

    /// Copies bytes in, starting at byte `at`, a multiple of eight, as the only writer.
    fn copy_in(&self, at: usize, bytes: &[u8]) {
        for (number, bytes) in bytes.chunks(UNIT_BYTES).enumerate() {
            let mut word = [0; UNIT_BYTES];
            word[..bytes.len()].copy_from_slice(bytes);
            self.store(at + number * UNIT_BYTES, u64::from_le_bytes(word));
        }
    }

    /// Whether the bytes starting at byte `at` equal `bytes`.
    fn is_equal(&self, at: usize, bytes: &[u8]) -> bool {
        let mut found = vec![0; bytes.len()];
        self.copy_out(at, &mut found);
        found == bytes
    }

    /// Starts loading the bytes `at..at + len`.
    fn prefetch(&self, _at: usize, _len: usize) {}

    /// Begins to make the line that contains byte `at` survive.
    fn flush(&self, at: usize);

    /// Returns when all that was flushed survives.
    fn fence(&self);

    /// Lines that were flushed so far.
    fn flushes(&self) -> u64;

    /// Whether the code is to make a mistake on purpose, to show that the simulation notices.
    #[inline(always)]
    fn makes(&self, _mistake: Mistake) -> bool {
        false
    }
}

/// Mistakes that the simulation can plant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// A removed descriptor is not flushed.
    DeleteUnflushed,
    /// A zone's new version is flushed after the zone has been written again.
    VersionAfterReuse,
    /// A descriptor of another live item is overwritten without a flush.
    ReuseUnflushed,
    /// The descriptor of a key's former item is replaced without a flush.
    UpdateUnflushed,
    /// The checksum of an item does not depend on the descriptor.
    ChecksumUnseeded,
    /// The descriptor of an item that comes to the write cache is removed without a flush.
    HotUnflushed,
    /// An item leaves the write cache before it is in the file. Only readers on other threads notice.
    CooledEarly,
    /// Lines are flushed without a fence.
    FenceLeftOut,
    /// The version of a zone wraps while descriptors of its former versions are left.
    WrapUnscrubbed,
    /// Items of one bucket and tag come to the same block.
    TagsShared,
    /// An item that was changed while it waited for its block gets the descriptor of the block.
    PackedUnchecked,
    /// An item is promoted from a zone that is cleaned after the one that it comes to, and a restart does not renew the
    /// zone to be cleaned next, which is that one when the item has been dropped. Each rule is enough: alone, neither
    /// mistake shows.
    PromotedFromReady,
}

#[cfg(any(test, feature = "simulation"))]
impl Mistake {
    /// All that simulated crashes show, by name.
    pub const ALL: [(&'static str, Self); 11] = [
        ("delete-unflushed", Self::DeleteUnflushed),
        ("version-after-reuse", Self::VersionAfterReuse),
        ("reuse-unflushed", Self::ReuseUnflushed),
        ("update-unflushed", Self::UpdateUnflushed),
        ("checksum-unseeded", Self::ChecksumUnseeded),
        ("hot-unflushed", Self::HotUnflushed),
        ("fence-left-out", Self::FenceLeftOut),
        ("wrap-unscrubbed", Self::WrapUnscrubbed),
        ("tags-shared", Self::TagsShared),
        ("packed-unchecked", Self::PackedUnchecked),
        ("promoted-from-ready", Self::PromotedFromReady),
    ];
}

/// The byte of word number `word`, counted from byte `at`.
#[inline(always)]
pub(crate) fn word_at(at: usize, word: usize) -> usize {
    at + word * UNIT_BYTES
}
