//! `multi_get`: the values of several keys, with all their reads in flight together.

use std::collections::VecDeque;

use alluvium_io::sync::atomic::Ordering;
use alluvium_io::{AlignedBuffer, Completed, ReadRequest};

use super::keyspace::Keyspace;
use super::lookups::{Lookups, PageReads, none_moved};
use super::read::{View, retry_when_moved};
use crate::blob::{LargeValue, Reference};
use crate::core::{Moment, Read, Shared};
use crate::error::Result;
use crate::item::{Item, ItemKind};
use crate::metadata::{Metadata, ValueWithMetadata};
use crate::table::{HeldRoom, PAGE_BYTES};

/// Maximum number of large values that one `multi_get` reads together: each takes at most one mebibyte of buffer.
const LARGE_IN_FLIGHT_MAX: usize = 16;

impl Keyspace {
    /// The values of many keys, in their order. All page reads are in flight together, then the reads of up to 16 large
    /// values at a time.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        Ok(values(self.multi_get_with_metadata(keys)?))
    }

    /// Like [`Keyspace::multi_get`], with flags and expiries.
    pub fn multi_get_with_metadata<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
    ) -> Result<Vec<Option<ValueWithMetadata>>> {
        self.in_view(|view| view.multi_get_with_metadata(keys))
    }

    /// Like [`Keyspace::multi_get_with_metadata`], but values longer than `value_bytes_max` that are stored in blob
    /// files are not read: so a program can decide, one by one, whether it has room for them.
    pub fn multi_get_short<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        value_bytes_max: usize,
    ) -> Result<Vec<Option<ShortOrLong>>> {
        self.in_view(|view| view.multi_get_short(keys, value_bytes_max))
    }

    pub(super) fn in_view<R>(&self, read: impl Fn(View<'_>) -> Result<R>) -> Result<R> {
        let shared = self.database();
        self.shared.check_present()?;
        let keyspace = &*self.shared;
        let era = shared.rows.era();
        retry_when_moved(keyspace, |version| {
            read(View { shared, keyspace, version, moment: Moment::Now(shared), era })
        })
    }
}

/// An item that [`Keyspace::multi_get_short`] has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShortOrLong {
    /// Its value, and what is stored with it.
    Short(ValueWithMetadata),
    /// The length of its value, which was not read.
    Long(usize),
}

impl ShortOrLong {
    fn short(self) -> Option<ValueWithMetadata> {
        match self {
            Self::Short(item) => Some(item),
            Self::Long(_) => None,
        }
    }
}

fn values(items: Vec<Option<ValueWithMetadata>>) -> Vec<Option<Vec<u8>>> {
    items.into_iter().map(|item| item.map(|(value, _)| value)).collect()
}

