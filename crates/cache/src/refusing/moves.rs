//! Moves items so that free space becomes contiguous: which items, where to, and when it pays off.

use crate::access::Access;
use crate::index::{Entry, Index};
use crate::partition::{Body, Counters, Partition};
use crate::region::{Hole, Neighbour, Position, Region, Space};

use super::policy::Refusing;

/// Nothing is moved when less than this fraction, one divided by this number, of the space is free: for each word
/// gained, up to this number minus one would slide.
const FREE_SHARE_MIN: u64 = 64;
/// Maximum words that one set moves, per word that it needs and in addition to that.
const MOVED_PER_WORD_MAX: u64 = 2 * FREE_SHARE_MIN;
const MOVED_WORDS_MAX: u64 = 64 << 10;
impl<A: Access> Partition<Refusing, A> {
    /// Writer: a block of `words` words, joined from smaller free ones. `None` if too little is free, if it would take
    /// too many moves, or if items must keep their positions.
    #[cold]
    pub(super) fn gather(&self, body: &Body<Refusing>, words: u32) -> Option<(u32, u32)> {
        let space: &Space = &body.region;
        let free = space.free_words();
        let is_worth_it = free >= u64::from(words) && free * FREE_SHARE_MIN >= u64::from(space.words());
        if self.policy.keeps_places || !is_worth_it {
            return None;
        }
        let mut moves_left = u64::from(words) * MOVED_PER_WORD_MAX + MOVED_WORDS_MAX;
        let mut ends = 0;
        while let Some(mut hole) = space.dig(&mut moves_left) {
            let is_over = self.enlarge(body, &mut hole, words, &mut moves_left);
            space.fill(hole);
            if is_over {
                break;
            }
            // A hole that starts at the beginning of the space has collected all free words when it reaches the end.
            ends += 1;
            if ends == 2 {
                break;
            }
            space.begin_again();
        }
        space.allocate(words)
    }

    /// Moves the items after the hole until the hole has `words` words or no moves are left. Returns `false` if the
    /// space ends before.
    fn enlarge(&self, body: &Body<Refusing>, hole: &mut Hole, words: u32, moves_left: &mut u64) -> bool {
        loop {
            let neighbour = body.region.widen(hole);
            if hole.words >= words {
                return true;
            }
            match neighbour {
                Neighbour::End => return false,
                Neighbour::Item(item) if *moves_left >= u64::from(item) => {
                    *moves_left -= u64::from(item);
                    self.move_away(body, hole, item);
                }
                Neighbour::Item(_) => return true,
            }
        }
    }

    /// Moves the item after the hole, which has `words` words, to a free block elsewhere or otherwise to the hole's
    /// start.
    fn move_away(&self, body: &Body<Refusing>, hole: &mut Hole, words: u32) {
        let (space, index, unit): (&Space, _, _) = (&body.region, &body.index, hole.end());
        let here = |entry: Entry| entry.position() == Position(u64::from(unit));
        let stored = space.site(Entry::new(1, 0, Position(u64::from(unit)))).item();
        let place = index.place(self.hash_of(stored));
        let (slot, entry) = index
            .entries(place.bucket)
            .find(|&(_, entry)| here(entry))
            .expect("every block in use has its entry");
        let header = stored.header;
        let elsewhere = header.can_grow().then(|| space.allocate(words)).flatten();
        let (to, header) = match elsewhere {
            Some((start, taken)) => (start, header.grown_to(taken as usize)),
            None => (hole.start, header),
        };
        self.change(index.first(place), || {
            // Where the two overlap, the new position is the lower one, and words are copied in ascending order.
            space.copy(unit, to, words, header);
            index.put(place.bucket, slot, Entry::new(entry.tag(), 0, Position(u64::from(to))), 0);
        });
        match elsewhere {
            Some(_) => space.take_over(hole, words),
            None => space.shift(hole, words),
        }
        Counters::count(&self.counters.moved);
    }
}
