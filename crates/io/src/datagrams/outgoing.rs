//! [`Outgoing`]: datagrams to be sent together.

use std::net::SocketAddr;

use super::{TRAIN_BYTES_MAX, TRAIN_DATAGRAMS_MAX};

/// Datagrams to be sent together, in memory that is allocated once. Equally long datagrams to one peer that are added
/// one after the other form a train.
#[derive(Debug)]
pub struct Outgoing {
    bytes: Box<[u8]>,
    len: usize,
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
}

impl Train {
    /// Number of datagrams.
    pub fn datagrams(&self) -> usize {
        self.len.div_ceil(self.segment_bytes.max(1)).max(1)
    }
}

/// Maximum number of trains.
const TRAINS_MAX: usize = 64;

impl Outgoing {
    /// Room for `bytes` bytes in up to 64 trains.
    pub fn new(bytes: usize) -> Self {
        Self {
            bytes: vec![0; bytes].into_boxed_slice(),
            len: 0,
            trains: Vec::with_capacity(TRAINS_MAX),
            datagrams: 0,
        }
    }

    /// Number of datagrams.
    pub fn len(&self) -> usize {
        self.datagrams
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.datagrams == 0
    }

    /// Where the next datagram may be written, if there is room for one of `bytes` bytes.
    #[inline]
    pub fn room(&mut self, bytes: usize) -> Option<&mut [u8]> {
        let has_room = self.trains.len() < TRAINS_MAX && self.bytes.len() - self.len >= bytes;
        has_room.then(|| &mut self.bytes[self.len..self.len + bytes])
    }

    /// Adds the first `len` bytes of the room as a datagram to `peer`.
    ///
    /// # Panics
    /// When there is no such room.
    #[inline]
    pub fn commit(&mut self, peer: SocketAddr, len: usize) {
        assert!(self.bytes.len() - self.len >= len, "room was asked for");
        let start = self.len;
        self.len += len;
        self.datagrams += 1;
        if let Some(train) = self.trains.last_mut()
            && train.peer == peer
            && len > 0
            && len <= train.segment_bytes
            && train.len.is_multiple_of(train.segment_bytes)
            && train.len + len <= TRAIN_BYTES_MAX
            && train.datagrams() < TRAIN_DATAGRAMS_MAX
        {
            train.len += len;
            return;
        }
        self.trains.push(Train { peer, start, len, segment_bytes: len });
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
        self.len = 0;
        self.datagrams = 0;
        self.trains.clear();
    }
}
