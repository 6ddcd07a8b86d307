//! [`Handing`]: how a worker hands requests to those that own their keys.
//!
//! Between each two workers there are bounded rings with one producer and one consumer. What is handed over is a
//! datagram again, with some of the requests of the one that came; its owner answers them to the client. So nothing
//! waits for an answer, and nothing is kept about clients.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use alluvium_protocol::datagram::{
    Content, DATAGRAM_BYTES_MAX, HEADER_BYTES, Header, Padding, Request, Writer,
};
use rtrb::{Consumer, Producer, RingBuffer};

use super::directing::Directing;

/// Bytes of all rings to one worker, which share them.
const RINGS_BYTES: usize = 512 << 10;
/// Bounds of the bytes of one ring, which has room for the largest datagram.
const RING_BYTES: (usize, usize) = (2 << 10, 128 << 10);
/// Bytes of a small datagram, by which the number of datagrams in a ring is bounded.
const DATAGRAM_BYTES_SMALL: usize = 64;
/// Bytes that are taken from the rings for one burst.
const TAKEN_BYTES: usize = 64 << 10;

/// What comes before a datagram in a ring.
#[derive(Clone, Copy, Debug)]
struct Head {
    peer: SocketAddr,
    len: usize,
}

/// The end of a ring that is filled.
#[derive(Debug)]
struct Giving {
    heads: Producer<Head>,
    bytes: Producer<u8>,
    /// Whether something was given since the worker was woken last.
    has_given: bool,
}

/// The end of a ring that is emptied.
#[derive(Debug)]
struct Taking {
    heads: Consumer<Head>,
    bytes: Consumer<u8>,
}

/// Whether a worker sleeps, or is about to, alone in its cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Sleeper(AtomicBool);

/// A worker's ends of the rings.
#[derive(Debug)]
pub(crate) struct Handing {
    number: usize,
    given: Given,
    from: Vec<Taking>,
    sleepers: Arc<[Sleeper]>,
    taken: Taken,
}

/// The rings to other workers.
#[derive(Debug)]
pub(super) struct Given {
    /// To each worker, except from a worker to itself.
    to: Vec<Option<Giving>>,
    /// Bytes of the requests of one datagram for each worker.
    bytes_for: Vec<usize>,
}

/// Datagrams that were taken from rings, in memory that is allocated once.
#[derive(Debug)]
pub(super) struct Taken {
    bytes: Box<[u8]>,
    used: usize,
    heads: Vec<Head>,
}

impl Taken {
    /// The datagrams with their peers.
    pub(super) fn datagrams(&self) -> impl Iterator<Item = (SocketAddr, &[u8])> {
        let mut rest = &self.bytes[..self.used];
        self.heads.iter().map(move |head| {
            let (bytes, others) = rest.split_at(head.len);
            rest = others;
            (head.peer, bytes)
        })
    }

    pub(super) fn len(&self) -> usize {
        self.heads.len()
    }
}

impl Given {
    /// Hands all requests of a datagram over that others than the worker of this number own. Returns how many were
    /// handed over and how many are left; or `None` if there is no room, and then none was handed over.
    pub(super) fn hand_over(
        &mut self,
        directing: &Directing,
        number: usize,
        peer: SocketAddr,
        header: Header,
        requests: &Content<'_, Request<'_>>,
    ) -> Option<(usize, usize)> {
        let Self { to, bytes_for } = self;
        let owner_of = |request: &Request<'_>| {
            directing.owner_of(request).filter(|owner| *owner != number && *owner < to.len())
        };
        bytes_for.fill(0);
        let (mut handed, mut left) = (0, 0);
        for request in requests.clone() {
            match owner_of(&request) {
                Some(owner) => {
                    bytes_for[owner] += request.bytes();
                    handed += 1;
                }
                None => left += 1,
            }
        }
        let owners = || bytes_for.iter().enumerate().filter(|(_, bytes)| **bytes > 0);
        let has_room = |(owner, bytes): (usize, &usize)| {
            to[owner].as_ref().is_some_and(|giving| {
                giving.heads.slots() > 0 && giving.bytes.slots() >= HEADER_BYTES + bytes
            })
        };
        if !owners().all(has_room) {
            return None;
        }
        let mut buffer = [0; DATAGRAM_BYTES_MAX];
        for owner in (0..bytes_for.len()).filter(|owner| bytes_for[*owner] > 0) {
            let mut writer = Writer::new(&mut buffer);
            for request in requests.clone() {
                let is_for = directing.owner_of(&request) == Some(owner);
                debug_assert!(!is_for || writer.room() >= request.bytes(), "part of a datagram");
                if is_for {
                    writer.push_request(&request);
                }
            }
            let len = writer.finish(header, Padding::None);
            if let Some(giving) = &mut to[owner] {
                // The bytes first: who sees the head finds them.
                let is_given = giving.bytes.push_entire_slice(&buffer[..len]).is_ok()
                    && giving.heads.push(Head { peer, len }).is_ok();
                debug_assert!(is_given, "there was room");
                giving.has_given = true;
            }
        }
        Some((handed, left))
    }
}

