//! [`Lookups`]: many lookups whose reads are in flight together, for `multi_get` and `get_each`. A single
//! one is driven by [`crate::core::find`].

use std::collections::VecDeque;

use alluvium_io::sync::atomic::Ordering;
use alluvium_io::{AlignedBuffer, Completed};

use super::read::View;
use crate::blob::StoredKey;
use crate::core::{Next, Read, RowBuffer, VersionLookup, find_in_log};
use crate::error::{Error, Result};
use crate::item::Item;

/// How the pages of many lookups are read.
pub(super) trait PageReads<'v> {
    /// Maximum number of reads that are submitted and not yet returned. As many further lookups are prepared.
    fn in_flight_max(&self) -> usize;

    /// Number of reads submitted and not yet returned.
    fn pending(&self) -> usize;

    /// Takes a read into the whole buffer.
    fn submit(&mut self, read: &Read<'v>, buffer: AlignedBuffer, token: u64);

    /// Starts the reads that are held back.
    fn start(&mut self);

    /// Returns a read that is done by now.
    fn poll(&mut self) -> Option<Completed>;

    /// Returns the next read that is done; waits until there is one. `None` if none is pending.
    fn wait(&mut self) -> Option<Completed>;
}

/// Lookups and their buffers. See the module.
#[derive(Debug)]
pub(super) struct Lookups<R> {
    reads: R,
    /// Buffers not used by any read.
    buffers: Vec<AlignedBuffer>,
    /// Finished reads whose pages have not been searched yet.
    done: Vec<Completed>,
    /// The row of the key that is being looked up.
    row: RowBuffer,
    /// Whether the log and the row cache are known to have none of the keys.
    is_in_tables: bool,
    /// Whether all that is found is kept in the row cache.
    keeps_rows: bool,
    /// Number of keys that were then kept.
    pub kept: usize,
}

/// A lookup that waits for a page.
struct Flight<'v, K> {
    key: K,
    lookup: VersionLookup<'v>,
    read: Read<'v>,
}

/// Keys whose items have left the segments of the version since it was loaded, with what a lookup of them met.
pub(super) type Moved<K> = Vec<(K, Error)>;

/// The lookups by the tokens of their reads.
struct Flights<'v, K> {
    flying: Vec<Option<Flight<'v, K>>>,
    free: Vec<usize>,
}

impl<R> Lookups<R> {
    pub fn new(reads: R) -> Self {
        let (buffers, done, row) = Default::default();
        Self { reads, buffers, done, row, is_in_tables: false, keeps_rows: false, kept: 0 }
    }

    /// For keys that were counted as gets, and found neither in the log nor in the row cache.
    pub fn in_tables(reads: R) -> Self {
        Self { is_in_tables: true, ..Self::new(reads) }
    }

    /// Like [`Lookups::in_tables`], for keys that will be looked up again soon.
    pub fn to_keep(reads: R) -> Self {
        Self { keeps_rows: true, ..Self::in_tables(reads) }
    }

    /// Calls `visit` with each of `keys` and its item, if that is live, in the order in which they become known.
    /// Returns the keys that it was not called with, because a later version knows where they are.
    pub fn find_each<'v, K: AsRef<[u8]>>(
        &mut self,
        view: &View<'v>,
        mut keys: impl Iterator<Item = K>,
        mut visit: impl FnMut(K, Option<&Item<'_>>) -> Result<()>,
    ) -> Result<Moved<K>>
    where
        R: PageReads<'v>,
    {
        let mut flights: Flights<'_, K> = Flights { flying: Vec::new(), free: Vec::new() };
        let in_flight_max = self.reads.in_flight_max();
        let mut ready = VecDeque::new();
        let mut moved = Moved::new();
        loop {
            // The device comes first: finished reads make room for prepared ones before either is processed. All of
            // them are started with one system call, since on virtual machines each start stops the processor for as
            // long as some reads take. Reads that finish meanwhile wait for the next round: if starting reads always
            // had priority over finished pages, these would accumulate as long as there are keys.
            while let Some(done) = self.reads.poll() {
                self.done.push(done);
            }
            let room = in_flight_max - self.reads.pending();
            for flight in ready.drain(..room.min(ready.len())) {
                self.submit(view, flight, &mut flights);
            }
            self.reads.start();
            let mut idle = self.done.is_empty();
            for Completed { token, mut buffer, result } in self.done.drain(..) {
                let Flight { key, mut lookup, read } = flights.take(token);
                read.check(result)?;
                let stored_key = StoredKey::of(key.as_ref());
                let found = lookup.search(&read, &mut buffer, &stored_key)?;
                let known = match found {
                    Some(item) => Some(item),
                    None => match lookup.next(&stored_key) {
                        Ok(Next::Read(read)) => {
                            ready.push_back(Flight { key, lookup, read });
                            self.buffers.push(buffer);
                            continue;
                        }
                        Err(error @ Error::MissingFile { .. }) => {
                            moved.push((key, error));
                            self.buffers.push(buffer);
                            continue;
                        }
                        Ok(Next::Item(item)) => Some(item),
                        Ok(Next::End) => None,
                        Err(error) => return Err(error),
                    },
                };
                let is_present = known.as_ref().is_some_and(|item| !item.is_tombstone());
                view.keyspace.table_lookups.count(is_present);
                view.fill_row(&stored_key, known.as_ref(), self.keeps_rows);
                self.kept += usize::from(self.keeps_rows);
                visit(key, known.as_ref().filter(|item| view.moment.is_live(item)))?;
                self.buffers.push(buffer);
            }
            while ready.len() < in_flight_max
                && let Some(flight) = self.first_read(view, &mut keys, &mut visit, &mut moved)?
            {
                ready.push_back(flight);
                idle = false;
            }
            if idle {
                match self.reads.wait() {
                    Some(done) => self.done.push(done),
                    None => return Ok(moved),
                }
            }
        }
    }

