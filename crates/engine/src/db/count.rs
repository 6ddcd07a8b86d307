//! The exact number of items of a keyspace.
//!
//! Writes do not look up which items they replace, so a running counter is impossible. Instead, all items are visited
//! in the order of their hashes, and the newest of each key is counted (decision 0045). A result is kept until
//! something changes.

use std::sync::Arc;

use super::keyspace::Keyspace;
use super::scan::Iter;
use crate::core::{Counted, Moment, Tally};
use crate::error::Result;
use crate::log::store::Shard;

/// Number of items of a semi-sorted keyspace between two calls of `go_on`.
const STEPS: u64 = 4096;

impl Keyspace {
    /// Number of items, exactly, at one moment during the call: each key once, without items that were removed,
    /// overwritten or have expired.
    ///
    /// Returns at once if, since the last count, nothing was written to the database, no table of the keyspace was
    /// replaced and no item has expired. Otherwise it reads all tables from one end to the other, but no large values.
    /// In addition to the memory of an iteration it takes four bytes for each item in the active log segment; writes to
    /// the keyspace wait while these are copied. [`Keyspace::approximate_len`] is an estimate that costs nothing.
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
        Ok(self.count_while(|| true)?.expect("it was not ended early"))
    }

    /// Like [`Keyspace::count`], but returns `None` when `go_on`, called every few thousand items, returns `false`.
    pub fn count_while(&self, go_on: impl FnMut() -> bool) -> Result<Option<u64>> {
        if let Some(items) = self.counted()? {
            return Ok(Some(items));
        }
        // Taken before the items are visited: anything written from now on invalidates the count.
        let log_end = self.database().log.end();
        let iter = self.iter_of_a_moment();
        let version = Arc::downgrade(&iter.pin.version());
        let Some(tally) = iter.tally(go_on)? else { return Ok(None) };
        *self.shared.counted.lock().expect("no panic while held") = Some(Counted { log_end, version, tally });
        Ok(Some(tally.items))
    }

    /// Like [`Keyspace::count`], but returns `None` if a count would visit more than about `visits_max` items: those
    /// present, and tombstones and obsolete versions in tables and the log.
    pub fn count_within(&self, visits_max: u64) -> Result<Option<u64>> {
        match self.counted()? {
            None if self.approximate_len() <= visits_max => self.count().map(Some),
            counted => Ok(counted),
        }
    }

    /// The last count if it is still valid.
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

    /// An iterator over the items of one moment, not affected by later writes.
    fn iter_of_a_moment(&self) -> Iter {
        let keyspace = &self.shared;
        if keyspace.hasher.is_semi_sorted() {
            // It collects the items of the log at one moment anyway.
            return self.iter();
        }
        // Younger stores belong to other versions; items added to this version's active store are not in the copy.
        let (mut iter, logged) = keyspace.without_writers(|| {
            let iter = self.iter();
            // The copied values are offsets in the log, so the pin must keep the log.
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
    /// Counts the remaining items; `None` when `go_on` returns `false`.
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