impl Handing {
    /// The ends of the rings between `workers` workers, in their order.
    pub(crate) fn between(workers: usize) -> Vec<Self> {
        let bytes = (RINGS_BYTES / workers.max(1)).clamp(RING_BYTES.0, RING_BYTES.1);
        let sleepers: Arc<[Sleeper]> = (0..workers).map(|_| Sleeper::default()).collect();
        let end = |number| Self {
            number,
            given: Given { to: (0..workers).map(|_| None).collect(), bytes_for: vec![0; workers] },
            from: Vec::new(),
            sleepers: Arc::clone(&sleepers),
            taken: Taken {
                bytes: vec![0; TAKEN_BYTES].into_boxed_slice(),
                used: 0,
                heads: Vec::with_capacity(TAKEN_BYTES / DATAGRAM_BYTES_SMALL),
            },
        };
        let mut ends: Vec<Self> = (0..workers).map(end).collect();
        for giver in 0..workers {
            for taker in (0..workers).filter(|taker| *taker != giver) {
                let (heads, taken_heads) = RingBuffer::new(bytes / DATAGRAM_BYTES_SMALL);
                let (filled, emptied) = RingBuffer::new(bytes);
                ends[giver].given.to[taker] = Some(Giving { heads, bytes: filled, has_given: false });
                ends[taker].from.push(Taking { heads: taken_heads, bytes: emptied });
            }
        }
        ends
    }

    /// Takes what others have handed over, as far as there is room, in place of what was taken before. The worker is
    /// awake.
    pub(super) fn take(&mut self) {
        let Self { number, from, sleepers, taken, .. } = self;
        sleepers[*number].0.store(false, Ordering::Relaxed);
        taken.used = 0;
        taken.heads.clear();
        for taking in from {
            while let Ok(head) = taking.heads.peek().copied()
                && taken.heads.len() < taken.heads.capacity()
                && let Some(room) = taken.bytes.get_mut(taken.used..taken.used + head.len)
                && taking.bytes.pop_entire_slice(room).is_ok()
            {
                let _ = taking.heads.pop();
                taken.used += head.len;
                taken.heads.push(head);
            }
        }
    }

    /// What was taken last.
    pub(super) fn taken(&self) -> &Taken {
        &self.taken
    }

    /// The rings to others, and what was taken last.
    pub(super) fn split(&mut self) -> (&mut Given, &Taken) {
        (&mut self.given, &self.taken)
    }

    /// Whether others have handed something over that was not taken.
    pub(super) fn has_more(&self) -> bool {
        self.from.iter().any(|taking| !taking.heads.is_empty())
    }

    /// Whether the worker may sleep: nothing was handed to it, and those who do so from now on wake it.
    pub(super) fn may_sleep(&self) -> bool {
        let is_asleep = &self.sleepers[self.number].0;
        is_asleep.store(true, Ordering::Relaxed);
        // Either this worker sees what another has given, or that one sees that this one sleeps.
        fence(Ordering::SeqCst);
        let may_sleep = !self.has_more();
        if !may_sleep {
            is_asleep.store(false, Ordering::Relaxed);
        }
        may_sleep
    }

    /// Calls `wake` with the number of each worker that sleeps and was given something.
    pub(super) fn wake(&mut self, wake: impl Fn(usize)) {
        if !self.given.to.iter().flatten().any(|giving| giving.has_given) {
            return;
        }
        fence(Ordering::SeqCst);
        for (number, giving) in self.given.to.iter_mut().enumerate() {
            let Some(giving) = giving else { continue };
            let is_asleep = &self.sleepers[number].0;
            if std::mem::take(&mut giving.has_given)
                && is_asleep.load(Ordering::Relaxed)
                && is_asleep.swap(false, Ordering::Relaxed)
            {
                wake(number);
            }
        }
    }

    /// Bytes of its memory and of the rings to it.
    #[cfg(test)]
    pub(super) fn memory_bytes(&self) -> usize {
        let rings = self.from.iter().map(|taking| {
            let heads = taking.heads.buffer().capacity() * size_of::<Head>();
            taking.bytes.buffer().capacity() + heads
        });
        let taken = self.taken.bytes.len() + self.taken.heads.capacity() * size_of::<Head>();
        rings.sum::<usize>() + taken
    }
}
