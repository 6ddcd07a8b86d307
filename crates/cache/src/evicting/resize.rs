//! Changes the size at run time: items move into new parts.

use std::io;

use crate::access::Access;
use crate::index::{Entry, Index};
use crate::memory::{HUGE_PAGE_BYTES, UNIT_BYTES};
use crate::partition::{Body, Counters, Partition, Policy};
use crate::region::{MAIN, PROBATION, copy_words};

use super::evict::Oldest;
use super::policy::Evicting;
use super::shape::{Shape, TierShape};

impl<A: Access> Partition<Evicting, A> {
    /// Changes the partition's sizes. Items move to the new parts, oldest first, so that the youngest stay if there is
    /// less room. Old memory is returned to the system once its items have moved, so at most 2 MiB exist twice. Readers
    /// continue; meanwhile they miss items that have not moved yet.
    ///
    /// # Errors
    /// The system's error if it refuses the memory; then nothing has changed.
    pub fn resize(&self, shape: Shape) -> io::Result<()> {
        let _writing = self.enter();
        let new = self.policy.body(shape, self.counters.items())?;
        let old = self.body.replace(new);
        let new = self.body.get();
        self.policy.sweeper.restart_over(new);
        if let Some((tiers, TierShape { split, .. })) = self.policy.tiers.as_deref().zip(shape.tiers) {
            self.start_split(tiers, new, split);
        }
        // Entries of items evicted long ago do not move; remove and count them as long as they can be distinguished.
        self.unlink_evicted(old);
        self.move_inline_items(old, new);
        for number in [MAIN, PROBATION] {
            self.move_items(old, new, number);
        }
        old.release_tables();
        old.region.release();
        Ok(())
    }

    fn move_items(&self, old: &Body<Evicting>, new: &Body<Evicting>, number: usize) {
        let log = &old.region.logs[number];
        let mut released = log.layout().unit(log.head()) * UNIT_BYTES;
        while log.used() > 0 {
            let oldest = self.oldest(old, number);
            if let Some(way) = oldest.way {
                if self.is_expired(oldest.stored().metadata()) {
                    Counters::count(&self.counters.expired);
                } else {
                    self.move_item(&oldest, new, oldest.bucket.counts().get(way));
                }
            }
            log.advance_head(oldest.header.words());
            let done = log.layout().unit(log.head()) * UNIT_BYTES;
            if done < released || done - released >= HUGE_PAGE_BYTES {
                released = log.release_before(released, log.head());
            }
        }
    }

    fn move_item(&self, oldest: &Oldest<'_>, new: &Body<Evicting>, count: u32) {
        let words = oldest.header.words();
        let fits = |number: usize| words <= new.region.logs[number].item_words_max();
        let number = if fits(oldest.number) { oldest.number } else { MAIN };
        if !fits(number) {
            Counters::count(&self.counters.evicted);
            return;
        }
        self.make_room(new, number, words);
        let log = &new.region.logs[number];
        let position = log.reserve(words);
        copy_words((oldest.log, oldest.position), (log, position), words);
        let place = new.index.place(oldest.hash);
        let vacant = new.index.vacancy(place.bucket);
        let Ok(slot) = vacant.map_or_else(|| Evicting::make_way(self, new, place.bucket), Ok) else { return };
        let entry = Entry::new(place.tag, number, position);
        self.change(new.index.first(place), || new.index.put(place.bucket, slot, entry, count));
    }
}
