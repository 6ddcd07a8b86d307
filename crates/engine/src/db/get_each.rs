//! Looks up a stream of keys with a number of reads in flight, to use the full rate of the device.

use alluvium_io::{AlignedBuffer, Completed, Operation, Pipeline};

use super::keyspace::Keyspace;
use super::lookups::{Lookups, PageReads, none_moved};
use super::read::View;
use super::snapshot::KeyspaceSnapshot;
use crate::core::{HeldMemory, Moment, Read, Shared};
use crate::error::{Error, Result};
use crate::item::Item;
use crate::table::PAGE_BYTES;

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
        let mut lookups = Lookups::new(Stream::new(shared, in_flight));
        while keys.peek().is_some() {
            self.shared.check_present()?;
            let era = shared.rows.era();
            let version = self.shared.version.load_full();
            let (keyspace, moment) = (&*self.shared, Moment::Now(shared));
            let view = View { shared, keyspace, version: &version, moment, era };
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
            let moved = lookups.find_each(&view, keys.by_ref().take(KEYS_PER_VERSION), visit)?;
            for (key, _) in moved {
                let value = self.get(&key)?;
                found(key, value.as_deref());
            }
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
            let mut lookups = Lookups::new(Stream::new(view.shared, in_flight));
            let moved = lookups.find_each(&view, keys.into_iter(), |key, item| {
                let value = item.map(|item| view.value_of(key.as_ref(), item)).transpose()?;
                found(key, value.as_deref());
                Ok(())
            })?;
            none_moved(moved)
        })
    }
}

/// Reads each page as soon as there is room.
#[derive(Debug)]
struct Stream<'a> {
    pipeline: Box<dyn Pipeline>,
    in_flight_max: usize,
    _held: HeldMemory<'a>,
}

impl<'a> Stream<'a> {
    fn new(shared: &'a Shared, in_flight: usize) -> Self {
        let in_flight_max = in_flight.clamp(1, shared.memory.budget().pages_in_flight);
        Self {
            pipeline: shared.storage.pipeline(in_flight_max),
            in_flight_max,
            _held: shared.hold_buffers((in_flight_max * PAGE_BYTES) as u64),
        }
    }
}

impl PageReads<'_> for Stream<'_> {
    fn in_flight_max(&self) -> usize {
        self.in_flight_max
    }

    fn pending(&self) -> usize {
        self.pipeline.pending()
    }

    fn submit(&mut self, read: &Read<'_>, buffer: AlignedBuffer, token: u64) {
        self.pipeline.submit(Operation::Read, read.file(), read.offset(), buffer, token);
    }

    fn start(&mut self) {
        self.pipeline.start();
    }

    fn poll(&mut self) -> Option<Completed> {
        self.pipeline.poll()
    }

    fn wait(&mut self) -> Option<Completed> {
        self.pipeline.wait()
    }
}
