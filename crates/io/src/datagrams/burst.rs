//! [`Burst`]: datagrams that were received together.

use std::net::{Ipv4Addr, SocketAddr};

/// Bytes of a slot: the largest datagram, and the largest train that a system joins.
pub(super) const SLOT_BYTES: usize = 1 << 16;
/// Maximum number of slots.
pub(super) const SLOTS_MAX: usize = 32;

/// Datagrams that were received together, in memory that is allocated once: 64 KiB a slot, of which the system gives
/// only the pages that were used. A slot takes a datagram, or the equally long datagrams of one peer that the system
/// has joined.
#[derive(Debug)]
pub struct Burst {
    bytes: Box<[u8]>,
    received: Vec<Received>,
    slots: usize,
}

/// What a slot has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received {
    pub peer: SocketAddr,
    pub len: usize,
    /// Bytes of each datagram; the last may be shorter.
    pub segment_bytes: usize,
}

impl Burst {
    /// Room for `slots` trains of datagrams, 32 at most.
    pub fn new(slots: usize) -> Self {
        let slots = slots.clamp(1, SLOTS_MAX);
        let bytes = vec![0; slots * SLOT_BYTES].into_boxed_slice();
        Self { bytes, received: Vec::with_capacity(slots), slots }
    }

    /// The datagrams with their peers, in the order in which they came.
    pub fn datagrams(&self) -> impl Iterator<Item = (SocketAddr, &[u8])> {
        self.received.iter().zip(self.bytes.chunks_exact(SLOT_BYTES)).flat_map(|(received, slot)| {
            let bytes = &slot[..received.len];
            // An empty datagram is one, too.
            let empty = received.len == 0;
            let segments = bytes.chunks(received.segment_bytes.max(1));
            segments.chain(empty.then_some(bytes)).map(|bytes| (received.peer, bytes))
        })
    }

    /// Number of datagrams.
    pub fn len(&self) -> usize {
        let segments = |received: &Received| received.len.div_ceil(received.segment_bytes.max(1)).max(1);
        self.received.iter().map(segments).sum()
    }

    /// Whether it has no datagrams.
    pub fn is_empty(&self) -> bool {
        self.received.is_empty()
    }

    /// Whether there was no room for more: others may wait.
    pub fn is_full(&self) -> bool {
        self.received.len() == self.slots
    }

    /// Bytes of its memory, which do not change.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.len() + self.received.capacity() * size_of::<Received>()
    }

    /// Number of slots.
    pub(super) fn slots(&self) -> usize {
        self.slots
    }

    pub(super) fn clear(&mut self) {
        self.received.clear();
    }

    /// Number of slots that are used.
    pub(super) fn used(&self) -> usize {
        self.received.len()
    }

    /// The bytes of the free slots, one after the other.
    pub(super) fn free_bytes(&mut self) -> &mut [u8] {
        &mut self.bytes[self.received.len() * SLOT_BYTES..self.slots * SLOT_BYTES]
    }

    /// Adds a datagram: to the last slot, if it continues a train of the same peer there, else to the next. Returns
    /// false if there is no room.
    pub(super) fn add(&mut self, peer: SocketAddr, datagram: &[u8]) -> bool {
        let len = datagram.len();
        let place = self.received.len().wrapping_sub(1);
        if let Some(last) = self.received.last_mut()
            && last.peer == peer
            && (1..=last.segment_bytes).contains(&len)
            // The last one is as long as the others.
            && last.len.is_multiple_of(last.segment_bytes)
            && last.len + len <= SLOT_BYTES
        {
            let start = place * SLOT_BYTES + last.len;
            self.bytes[start..start + len].copy_from_slice(datagram);
            last.len += len;
            return true;
        }
        let Some(slot) = self.next_slot() else { return false };
        let Some(room) = slot.get_mut(..len) else { return false };
        room.copy_from_slice(datagram);
        self.push(Some(peer), len, len);
        true
    }

    /// The bytes of the next slot; `None` if all are used.
    pub(super) fn next_slot(&mut self) -> Option<&mut [u8]> {
        self.bytes.chunks_exact_mut(SLOT_BYTES).nth(self.received.len())
    }

    /// Notes what the next slot has.
    pub(super) fn push(&mut self, peer: Option<SocketAddr>, len: usize, segment_bytes: usize) {
        let nobody = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let len = len.min(SLOT_BYTES);
        self.received.push(Received { peer: peer.unwrap_or(nobody), len, segment_bytes });
    }
}
