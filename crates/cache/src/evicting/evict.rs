//! Makes room in the logs: which items are evicted, and which are appended again instead.

use alluvium_base::KeyHash;

use crate::access::Access;
use crate::canary::{Canary, is_broken};
use crate::eviction::Eviction;
use crate::index::bucket::{Bucket, WAYS};
use crate::index::{Entry, Index, Place, Slot};
use crate::item::{Header, Stored};
use crate::partition::{Body, Counters, Found, Partition, Policy};
use crate::region::{CircularLog, MAIN, Position, copy_words};

use super::policy::Evicting;

/// LRU does not move items in the youngest fraction, one divided by this number, of a log, so their order is only
/// approximate. A move leaves a dead copy: on a Zipf trace moving all items spends 61 % of the log on dead copies,
/// moving only these 33 % (decision 0030).
const LRU_YOUNG_SHARE: u64 = 16;

/// Buckets of this many items next to the oldest are prefetched: some hundred nanoseconds of evictions.
const SCOUTED_ITEMS: u64 = 8;

/// The oldest item of a log.
pub(super) struct Oldest<'a> {
    pub number: usize,
    pub log: &'a CircularLog,
    pub position: Position,
    pub header: Header,
    pub hash: KeyHash,
    pub place: Place,
    pub bucket: &'a Bucket,
    /// The way of its entry; `None` for an item that was replaced, removed or forgotten by the index.
    pub way: Option<usize>,
}

impl Oldest<'_> {
    pub fn stored(&self) -> Stored<'_> {
        Stored { ring: self.log.ring(), unit: self.log.layout().unit(self.position), header: self.header }
    }

    /// The slot of its entry in this way.
    pub fn slot(&self, way: usize) -> Slot {
        Slot { bucket: self.place.bucket, way }
    }
}

impl<A: Access> Partition<Evicting, A> {
    /// Evicts items until log `number` has room for `words` words.
    #[inline(always)]
    pub(super) fn make_room(&self, body: &Body<Evicting>, number: usize, words: usize) {
        while body.region.logs[number].free() < words as u64 {
            self.evict_oldest(body, number);
        }
    }

    fn evict_oldest(&self, body: &Body<Evicting>, number: usize) {
        let log = &body.region.logs[number];
        if self.policy.leaves_entries() {
            log.advance_head(Header(log.load(log.head(), 0)).words());
            return;
        }
        self.scout(body, number);
        let oldest = self.oldest(body, number);
        let words = oldest.header.words();
        let Some(way) = oldest.way else {
            log.advance_head(words);
            return;
        };
        if self.is_expired(oldest.stored().metadata()) {
            self.unlink(body, oldest.place.bucket, oldest.slot(way), &self.counters.expired);
            log.advance_head(words);
        } else if self.policy.eviction == Eviction::S3Fifo {
            self.judge(body, &oldest, way);
        } else if oldest.bucket.counts().get(way) > 0 {
            self.append_again(body, &oldest, way, 0);
        } else {
            self.let_go(body, &oldest, way);
        }
    }

    /// Evicts the oldest item of a log: every item that is evicted from a log and could still be found leaves here.
    fn let_go(&self, body: &Body<Evicting>, oldest: &Oldest<'_>, way: usize) {
        if is_broken(Canary::DemotedTooLate) {
            self.unlink(body, oldest.place.bucket, oldest.slot(way), &self.counters.evicted);
            self.demote(oldest.stored(), oldest.hash);
        } else {
            self.demote(oldest.stored(), oldest.hash);
            self.unlink(body, oldest.place.bucket, oldest.slot(way), &self.counters.evicted);
        }
        oldest.log.advance_head(oldest.header.words());
    }

    /// S3-FIFO's rules for the oldest item of a log.
    fn judge(&self, body: &Body<Evicting>, oldest: &Oldest<'_>, way: usize) {
        let words = oldest.header.words();
        let main = &body.region.logs[MAIN];
        let count = oldest.bucket.counts().get(way);
        if oldest.number == MAIN {
            if count > 0 {
                self.append_again(body, oldest, way, count - 1);
                return;
            }
        } else if self.move_inline(body, oldest, way, count > 0) {
            oldest.log.advance_head(words);
            return;
        } else if count > 0 || main.free() >= words as u64 {
            self.make_room(body, MAIN, words);
            // Room in the main log costs items of that log, never one on probation: `way` still contains this one.
            self.change(oldest.bucket, || {
                let position = main.reserve(words);
                copy_words((oldest.log, oldest.position), (main, position), words);
                oldest.bucket.set_entry(way, Entry::new(oldest.bucket.entry(way).tag(), MAIN, position));
                oldest.bucket.counts().set(way, 0);
            });
            Counters::count(&self.counters.moved);
            oldest.log.advance_head(words);
            return;
        } else if let Some(ghost) = &body.region.ghost {
            ghost.insert(oldest.hash);
        }
        self.let_go(body, oldest, way);
    }

