//! How many items a keyspace has, exactly.
//!
//! Writes don't look at what they hide, so no counter can be kept: the items are walked through, in the order of their
//! hashes, and what is newest of each key counts (decision 0045). A result is kept for as long as nothing changes.

use std::sync::{Arc, Weak};

use super::keyspace::Keyspace;
use super::metadata::Moment;
use super::scan::Iter;
use crate::error::Result;
use crate::item::Item;
use crate::level::Version;
use crate::log::Position;
use crate::log::store::Shard;

/// Items of a semi-sorted keyspace between two questions whether to go on.
const STEPS: u64 = 4096;

/// A count that holds as long as nothing is written, no table changes and nothing expires.
#[derive(Debug)]
pub(crate) struct Counted {
    /// Where the log ended before the items were looked at.
    log_end: Position,
    version: Weak<Version>,
    tally: Tally,
}

/// What was counted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    items: u64,
    /// When the first of them expires.
    first_expiry_ms: Option<u64>,
}

impl Tally {
    fn add(&mut self, item: &Item<'_>) {
        self.items += 1;
        if let Some(expiry) = item.expires_at_ms {
            self.first_expiry_ms = Some(self.first_expiry_ms.map_or(expiry, |first| first.min(expiry)));
        }
    }
}

impl Keyspace {
    /// Number of items, exactly, at one moment during the call: each key once, without what was removed, overwritten or
    /// has expired.
    ///
    /// At once where nothing was written to the database since the last count, no table of the keyspace was made anew
    /// and nothing has expired. Else it reads all tables from one end to the other, no large values, and takes four
    /// bytes of memory for each item in the active log segment beside what an iteration takes; writes to the keyspace
    /// wait while those are copied. See [`Keyspace::approximate_len`] for a number that costs nothing.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = alluvium::Db::open(directory.path())?;
    /// let fruit = db.keyspace("fruit")?;
    /// fruit.insert("apple", "green")?;
    /// fruit.insert("apple", "red")?;
    /// fruit.remove("pear")?;
    /// assert_eq!(fruit.count()?, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn count(&self) -> Result<u64> {
        Ok(self.count_while(|| true)?.expect("nobody ended it"))
    }

    /// Like [`Keyspace::count`], but ends with `None` when `go_on`, which is asked every few thousand items, says no.
    pub fn count_while(&self, go_on: impl FnMut() -> bool) -> Result<Option<u64>> {
        if let Some(items) = self.counted()? {
            return Ok(Some(items));
        }
        // Before the items are looked at: whatever is written from now on makes the count an old one.
        let log_end = self.database().log.end();
        let iter = self.iter_of_a_moment();
        let version = Arc::downgrade(&iter.pin.version());
        let Some(tally) = iter.tally(go_on)? else { return Ok(None) };
        *self.shared.counted.lock().expect("no panic while held") = Some(Counted { log_end, version, tally });
        Ok(Some(tally.items))
    }

    /// Like [`Keyspace::count`], but `None` where a count would visit more than about `visits_max` items: those
    /// present, and those in tables and in the log that hide or are hidden.
    pub fn count_within(&self, visits_max: u64) -> Result<Option<u64>> {
        match self.counted()? {
            None if self.approximate_len() <= visits_max => self.count().map(Some),
            counted => Ok(counted),
        }
    }

    /// The last count if it holds still.
    fn counted(&self) -> Result<Option<u64>> {
        let shared = self.database();
        self.shared.check_present()?;
        let counted = self.shared.counted.lock().expect("no panic while held");
        let Some(Counted { log_end, version, tally }) = &*counted else { return Ok(None) };
        let is_same = *log_end == shared.log.end()
            && std::ptr::eq(version.as_ptr(), Arc::as_ptr(&self.shared.version.load_full()))
            && tally.first_expiry_ms.is_none_or(|expiry| shared.now_ms() < expiry);
        Ok(is_same.then_some(tally.items))
    }

    /// An iterator over what is there at one moment, whatever is written meanwhile.
    fn iter_of_a_moment(&self) -> Iter {
        let keyspace = &self.shared;
        if keyspace.hasher.is_semi_sorted() {
            // It gathers what is in the log at once anyway.
            return self.iter();
        }
        // Younger stores come with other versions; the active one of this version grows no more in what was copied.
        let (mut iter, logged) = keyspace.without_writers(|| {
            let iter = self.iter();
            // What was copied are places in the log.
            iter.pin.set_follows(false);
            let version = iter.pin.version();
            let store = version.active();
            let offsets = |shard: &Shard| -> Vec<u32> {
                shard.index().entries().map(|(_, _, offset)| offset).collect()
            };
            let logged = store.shards().iter().map(offsets).collect();
            (iter, logged)
        });
        iter.logged = Some(logged);
        iter
    }
}

impl Iter {
    /// Counts the items that are left; `None` when `go_on` says no.
    fn tally(mut self, mut go_on: impl FnMut() -> bool) -> Result<Option<Tally>> {
        if let Some(refusal) = self.refusal.take() {
            return Err(refusal);
        }
        let mut tally = Tally::default();
        let Some(mut merged) = self.merged.take() else {
            while let Some(low) = self.next {
                if !go_on() {
                    return Ok(None);
                }
                self.visit(low, |_, item| tally.add(item))?;
            }
            return Ok(Some(tally));
        };
        let moment = Moment::At(self.now_ms);
        let mut visited = 0_u64;
        while merged.step(|_, item| {
            if moment.is_live(item) {
                tally.add(item);
            }
        })? {
            visited += 1;
            if visited.is_multiple_of(STEPS) && !go_on() {
                return Ok(None);
            }
        }
        Ok(Some(tally))
    }
}
