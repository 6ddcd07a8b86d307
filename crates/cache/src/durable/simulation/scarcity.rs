//! Seeds whose cache has too little room for what is used, and whose writes rarely flush a line.
//!
//! There promoted items are soon dropped, and their keys are set, removed and missed while the medium may still have an
//! older descriptor. Few keys are in such a place at a time, so operations choose keys by where their items are, and
//! crashes come when a key is there.

use super::super::descriptor::Descriptor;
use super::super::geometry::{Geometry, WAYS};
use super::super::medium::LINE_BYTES;
use super::super::part::State;
use super::super::simulated::{Loss, Random};
use super::Run;

/// What crashes leave that come at any time.
pub(super) const LOSSES: [Loss; 4] = [Loss::Nothing, Loss::Lines, Loss::Words, Loss::Words];
/// Keys that are tried until one has its item in the place that is wanted.
const TRIALS: usize = 16;

/// Where the item of a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It has none.
    Nowhere,
    /// In a block of the ready zone.
    ReadyBlock,
    Elsewhere,
}

/// An item that came from a block.
pub(super) struct Promoted {
    key: Vec<u8>,
    /// The byte of its descriptor, its descriptor before, and the moment when it had that.
    at: usize,
    block: Descriptor,
    moment: u64,
}

/// Makes few zones and many buckets. A new item then finds a vacant way and takes it without a flush.
pub(super) fn shape(geometry: &mut Geometry, random: &mut Random) {
    geometry.partitions = 1;
    geometry.zones = random.one_of(&[4, 5]);
    geometry.zone_bytes = 1024;
    geometry.buckets = 60;
}

impl Run {
    /// A byte of values that do not compress.
    pub(super) fn noise(&mut self) -> u8 {
        b'!' + self.random.below(90) as u8
    }

    /// An operation of such a seed.
    pub(super) fn scarce_operation(&mut self) -> Result<(), String> {
        match self.random.below(16) {
            0..4 => {
                if let Some(key) = self.key_at(Place::ReadyBlock) {
                    let before = self.descriptor_of(&key);
                    let moment = self.core.shared.medium.moment();
                    // The second get promotes it.
                    self.look(&key)?;
                    self.look(&key)?;
                    self.promoted.extend(before.map(|(at, block)| Promoted { key, at, block, moment }));
                }
            }
            4..9 => {
                if let Some(key) = self.key_at(Place::Nowhere) {
                    self.set(&key);
                    if !self.core.shared.medium.has_crashed() && self.random.below(2) == 0 {
                        // It is kept rather than packed.
                        self.look(&key)?;
                    }
                }
            }
            9..11 => {
                if let Some(key) = self.key_at(Place::Nowhere) {
                    self.look(&key)?;
                }
            }
            11 if self.random.below(4) == 0 => {
                let key = self.key();
                self.set(&key);
            }
            11 if self.random.below(4) == 0 => {
                let key = self.key();
                self.remove(&key);
            }
            _ => {
                let key = self.key();
                self.look(&key)?;
            }
        }
        Ok(())
    }

    /// Whether a crash comes now: often when a promoted item was dropped whose former block is still there. Its key is
    /// missed before, and perhaps set, and the crash leaves the line of its descriptor as it was before the promotion.
    pub(super) fn comes_to_crash(&mut self) -> Result<bool, String> {
        let Self { promoted, core, .. } = self;
        promoted.retain(|Promoted { block, .. }| {
            core.shared.version(block.place().zone) == block.place().version
        });
        let is_missing = |promoted: &Promoted| self.place_of(&promoted.key) == Place::Nowhere;
        let Some(number) = self.promoted.iter().position(is_missing) else { return Ok(false) };
        let Promoted { key, at, moment, .. } = self.promoted.swap_remove(number);
        self.look(&key)?;
        if self.random.below(2) == 0 {
            self.set(&key);
        }
        if self.core.shared.medium.has_crashed() || self.random.below(2) == 0 {
            return Ok(false);
        }
        self.loss = Loss::Line(at / LINE_BYTES * LINE_BYTES, moment);
        Ok(true)
    }

    /// A key whose item is there, unless a few trials find none.
    fn key_at(&mut self, place: Place) -> Option<Vec<u8>> {
        for _ in 0..TRIALS {
            let key = self.key();
            if self.place_of(&key) == place {
                return Some(key);
            }
        }
        None
    }

    /// The descriptor of a key, and its byte.
    fn descriptor_of(&self, key: &[u8]) -> Option<(usize, Descriptor)> {
        let shared = &self.core.shared;
        let hash = shared.hash(key);
        let part = self.core.part(hash);
        let sought = part.sought(hash, key);
        let bucket = part.bucket(sought.bucket);
        let mut all =
            (0..WAYS).map(|way| (shared.descriptor_at(bucket, way), shared.descriptor(bucket, way)));
        all.find(|(_, own)| own.tag() == sought.tag && part.state(*own) == State::Current)
    }

    fn place_of(&self, key: &[u8]) -> Place {
        let Some((_, descriptor)) = self.descriptor_of(key) else { return Place::Nowhere };
        let part = self.core.part(self.core.shared.hash(key));
        let is_ready = descriptor.place().zone == part.zone(part.enter().ready());
        if is_ready && part.is_block(descriptor) { Place::ReadyBlock } else { Place::Elsewhere }
    }
}
