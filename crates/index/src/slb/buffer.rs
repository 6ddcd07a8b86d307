//! [`Buffer`]: a table in front of an index, or the index alone where the table does not pay.

use std::borrow::Borrow;
use std::time::Instant;

use super::calibration::{self, Calibration};
use super::lookup::Lookup;
use super::reader::Reader;
use super::reference::Reference;
use super::table::{Change, Outcome, Table, Ticket};

/// Number of keys whose lines are loaded before the first of them is looked up: about as many loads as a core can
/// have in flight.
const AHEAD: usize = 16;

/// Sizes of a buffer's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes of the cache table, 7 items in each 64. The default is 16 MiB: 1.8 million items. It should hold the items
    /// that get most lookups; anything larger wastes processor cache.
    pub cache_bytes: usize,
    /// Bytes of the log of lookups that missed, 15 in each 64. The default is that of the cache table.
    pub log_bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self::with_cache_bytes(16 << 20)
    }
}

impl Config {
    /// A cache table of `bytes` and a log of the same size.
    pub fn with_cache_bytes(bytes: usize) -> Self {
        Self { cache_bytes: bytes, log_bytes: bytes }
    }
}

/// A lookaside buffer in front of an index that any number of threads use: lookups take no lock and never wait.
///
/// A thread that changes the index notifies the buffer with [`change`](Self::change) around each change. Lookups then
/// return what the index would return: none is stale, in any interleaving (see [`Table`]).
///
/// A new buffer uses its table. [`calibrate`](Self::calibrate) decides whether it pays.
#[derive(Debug)]
pub struct Buffer<I> {
    index: I,
    config: Config,
    /// `None` if the buffer is bypassed.
    table: Option<Table>,
}

impl<I: Lookup> Buffer<I> {
    /// An empty buffer in front of `index`.
    pub fn new(index: I, config: Config) -> Self {
        Self { index, config, table: Some(new_table(config)) }
    }

    /// The index, for anything that changes no item.
    pub fn index(&self) -> &I {
        &self.index
    }

    /// Returns the index.
    pub fn into_index(self) -> I {
        self.index
    }

    /// The tables, unless the buffer is bypassed.
    pub fn table(&self) -> Option<&Table> {
        self.table.as_ref()
    }

    /// Whether lookups go to the index directly: the last calibration found that they are faster so.
    pub fn is_bypassed(&self) -> bool {
        self.table.is_none()
    }

    /// Decides by measurement whether lookups go through the table from now on, or the buffer is bypassed and releases
    /// its tables.
    ///
    /// `keys` are requests like those to come: frequent keys occur often. The first ones fill the table, up to four for
    /// each of its entries, and two million more are looked up both ways. If the keys end early, those that came
    /// decide; a few thousand show nothing. A short list may be repeated ([`Iterator::cycle`]), but looks as if the
    /// table could hold all keys. `keys_per_call` is how many keys the caller usually looks up at once: with
    /// [`get_each`](Self::get_each) a table can pay where it does not with [`get`](Self::get).
    pub fn calibrate<K: Borrow<I::Key>>(
        &mut self,
        keys: impl IntoIterator<Item = K>,
        keys_per_call: usize,
    ) -> Calibration {
        let start = Instant::now();
        self.calibrate_with(keys, keys_per_call, || start.elapsed().as_nanos() as u64)
    }

    /// Like [`calibrate`](Self::calibrate), with a clock that returns nanoseconds.
    pub fn calibrate_with<K: Borrow<I::Key>>(
        &mut self,
        keys: impl IntoIterator<Item = K>,
        keys_per_call: usize,
        now_ns: impl FnMut() -> u64,
    ) -> Calibration {
        let table = self.table.take().unwrap_or_else(|| new_table(self.config));
        let calibration = calibration::run(&self.index, &table, keys.into_iter(), keys_per_call, now_ns);
        self.table = calibration.pays().then_some(table);
        calibration
    }