    /// The next key that needs a read; keys before it that need none are visited.
    fn first_read<'v, K: AsRef<[u8]>>(
        &mut self,
        view: &View<'v>,
        keys: &mut impl Iterator<Item = K>,
        visit: &mut impl FnMut(K, Option<&Item<'_>>) -> Result<()>,
        moved: &mut Moved<K>,
    ) -> Result<Option<Flight<'v, K>>> {
        for key in keys {
            let stored_key = StoredKey::of(key.as_ref());
            let hash = view.keyspace.hasher.hash(&stored_key);
            if !self.is_in_tables {
                view.shared.counters.gets.fetch_add(1, Ordering::Relaxed);
                if let Some(item) = find_in_log(view.version, hash, &stored_key)? {
                    visit(key, Some(&item).filter(|item| view.moment.is_live(item)))?;
                    continue;
                }
                if let Some(known) = view.copy_row(&stored_key, &mut self.row) {
                    visit(key, known.as_ref().filter(|item| view.moment.is_live(item)))?;
                    continue;
                }
            }
            let mut lookup = VersionLookup::new(view.version, hash);
            let known = match lookup.next(&stored_key) {
                Ok(Next::Read(read)) => return Ok(Some(Flight { key, lookup, read })),
                Err(error @ Error::MissingFile { .. }) => {
                    moved.push((key, error));
                    continue;
                }
                Ok(Next::Item(item)) => Some(item),
                Ok(Next::End) => None,
                Err(error) => return Err(error),
            };
            view.keyspace.table_lookups.count(known.as_ref().is_some_and(|item| !item.is_tombstone()));
            visit(key, known.as_ref().filter(|item| view.moment.is_live(item)))?;
        }
        Ok(None)
    }

    fn submit<'v, K>(&mut self, view: &View<'v>, flight: Flight<'v, K>, flights: &mut Flights<'v, K>)
    where
        R: PageReads<'v>,
    {
        let mut buffer = self.buffers.pop().unwrap_or_default();
        let read = flight.read;
        buffer.resize_unspecified(read.bytes());
        let token = flights.put(flight);
        if read.copy_kept(&mut buffer) {
            let result = Ok(buffer.len());
            self.done.push(Completed { token, buffer, result });
            return;
        }
        view.shared.counters.page_reads.fetch_add(1, Ordering::Relaxed);
        self.reads.submit(&read, buffer, token);
    }
}

/// The error of the first of these keys.
pub(super) fn none_moved<K>(moved: Moved<K>) -> Result<()> {
    moved.into_iter().next().map_or(Ok(()), |(_, error)| Err(error))
}

impl View<'_> {
    /// Copies the row of `key`, if there is one, and returns the item that it knows of, if any.
    fn copy_row<'b>(&self, key: &[u8], row: &'b mut RowBuffer) -> Option<Option<Item<'b>>> {
        self.era?;
        self.shared.rows.copy(self.keyspace.id, self.version, key, row)
    }
}

impl<'v, K> Flights<'v, K> {
    fn put(&mut self, flight: Flight<'v, K>) -> u64 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.flying.push(None);
            self.flying.len() - 1
        });
        self.flying[place] = Some(flight);
        place as u64
    }

    fn take(&mut self, token: u64) -> Flight<'v, K> {
        let place = token as usize;
        self.free.push(place);
        self.flying[place].take().expect("each read is done once")
    }
}
