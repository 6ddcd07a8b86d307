//! The content of one simulated file: what its users see, what a power cut leaves, and the unsynced changes between
//! them.

use super::sparse_bytes::SparseBytes;
use crate::random::Random;

/// What a device writes in one piece or not at all.
const SECTOR_BYTES: usize = 512;

/// A change that may not be on the device yet.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Write { offset: u64, bytes: Vec<u8> },
    SetLen(u64),
    Punch { offset: u64, len: u64 },
}

impl Change {
    fn apply(&self, content: &mut SparseBytes) {
        match self {
            Self::Write { offset, bytes } => content.write(bytes, *offset),
            Self::SetLen(len) => content.set_len(*len),
            Self::Punch { offset, len } => content.punch(*offset, *len),
        }
    }
}

/// How likely the changes of one crash survive. Drawn once per crash, because the extremes (all lost, all kept) find
/// other faults than mixtures do, and independent draws would never reach them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mood {
    keep_of_256: u64,
}

impl Mood {
    pub(super) fn draw(random: &mut Random) -> Self {
        const CHOICES: [u64; 6] = [0, 256, 128, 128, 40, 216];
        Self { keep_of_256: CHOICES[random.below(CHOICES.len() as u64) as usize] }
    }

    pub(super) fn keeps(self, random: &mut Random) -> bool {
        random.chance(self.keep_of_256)
    }

    fn is_mixed(self) -> bool {
        (1..256).contains(&self.keep_of_256)
    }
}

/// One file, whatever its name. Invariant: `live` is `durable` with all of `unsynced` applied in order, unless a sync
/// has failed.
#[derive(Debug, Default)]
pub(super) struct Inode {
    pub(super) live: SparseBytes,
    durable: SparseBytes,
    unsynced: Vec<Change>,
    /// Handles that are open; a file without names lives as long as they do.
    pub(super) handles: usize,
}

impl Inode {
    pub(super) fn with_durable(bytes: &[u8]) -> Self {
        let mut durable = SparseBytes::default();
        durable.write(bytes, 0);
        Self { live: durable.clone(), durable, unsynced: Vec::new(), handles: 0 }
    }

    pub(super) fn change(&mut self, change: Change) {
        if matches!(&change, Change::Write { bytes, .. } if bytes.is_empty()) {
            // Writing nothing extends nothing, however far out it is.
            return;
        }
        change.apply(&mut self.live);
        self.unsynced.push(change);
    }

    pub(super) fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            change.apply(&mut self.durable);
        }
    }

    /// A sync that fails, as on Linux (Rebello et al., "Can applications recover from fsync failures?", 2020): the
    /// device gets some of the changes, the others are forgotten, and the page cache still shows them all.
    pub(super) fn fail_sync(&mut self, random: &mut Random) {
        let mood = Mood::draw(random);
        self.settle(random, mood);
    }

    /// A power cut: what survives becomes what all users see.
    pub(super) fn crash(&mut self, random: &mut Random, mood: Mood) {
        self.settle(random, mood);
        self.live = self.durable.clone();
        self.handles = 0;
    }

    /// Decides about each change separately: lost, kept, or torn at sectors. A later change may survive although an
    /// earlier one does not, which exposes reordered writes.
    fn settle(&mut self, random: &mut Random, mood: Mood) {
        for change in std::mem::take(&mut self.unsynced) {
            let torn = mood.is_mixed() && random.chance(64);
            match &change {
                Change::Write { offset, bytes } if torn => self.tear(random, *offset, bytes),
                _ if mood.keeps(random) => change.apply(&mut self.durable),
                // The length is metadata, and may arrive without the bytes.
                Change::Write { offset, bytes } if mood.is_mixed() && random.chance(64) => {
                    self.extend_to(offset + bytes.len() as u64);
                }
                _ => {}
            }
        }
    }

    fn tear(&mut self, random: &mut Random, offset: u64, bytes: &[u8]) {
        let mut start = 0;
        while start < bytes.len() {
            let position = offset + start as u64;
            let step = SECTOR_BYTES - (position % SECTOR_BYTES as u64) as usize;
            let end = bytes.len().min(start + step);
            if random.chance(128) {
                self.durable.write(&bytes[start..end], position);
            }
            start = end;
        }
        if random.chance(128) {
            self.extend_to(offset + bytes.len() as u64);
        }
    }

    fn extend_to(&mut self, len: u64) {
        if len > self.durable.len() {
            self.durable.set_len(len);
        }
    }

    /// Damages the medium: one bit of what is stored and of what is cached.
    pub(super) fn flip_bit(&mut self, offset: u64, bit: u32) {
        for content in [&mut self.live, &mut self.durable] {
            let mut byte = [0];
            if content.read(&mut byte, offset) == 1 {
                content.write(&[byte[0] ^ 1 << (bit % 8)], offset);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn has_unsynced(&self) -> bool {
        !self.unsynced.is_empty()
    }
}