impl View<'_> {
    /// The values of many keys, in their order, with all page reads in flight together.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        Ok(values(self.multi_get_with_metadata(keys)?))
    }

    /// Like [`View::multi_get`], with metadata.
    fn multi_get_with_metadata<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<ValueWithMetadata>>> {
        let found = self.multi_get_short(keys, usize::MAX)?;
        Ok(found.into_iter().map(|item| item.and_then(ShortOrLong::short)).collect())
    }

    /// Like [`View::multi_get`], without the values in blob files that are longer than `value_bytes_max`.
    fn multi_get_short<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        value_bytes_max: usize,
    ) -> Result<Vec<Option<ShortOrLong>>> {
        self.shared.check_open()?;
        let mut found = vec![None; keys.len()];
        // Large values wait until all pages are read, and are then read together. No room for pages is held by then,
        // so that callers that wait for room do not wait for each other.
        let mut large: Vec<(usize, Reference, Metadata)> = Vec::new();
        let mut in_pieces: Vec<(usize, Vec<u8>, Metadata)> = Vec::new();
        let mut visit = |number: usize, item: Option<&Item<'_>>| -> Result<()> {
            let Some(item) = item else { return Ok(()) };
            let metadata = Metadata::of(item);
            if !item.is_reference() {
                found[number] = Some(ShortOrLong::Short((item.value.to_vec(), metadata)));
                return Ok(());
            }
            let large_value = LargeValue::required(item)?;
            let len = usize::try_from(large_value.len()).unwrap_or(usize::MAX);
            if len > value_bytes_max {
                found[number] = Some(ShortOrLong::Long(len));
                return Ok(());
            }
            match large_value.single() {
                Some(reference) => large.push((number, reference, metadata)),
                None => in_pieces.push((number, item.value.to_vec(), metadata)),
            }
            Ok(())
        };
        self.shared.counters.gets.fetch_add(keys.len() as u64, Ordering::Relaxed);
        let unknown = self.find_in_memory(keys, &mut visit)?;
        if !unknown.is_empty() {
            let mut lookups = Lookups::in_tables(Batch::new(self.shared, unknown.len()));
            let moved =
                lookups.find_each(self, unknown.into_iter(), |unknown, item| visit(unknown.number, item))?;
            none_moved(moved)?;
        }
        for large in large.chunks(self.shared.memory.budget().large_in_flight(LARGE_IN_FLIGHT_MAX)) {
            let items: Vec<_> =
                large.iter().map(|&(number, reference, _)| (keys[number].as_ref(), reference)).collect();
            for (&(number, _, metadata), value) in large.iter().zip(self.large_values(&items)?) {
                found[number] = Some(ShortOrLong::Short((value, metadata)));
            }
        }
        for (number, value, metadata) in in_pieces {
            let key = keys[number].as_ref();
            let item = Item { kind: ItemKind::Reference, value: &value, ..Item::tombstone(key) };
            found[number] = Some(ShortOrLong::Short((self.value(key, &item)?, metadata)));
        }
        Ok(found)
    }
}

/// Reads pages in batches: whatever was submitted is read together when the next page is waited for.
#[derive(Debug)]
pub(super) struct Batch<'v> {
    shared: &'v Shared,
    in_flight_max: usize,
    waiting: Vec<Waiting<'v>>,
    done: VecDeque<Completed>,
    /// Room for the pages, from the first read on.
    room: Option<HeldRoom<'v>>,
}

/// A read that was submitted and not begun.
#[derive(Debug)]
struct Waiting<'v> {
    read: Read<'v>,
    buffer: AlignedBuffer,
    token: u64,
}

impl<'v> Batch<'v> {
    pub fn new(shared: &'v Shared, keys: usize) -> Self {
        let in_flight_max = shared.memory.budget().pages_in_flight.min(keys).max(1);
        Self { shared, in_flight_max, waiting: Vec::new(), done: VecDeque::new(), room: None }
    }
}

impl<'v> PageReads<'v> for Batch<'v> {
    fn in_flight_max(&self) -> usize {
        self.in_flight_max
    }

    fn pending(&self) -> usize {
        self.waiting.len() + self.done.len()
    }

    fn submit(&mut self, read: &Read<'v>, buffer: AlignedBuffer, token: u64) {
        if self.room.is_none() {
            let bytes = (self.in_flight_max * PAGE_BYTES) as u64;
            self.room = self.shared.memory.operations.buffers.hold(bytes);
        }
        self.waiting.push(Waiting { read: *read, buffer, token });
    }

    fn start(&mut self) {}

    fn poll(&mut self) -> Option<Completed> {
        self.done.pop_front()
    }

    fn wait(&mut self) -> Option<Completed> {
        if self.done.is_empty() && !self.waiting.is_empty() {
            let requests = self.waiting.iter_mut().map(|waiting| {
                let Waiting { read, buffer, .. } = waiting;
                ReadRequest { file: read.file(), offset: read.offset(), buffer, result: Ok(0) }
            });
            let mut requests: Vec<_> = requests.collect();
            self.shared.storage.read_batch(&mut requests);
            let results: Vec<_> = requests.into_iter().map(|request| request.result).collect();
            let done = self.waiting.drain(..).zip(results);
            self.done.extend(done.map(|(Waiting { buffer, token, .. }, result)| Completed {
                token,
                buffer,
                result,
            }));
        }
        self.done.pop_front()
    }
}
