//! [`OwnedBuffer`]: a buffer that one thread owns together with its index, or with its part of one.

use std::borrow::Borrow;

use super::access::through;
use super::batch;
use super::clock::{Clock, SystemClock};
use super::config::Config;
use super::lookup::Lookup;
use super::mode::Owned;
use super::pilot::Pilot;
use super::reference::Reference;
use super::stats::Stats;
use super::table::Table;

/// A lookaside buffer that belongs to one thread at a time, which the compiler checks. Nothing is locked, counted or
/// validated. To partition an index, give each thread a buffer of its own.
#[derive(Debug)]
pub struct OwnedBuffer<I, C = SystemClock> {
    index: I,
    table: Table<Owned>,
    pilot: Pilot<C>,
    /// Whether the index was changed during a bypass, without updating the table, whose entries are therefore invalid.
    is_outdated: bool,
}

impl<I: Lookup> OwnedBuffer<I> {
    /// An empty buffer in front of `index`.
    pub fn new(index: I, config: Config) -> Self {
        Self::with_clock(index, config, SystemClock::default(), 1)
    }
}

impl<I: Lookup, C: Clock> OwnedBuffer<I, C> {
    /// An empty buffer with a clock and a seed for its sampling.
    pub fn with_clock(index: I, config: Config, clock: C, seed: u64) -> Self {
        let table = Table::new(config.cache_bytes, config.log_bytes);
        let pilot = Pilot::new(config.pace, table.capacity(), seed, clock);
        Self { index, table, pilot, is_outdated: false }
    }

    /// The index, for anything that changes no item.
    pub fn index(&self) -> &I {
        &self.index
    }

    /// Returns the index.
    pub fn into_index(self) -> I {
        self.index
    }

    /// Bytes of the tables.
    pub fn heap_bytes(&self) -> usize {
        self.table.heap_bytes()
    }

    /// The tables.
    pub fn table(&self) -> &Table<Owned> {
        &self.table
    }

    /// The item of `key`.
    #[inline(always)]
    pub fn get(&mut self, key: &I::Key) -> Option<I::Item<'_>> {
        if self.pilot.count_direct() {
            return self.index.search(key).map(|(_, item)| item);
        }
        self.get_otherwise(key)
    }

    /// Looks up `keys`, one after the other, and passes each to `take` with its item. While the buffer is bypassed this
    /// is a loop over the index: use it for an index whose lookups take so few instructions that one more matters.
    #[inline(always)]
    pub fn get_each<'a, 'k, K: Borrow<I::Key>>(
        &'a mut self,
        mut keys: &'k [K],
        mut take: impl FnMut(&'k K, Option<I::Item<'a>>),
    ) {
        let Self { index, table, pilot, is_outdated } = self;
        while !keys.is_empty() {
            if pilot.is_turn_due() {
                turn(table, pilot, is_outdated);
            }
            keys = batch::some(index, table, pilot, keys, &mut take);
        }
    }

    /// A lookup that is not known to bypass the table.
    #[inline(never)]
    fn get_otherwise(&mut self, key: &I::Key) -> Option<I::Item<'_>> {
        let Self { index, table, pilot, is_outdated } = self;
        if pilot.is_turn_due() {
            turn(table, pilot, is_outdated);
            if pilot.count_direct() {
                return index.search(key).map(|(_, item)| item);
            }
        }
        through(index, table, pilot, key, index.hash(key))
    }

    /// Changes the item of `key` in the index: inserts, replaces, moves or removes it. `mutate` returns the item's new
    /// location, or `None` if the item is gone or its location is unknown, and a value that is passed to the caller.
    ///
    /// While the buffer is bypassed this only calls `mutate`.
    #[inline]
    pub fn change<R>(&mut self, key: &I::Key, mutate: impl FnOnce(&mut I) -> (Option<Reference>, R)) -> R {
        if self.pilot.is_aside() {
            self.is_outdated = true;
            return mutate(&mut self.index).1;
        }
        let change = self.table.change(self.index.hash(key));
        let (reference, result) = mutate(&mut self.index);
        match reference {
            Some(reference) => change.update(reference),
            None => drop(change),
        }
        result
    }

    /// The counters of this buffer.
    pub fn stats(&self) -> Stats {
        self.pilot.stats()
    }
}

#[cold]
#[inline(never)]
fn turn<C: Clock>(table: &mut Table<Owned>, pilot: &mut Pilot<C>, is_outdated: &mut bool) {
    pilot.turn();
    if *is_outdated && !pilot.is_aside() {
        table.clear();
        *is_outdated = false;
    }
}
