//! [`SharedBuffer`]: a buffer for many threads, and each thread's [`Reader`].

use std::borrow::Borrow;

use super::access::through;
use super::batch;
use super::clock::{Clock, SystemClock};
use super::config::Config;
use super::lookup::Lookup;
use super::mode::Shared;
use super::pilot::Pilot;
use super::reference::Reference;
use super::stats::Stats;
use super::table::Table;

/// A lookaside buffer in front of an index that many threads use: lookups take no lock and never wait.
///
/// A thread that changes the index notifies the buffer with [`change`](Self::change) around each change. Lookups then
/// return what the index would return: none is stale, in any interleaving (see [`Table`]).
#[derive(Debug)]
pub struct SharedBuffer<I> {
    index: I,
    table: Table<Shared>,
    config: Config,
}

impl<I: Lookup> SharedBuffer<I> {
    /// An empty buffer in front of `index`.
    pub fn new(index: I, config: Config) -> Self {
        Self { index, table: Table::new(config.cache_bytes, config.log_bytes), config }
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
    pub fn table(&self) -> &Table<Shared> {
        &self.table
    }

    /// Creates a thread's reader for lookups.
    pub fn reader(&self) -> Reader {
        self.reader_with(SystemClock::default(), 1)
    }

    /// A reader with a clock and a seed for its sampling.
    pub fn reader_with<C: Clock>(&self, clock: C, seed: u64) -> Reader<C> {
        Reader { pilot: Pilot::new(self.config.pace, self.table.capacity(), seed, clock) }
    }

    /// The item of `key`.
    #[inline(always)]
    pub fn get<C: Clock>(&self, reader: &mut Reader<C>, key: &I::Key) -> Option<I::Item<'_>> {
        if reader.pilot.count_direct() {
            return self.index.search(key).map(|(_, item)| item);
        }
        self.get_otherwise(&mut reader.pilot, key)
    }

    /// Looks up `keys`, one after the other, and passes each to `take` with its item: see
    /// [`OwnedBuffer::get_each`](super::OwnedBuffer::get_each).
    #[inline(always)]
    pub fn get_each<'a, 'k, C: Clock, K: Borrow<I::Key>>(
        &'a self,
        reader: &mut Reader<C>,
        mut keys: &'k [K],
        mut take: impl FnMut(&'k K, Option<I::Item<'a>>),
    ) {
        let pilot = &mut reader.pilot;
        while !keys.is_empty() {
            if pilot.is_turn_due() {
                pilot.turn();
            }
            keys = batch::some(&self.index, &self.table, pilot, keys, &mut take);
        }
    }

    /// A lookup that is not known to bypass the table.
    #[inline(never)]
    fn get_otherwise<C: Clock>(&self, pilot: &mut Pilot<C>, key: &I::Key) -> Option<I::Item<'_>> {
        if pilot.is_turn_due() {
            pilot.turn();
            if pilot.count_direct() {
                return self.index.search(key).map(|(_, item)| item);
            }
        }
        through(&self.index, &self.table, pilot, key, self.index.hash(key))
    }

    /// Changes the item of `key` in the index: inserts, replaces, moves or removes it. `mutate` returns the item's new
    /// location, or `None` if the item is gone or its location is unknown, and a value that is passed to the caller.
    ///
    /// Until `mutate` returns, lookups of the key go to the index. Changes never wait for each other here.
    #[inline]
    pub fn change<R>(&self, key: &I::Key, mutate: impl FnOnce(&I) -> (Option<Reference>, R)) -> R {
        let change = self.table.change(self.index.hash(key));
        let (reference, result) = mutate(&self.index);
        match reference {
            Some(reference) => change.update(reference),
            None => drop(change),
        }
        result
    }
}

/// One thread's lookups in a [`SharedBuffer`]: decides whether they go through the table.
///
/// It belongs to no buffer, so that a thread can keep it beside a shared pointer to one. Lookups are correct with any
/// reader; a reader used with several buffers decides for all of them together.
#[derive(Debug)]
pub struct Reader<C = SystemClock> {
    pilot: Pilot<C>,
}

impl<C: Clock> Reader<C> {
    /// The counters of this reader.
    pub fn stats(&self) -> Stats {
        self.pilot.stats()
    }
}
