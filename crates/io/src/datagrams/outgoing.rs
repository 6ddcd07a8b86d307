//! [`Outgoing`]: datagrams to be sent together.

use std::net::SocketAddr;

use super::{TRAIN_BYTES_MAX, TRAIN_DATAGRAMS_MAX};

/// Datagrams to be sent together, in memory that is allocated once. Equally long datagrams to one peer that are added
/// one after the other form a train.
#[derive(Debug)]
pub struct Outgoing {
    bytes: Box<[u8]>,
    /// Bytes of all datagrams.
    used: usize,
    trains: Vec<Train>,
    datagrams: usize,
}

/// Datagrams to one peer, one after the other in the bytes; all have the same length, except that the last may be
/// shorter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Train {
    pub peer: SocketAddr,
    pub start: usize,
    pub len: usize,
    pub segment_bytes: usize,
    /// Number of datagrams.
    pub count: usize,
}

impl Train {
    /// Whether a datagram of `len` bytes can be added.
    #[inline]
    fn takes(&self, peer: SocketAddr, len: usize) -> bool {
        len > 0
            && len <= self.segment_bytes
            && self.peer == peer
            // The last one is as long as the others: without a division, as this is asked for each datagram.
            && self.len == self.count * self.segment_bytes
            && self.len + len <= TRAIN_BYTES_MAX
            && self.count < TRAIN_DATAGRAMS_MAX
    }
}

/// Maximum number of trains.
const TRAINS_MAX: usize = 64;

impl Outgoing {
    /// Room for `bytes` bytes in up to 64 trains.
    pub fn new(bytes: usize) -> Self {
        Self {
            bytes: vec![0; bytes].into_boxed_slice(),
            used: 0,
            trains: Vec::with_capacity(TRAINS_MAX),
            datagrams: 0,
        }
    }

    /// Number of datagrams.
    pub fn len(&self) -> usize {
        self.datagrams
    }

    /// Whether no datagrams are waiting.
    pub fn is_empty(&self) -> bool {
        self.datagrams == 0
    }

    /// Where the next datagram may be written, if there is room for one of `bytes` bytes.
    #[inline]
    pub fn room(&mut self, bytes: usize) -> Option<&mut [u8]> {
        let has_room = self.trains.len() < TRAINS_MAX && self.bytes.len() - self.used >= bytes;
        has_room.then(|| &mut self.bytes[self.used..self.used + bytes])
    }

    /// Adds the first `len` bytes of the room as a datagram to `peer`.
    ///
    /// # Panics
    /// When there is no such room.
    #[inline]
    pub fn commit(&mut self, peer: SocketAddr, len: usize) {
        assert!(self.bytes.len() - self.used >= len, "room was asked for");
        let start = self.used;
        self.used += len;
        self.datagrams += 1;
        if let Some(train) = self.trains.last_mut()
            && train.takes(peer, len)
        {
            train.len += len;
            train.count += 1;
            return;
        }
        self.trains.push(Train { peer, start, len, segment_bytes: len, count: 1 });
    }

    /// The trains with their bytes.
    pub(super) fn trains(&self) -> &[Train] {
        &self.trains
    }

    pub(super) fn bytes_of(&self, train: &Train) -> &[u8] {
        &self.bytes[train.start..train.start + train.len]
    }

    /// The datagrams with their peers.
    pub fn datagrams(&self) -> impl Iterator<Item = (SocketAddr, &[u8])> {
        self.trains.iter().flat_map(|train| {
            let bytes = self.bytes_of(train);
            let segments = bytes.chunks(train.segment_bytes.max(1));
            segments.chain(bytes.is_empty().then_some(bytes)).map(|bytes| (train.peer, bytes))
        })
    }

    /// Bytes of its memory, which do not change.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.len() + self.trains.capacity() * size_of::<Train>()
    }

    /// Discards all.
    pub fn clear(&mut self) {
        self.used = 0;
        self.datagrams = 0;
        self.trains.clear();
    }
}