    /// Moves the oldest item to the tail of its log. The space that it leaves makes room for it.
    fn append_again(&self, body: &Body<Evicting>, oldest: &Oldest<'_>, way: usize, count: u32) {
        let words = oldest.header.words();
        self.change(oldest.bucket, || {
            oldest.log.advance_head(words);
            let position = oldest.log.reserve(words);
            // Where the two overlap, the new position is the lower one, and words are copied in ascending order.
            copy_words((oldest.log, oldest.position), (oldest.log, position), words);
            let tag = oldest.bucket.entry(way).tag();
            oldest.bucket.set_entry(way, Entry::new(tag, oldest.number, position));
            oldest.bucket.counts().set(way, count);
        });
        Counters::count(&self.counters.moved);
        debug_assert!(body.region.logs[oldest.number].contains(oldest.bucket.entry(way).position()));
    }

    /// LRU: moves an item that was read to the tail of its log, unless it is young. Returns its entry.
    pub(super) fn promote(&self, body: &Body<Evicting>, found: &Found<'_>) -> Entry {
        let Found { bucket, slot: Slot { way, .. }, entry, .. } = *found;
        let (log, header) = (body.region.of(entry), found.stored.header);
        let age = log.layout().distance(entry.position(), log.tail());
        // The youngest item is already at the tail, however small the log is.
        let is_young = age <= header.words() as u64 || age * LRU_YOUNG_SHARE < log.limit();
        if is_young {
            return entry;
        }
        let words = header.words();
        while log.free() < words as u64 {
            if log.head() == entry.position() {
                let oldest = self.oldest(body, entry.log());
                self.append_again(body, &oldest, way, 0);
                return bucket.entry(way);
            }
            self.evict_oldest(body, entry.log());
        }
        self.change(bucket, || {
            let position = log.reserve(words);
            copy_words((log, entry.position()), (log, position), words);
            bucket.set_entry(way, Entry::new(entry.tag(), entry.log(), position));
        });
        Counters::count(&self.counters.moved);
        bucket.entry(way)
    }

    /// Processes the reads that readers noted for LRU.
    #[inline(always)]
    pub(super) fn work_off_promotions(&self, body: &Body<Evicting>) {
        if !A::READS_BESIDE_WRITES || !self.policy.eviction.moves_items() {
            return;
        }
        self.policy.promotions.work_off(|hash| {
            let place = body.index.place(hash);
            let bucket = body.index.first(place);
            for way in 0..WAYS {
                let entry = bucket.entry(way);
                if entry.tag() == place.tag
                    && let Some(stored) = body.item(entry)
                {
                    let slot = Slot { bucket: place.bucket, way };
                    self.promote(body, &Found { place, slot, bucket, entry, stored });
                }
            }
        });
    }

    /// Starts loading the buckets of items that will be the oldest in a few evictions.
    #[inline(always)]
    fn scout(&self, body: &Body<Evicting>, number: usize) {
        let log = &body.region.logs[number];
        while let Some((unit, header)) = log.scout(SCOUTED_ITEMS) {
            let hash = self.hash_of(Stored { ring: log.ring(), unit, header });
            body.index.prefetch(body.index.place(hash));
        }
    }

    pub(super) fn oldest<'a>(&self, body: &'a Body<Evicting>, number: usize) -> Oldest<'a> {
        let log = &body.region.logs[number];
        let position = log.head();
        let header = Header(log.load(position, 0));
        let hash = self.hash_of(Stored { ring: log.ring(), unit: log.layout().unit(position), header });
        let place = body.index.place(hash);
        let bucket = body.index.first(place);
        let wanted = Entry::new(place.tag, number, position);
        let way = (0..WAYS).find(|&way| bucket.entry(way) == wanted);
        Oldest { number, log, position, header, hash, place, bucket, way }
    }
}