    /// The item of `key`.
    #[inline(always)]
    pub fn get(&self, reader: &mut Reader, key: &I::Key) -> Option<I::Item<'_>> {
        match &self.table {
            None => self.index.search(key).map(|(_, item)| item),
            Some(table) => get_through(&self.index, table, reader, key),
        }
    }

    /// Looks up `keys`, one after the other, and passes each to `take` with its item. The lines of the next keys are
    /// loaded ahead. If the buffer is bypassed, this is a loop over the index: use it for an index whose lookups take
    /// so few instructions that one more matters.
    #[inline(always)]
    pub fn get_each<'a, 'k, K: Borrow<I::Key>>(
        &'a self,
        reader: &mut Reader,
        keys: &'k [K],
        mut take: impl FnMut(&'k K, Option<I::Item<'a>>),
    ) {
        match &self.table {
            None => get_each_directly(&self.index, keys, &mut take),
            Some(table) => get_each_through(&self.index, table, reader, keys, &mut take),
        }
    }

    /// Changes the item of `key` in the index: inserts, replaces, moves or removes it. `mutate` returns the item's new
    /// location, or `None` if the item is gone or its location is unknown, and a value that is passed to the caller.
    ///
    /// Until `mutate` returns, lookups of the key go to the index. Changes never wait for each other here.
    #[inline]
    pub fn change<R>(&self, key: &I::Key, mutate: impl FnOnce(&I) -> (Option<Reference>, R)) -> R {
        let change = self.table.as_ref().map(|table| table.change(self.index.hash(key)));
        end_change(change, mutate(&self.index))
    }

    /// Like [`change`](Self::change), for an index that is changed by its owner alone.
    #[inline]
    pub fn change_mut<R>(
        &mut self,
        key: &I::Key,
        mutate: impl FnOnce(&mut I) -> (Option<Reference>, R),
    ) -> R {
        let change = self.table.as_ref().map(|table| table.change(self.index.hash(key)));
        end_change(change, mutate(&mut self.index))
    }
}

fn new_table(config: Config) -> Table {
    Table::new(config.cache_bytes, config.log_bytes)
}

fn end_change<R>(change: Option<Change<'_>>, (reference, result): (Option<Reference>, R)) -> R {
    if let (Some(change), Some(reference)) = (change, reference) {
        change.update(reference);
    }
    result
}

/// Looks up one key through the table, in a function of its own: a bypass then takes few instructions.
#[inline(never)]
pub(super) fn get_through<'a, I: Lookup>(
    index: &'a I,
    table: &Table,
    reader: &mut Reader,
    key: &I::Key,
) -> Option<I::Item<'a>> {
    through(index, table, reader, key, index.hash(key))
}

/// A function of its own, so that what the loop needs of the index stays in registers.
#[inline(never)]
pub(super) fn get_each_directly<'a, 'k, I: Lookup, K: Borrow<I::Key>>(
    index: &'a I,
    keys: &'k [K],
    take: &mut impl FnMut(&'k K, Option<I::Item<'a>>),
) {
    for key in keys {
        take(key, index.search(key.borrow()).map(|(_, item)| item));
    }
}

#[inline(never)]
pub(super) fn get_each_through<'a, 'k, I: Lookup, K: Borrow<I::Key>>(
    index: &'a I,
    table: &Table,
    reader: &mut Reader,
    keys: &'k [K],
    take: &mut impl FnMut(&'k K, Option<I::Item<'a>>),
) {
    for keys in keys.chunks(AHEAD) {
        let mut hashes = [0; AHEAD];
        for (hash, key) in hashes.iter_mut().zip(keys) {
            *hash = index.hash(key.borrow());
            table.prefetch(*hash);
        }
        for (hash, key) in hashes.into_iter().zip(keys) {
            take(key, through(index, table, reader, key.borrow(), hash));
        }
    }
}

#[inline(always)]
fn through<'a, I: Lookup>(
    index: &'a I,
    table: &Table,
    reader: &mut Reader,
    key: &I::Key,
    hash: u64,
) -> Option<I::Item<'a>> {
    reader.stats.lookups += 1;
    let is_sampled = reader.is_sampled();
    match table.find(hash, |reference| index.resolve(key, reference)) {
        Outcome::Hit(item, way) => {
            if is_sampled {
                table.count_hit(hash, way, reader.draw());
            }
            Some(item)
        }
        Outcome::Miss(ticket) => {
            reader.stats.misses += 1;
            if is_sampled {
                reader.draw();
            }
            let (reference, item) = index.search_hashed(key, hash)?;
            if let Some(ticket) = ticket
                && (is_sampled || ticket.has_room())
            {
                consider(table, reader, hash, ticket, reference);
            }
            Some(item)
        }
    }
}

/// Caches the item that the index returned, if there is room or it is hot.
#[inline(never)]
fn consider(table: &Table, reader: &mut Reader, hash: u64, ticket: Ticket, reference: Reference) {
    let is_wanted = ticket.has_room() || {
        reader.stats.logged += 1;
        table.log_miss(hash)
    };
    if is_wanted && table.emit(ticket, hash, reference) {
        reader.stats.emitted += 1;
    }
}
