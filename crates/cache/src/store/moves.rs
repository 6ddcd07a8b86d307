//! Moves items so that free space becomes contiguous: which items, where to, and when it pays off.

use alluvium_base::KeyHash;

use crate::access::Access;
use crate::index::{Entry, Place};
use crate::item::Header;
use crate::log::Position;
use crate::memory::UNIT_BYTES;
use crate::sync::add_alone;

use super::chains::{Chains, Slot};
use super::gather::{Hole, Neighbour};
use super::partition::Partition;

/// Nothing is moved when less than this fraction, one divided by this number, of the space is free: for each word
/// gained, up to this number minus one would slide.
const FREE_SHARE_MIN: u64 = 64;
/// Maximum words that one set moves, per word that it needs and in addition to that.
const MOVED_PER_WORD_MAX: u64 = 2 * FREE_SHARE_MIN;
const MOVED_WORDS_MAX: u64 = 64 << 10;
/// Keys up to this length are copied to the stack for hashing.
const SHORT_KEY_BYTES: usize = 128;

impl<A: Access> Partition<A> {
    /// Writer: a block of `words` words, joined from smaller free ones. `None` if too little is free, if it would take
    /// too many moves, or if items must keep their positions.
    #[cold]
    pub(super) fn gather(&self, words: u32) -> Option<(u32, u32)> {
        let free = self.space.free_words();
        let is_worth_it = free >= u64::from(words) && free * FREE_SHARE_MIN >= u64::from(self.space.words());
        if self.plan.keeps_places || !is_worth_it {
            return None;
        }
        let mut moves_left = u64::from(words) * MOVED_PER_WORD_MAX + MOVED_WORDS_MAX;
        let mut ends = 0;
        while let Some(mut hole) = self.space.dig(&mut moves_left) {
            let is_over = self.enlarge(&mut hole, words, &mut moves_left);
            self.space.fill(hole);
            if is_over {
                break;
            }
            // A hole that starts at the beginning of the space has collected all free words when it reaches the end.
            ends += 1;
            if ends == 2 {
                break;
            }
            self.space.begin_again();
        }
        self.space.allocate(words)
    }

    /// Moves the items after the hole until the hole has `words` words or no moves are left. Returns `false` if the
    /// space ends before.
    fn enlarge(&self, hole: &mut Hole, words: u32, moves_left: &mut u64) -> bool {
        loop {
            let neighbour = self.space.widen(hole);
            if hole.words >= words {
                return true;
            }
            match neighbour {
                Neighbour::End => return false,
                Neighbour::Item(item) if *moves_left >= u64::from(item) => {
                    *moves_left -= u64::from(item);
                    self.make_way(hole, item);
                }
                Neighbour::Item(_) => return true,
            }
        }
    }

    /// Moves the item after the hole, which has `words` words, to a free block elsewhere or otherwise to the hole's
    /// start.
    fn make_way(&self, hole: &mut Hole, words: u32) {
        let unit = hole.end();
        let header = Header(self.space.load(unit));
        let chains = self.chains.get();
        let (place, slot) = self.slot_of(chains, unit as usize, header);
        let elsewhere = header.can_grow().then(|| self.space.allocate(words)).flatten();
        let (to, header) = match elsewhere {
            Some((start, taken)) => (start, header.grown_to(taken as usize)),
            None => (hole.start, header),
        };
        self.change(place, || {
            // Where the two overlap, the new position is the lower one, and words are copied in ascending order.
            self.space.copy(unit, to, words, header);
            let tag = chains.entry(slot).tag();
            chains.set_entry(slot, Entry::new(tag, 0, Position(u64::from(to))));
        });
        match elsewhere {
            Some(_) => self.space.take_over(hole, words),
            None => self.space.shift(hole, words),
        }
        add_alone(&self.moved, 1);
    }

    /// The place of the key of the item at `unit`, and the slot of its entry.
    fn slot_of(&self, chains: &Chains, unit: usize, header: Header) -> (Place, Slot) {
        let place = chains.place(self.hash_at(unit, header));
        let slot = chains.find(place, |entry| entry.position() == Position(unit as u64));
        (place, slot.expect("every block in use has its entry"))
    }

    /// The hash of the key of the item at `unit`.
    pub(super) fn hash_at(&self, unit: usize, header: Header) -> KeyHash {
        let (mut short, mut long) = ([0; SHORT_KEY_BYTES], Vec::new());
        let key = match short.get_mut(..header.key_len()) {
            Some(key) => key,
            None => {
                long.resize(header.key_len(), 0);
                &mut long[..]
            }
        };
        self.space.ring().copy_out(unit * UNIT_BYTES + header.key_start(), key);
        self.plan.hasher.hash(key)
    }
}
