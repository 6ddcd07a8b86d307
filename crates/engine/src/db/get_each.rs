//! Looks up a stream of keys with a number of reads in flight, to use the full rate of the device.

use std::collections::VecDeque;

use alluvium_io::sync::atomic::Ordering;
use alluvium_io::{AlignedBuffer, Completed, Operation, Pipeline};

use super::keyspace::Keyspace;
use super::memory_limit::HeldMemory;
use super::metadata::Moment;
use super::read::{View, find_in_log};
use super::shared::Shared;
use super::snapshot::KeyspaceSnapshot;
use crate::blob::StoredKey;
use crate::error::{Error, IoContext, Result};
use crate::item::Item;
use crate::level::Lookup;
use crate::table::{PAGE_BYTES, PageRead, Section};

/// Number of keys looked up in one version. Until they are found, the version keeps tables that merges replace
/// meanwhile. Once per this many keys, between two versions, the device idles for the time of a read.
const KEYS_PER_VERSION: usize = 4096;

impl Keyspace {
    /// Calls `found` with each of `keys` and its value, or `None` if it is absent, with `in_flight` page reads in
    /// progress all the time: whenever one is done, the next key is taken.
    ///
    /// The same number of further keys is prepared in advance, so that the next read starts before the page of a
    /// finished one is searched: devices finish reads in bursts, and would idle meanwhile. Answers come in the order in
    /// which they become known. One thread takes about half of the CPU time of `in_flight` threads with
    /// [`Keyspace::get`], which sleep and wake for each read, at 0.87 to 1.2 times their rate. Every key is looked up
    /// at some moment during the call: concurrent writes may be seen or not. A large value is read at once, and the
    /// other lookups wait for that.
    ///
    /// At most 256 reads are in flight, fewer under a memory limit, and each has a buffer of 4 or 8 KiB.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = alluvium::Db::open(directory.path())?;
    /// let numbers = db.keyspace("numbers")?;
    /// numbers.insert(7_u32.to_le_bytes(), "seven")?;
    /// let mut known = 0;
    /// numbers.get_each((0..100_u32).map(u32::to_le_bytes), 32, |_key, value| known += u32::from(value.is_some()))?;
    /// assert_eq!(known, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_each<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
        in_flight: usize,
        mut found: impl FnMut(K, Option<&[u8]>),
    ) -> Result<()> {
        let shared = self.database();
        let mut keys = keys.into_iter().peekable();
        let mut reads = Reads::new(shared, in_flight);
        while keys.peek().is_some() {
            self.shared.check_present()?;
            let version = self.shared.version.load_full();
            let (keyspace, moment) = (&*self.shared, Moment::Now(shared));
            let view = View { shared, keyspace, version: &version, moment };
            let visit = |key: K, item: Option<&Item<'_>>| {
                match item.map(|item| view.value_of(key.as_ref(), item)).transpose() {
                    Ok(value) => found(key, value.as_deref()),
                    // The item has moved since.
                    Err(Error::MissingFile { .. }) => {
                        let value = self.get(&key)?;
                        found(key, value.as_deref());
                    }
                    Err(error) => return Err(error),
                }
                Ok(())
            };
            shared.check_open()?;
            view.find_each(keys.by_ref().take(KEYS_PER_VERSION), &mut reads, visit)?;
        }
        Ok(())
    }
}

impl KeyspaceSnapshot {
    /// Like [`Keyspace::get_each`], with the values at the time of the snapshot.
    pub fn get_each<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
        in_flight: usize,
        mut found: impl FnMut(K, Option<&[u8]>),
    ) -> Result<()> {
        self.with_view(|view| {
            view.shared.check_open()?;
            view.find_each(keys.into_iter(), &mut Reads::new(view.shared, in_flight), |key, item| {
                let value = item.map(|item| view.value_of(key.as_ref(), item)).transpose()?;
                found(key, value.as_deref());
                Ok(())
            })
        })
    }
}

/// Reads in flight and their resources.
struct Reads<'a> {
    pipeline: Box<dyn Pipeline>,
    in_flight_max: usize,
    /// Buffers not used by any read.
    buffers: Vec<AlignedBuffer>,
    /// Finished reads whose pages have not been searched yet.
    done: Vec<Completed>,
    _held: HeldMemory<'a>,
}

impl<'a> Reads<'a> {
    fn new(shared: &'a Shared, in_flight: usize) -> Self {
        let in_flight_max = in_flight.clamp(1, shared.memory.budget().pages_in_flight);
        Self {
            pipeline: shared.storage.pipeline(in_flight_max),
            in_flight_max,
            buffers: Vec::new(),
            done: Vec::new(),
            _held: shared.hold_buffers((in_flight_max * PAGE_BYTES) as u64),
        }
    }
}

/// A lookup that waits for a page.
struct Flight<'v, K> {
    key: K,
    lookup: Lookup<'v>,
    section: &'v Section,
    read: PageRead,
}

/// The lookups of [`Reads`], by the tokens of their reads.
struct Flights<'v, K> {
    flying: Vec<Option<Flight<'v, K>>>,
    free: Vec<usize>,
}

impl<'v> View<'v> {
    /// Calls `visit` with each of `keys` and its item, if that is live.
    fn find_each<K: AsRef<[u8]>>(
        &self,
        mut keys: impl Iterator<Item = K>,
        reads: &mut Reads<'_>,
        mut visit: impl FnMut(K, Option<&Item<'_>>) -> Result<()>,
    ) -> Result<()> {
        let mut flights: Flights<'_, K> = Flights { flying: Vec::new(), free: Vec::new() };
        let mut ready = VecDeque::with_capacity(reads.in_flight_max);
        loop {
            // The device comes first: finished reads make room for prepared ones before either is processed. All of
            // them are started with one system call, since on virtual machines each start stops the processor for as
            // long as some reads take. Reads that finish meanwhile wait for the next round: if starting reads always
            // had priority over finished pages, these would accumulate as long as there are keys.
            while let Some(done) = reads.pipeline.poll() {
                reads.done.push(done);
            }
            let room = reads.in_flight_max - reads.pipeline.pending();
            for flight in ready.drain(..room.min(ready.len())) {
                self.submit(flight, &mut flights, reads);
            }
            reads.pipeline.start();
            let mut idle = reads.done.is_empty();
            for Completed { token, mut buffer, result } in reads.done.drain(..) {
                let Flight { key, mut lookup, section, read } = flights.take(token);
                result.context(|| format!("reading table {}", section.file().name()))?;
                let stored_key = StoredKey::of(key.as_ref());
                if let Some(item) = lookup.search(section, read, &mut buffer, &stored_key)? {
                    visit(key, Some(&item).filter(|item| self.moment.is_live(item)))?;
                } else if let Some((section, read)) = lookup.next_read()? {
                    ready.push_back(Flight { key, lookup, section, read });
                } else {
                    visit(key, None)?;
                }
                reads.buffers.push(buffer);
            }
            while ready.len() < reads.in_flight_max
                && let Some(flight) = self.first_read(&mut keys, &mut visit)?
            {
                ready.push_back(flight);
                idle = false;
            }
            if idle {
                match reads.pipeline.wait() {
                    Some(done) => reads.done.push(done),
                    None => return Ok(()),
                }
            }
        }
    }

    /// The next key that needs a read; keys before it that need none are visited.
    fn first_read<K: AsRef<[u8]>>(
        &self,
        keys: &mut impl Iterator<Item = K>,
        visit: &mut impl FnMut(K, Option<&Item<'_>>) -> Result<()>,
    ) -> Result<Option<Flight<'v, K>>> {
        for key in keys {
            self.shared.counters.gets.fetch_add(1, Ordering::Relaxed);
            let stored_key = StoredKey::of(key.as_ref());
            let hash = self.keyspace.hasher.hash(&stored_key);
            if let Some(item) = find_in_log(self.version, hash, &stored_key)? {
                let live = Some(&item).filter(|item| self.moment.is_live(item));
                visit(key, live)?;
                continue;
            }
            let mut lookup = Lookup::new(self.version, hash);
            match lookup.next_read()? {
                Some((section, read)) => {
                    return Ok(Some(Flight { key, lookup, section, read }));
                }
                None => visit(key, None)?,
            }
        }
        Ok(None)
    }

    fn submit<K>(&self, flight: Flight<'v, K>, flights: &mut Flights<'v, K>, reads: &mut Reads<'_>) {
        let mut buffer = reads.buffers.pop().unwrap_or_default();
        buffer.resize_unspecified(flight.read.count as usize * PAGE_BYTES);
        let (section, page) = (flight.section, flight.read.page);
        let token = flights.put(flight);
        if section.copy_kept(page, &mut buffer) {
            let result = Ok(buffer.len());
            reads.done.push(Completed { token, buffer, result });
            return;
        }
        self.shared.counters.page_reads.fetch_add(1, Ordering::Relaxed);
        let (file, offset) = (section.file(), section.page_offset(page));
        reads.pipeline.submit(Operation::Read, &**file, offset, buffer, token);
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
