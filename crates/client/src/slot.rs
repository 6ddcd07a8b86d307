//! [`Slot`]: a datagram that is filled, or that waits for its reply.

use std::net::SocketAddr;
use std::time::Duration;

use alluvium_protocol::datagram::{DATAGRAM_BYTES_MAX, HEADER_BYTES, Header, Padding, Request, Writer};

/// How often the time until a datagram is sent again doubles.
const DOUBLINGS_MAX: u32 = 6;

/// A datagram that is filled, or that waits for its reply.
#[derive(Debug)]
pub(crate) struct Slot {
    bytes: Box<[u8; DATAGRAM_BYTES_MAX]>,
    /// What a writer has written so far; after it was sent, the bytes of the datagram.
    state: (usize, u8),
    /// The numbers of the requests in it, in their order.
    pub(crate) requests: Vec<u32>,
    pub(crate) peer: SocketAddr,
    /// Whether any worker could have got it.
    pub(crate) is_for_any: bool,
    /// Differs from those of all datagrams that the slot had before.
    pub(crate) sequence: u32,
    pub(crate) sent_at: Option<Duration>,
    tries: u32,
}

impl Slot {
    pub(crate) fn new(peer: SocketAddr) -> Self {
        Self {
            bytes: Box::new([0; DATAGRAM_BYTES_MAX]),
            state: (HEADER_BYTES, 0),
            requests: Vec::new(),
            peer,
            is_for_any: false,
            sequence: 0,
            sent_at: None,
            tries: 0,
        }
    }

    /// Begins another datagram.
    pub(crate) fn begin(&mut self, peer: SocketAddr, is_for_any: bool, sequence: u32) {
        (self.peer, self.is_for_any, self.sequence) = (peer, is_for_any, sequence);
        (self.sent_at, self.tries) = (None, 0);
        self.state = (HEADER_BYTES, 0);
        self.requests.clear();
    }

    /// Adds a request; returns `false` if it has no room.
    #[inline]
    pub(crate) fn add(&mut self, number: u32, request: &Request<'_>, bytes_max: usize) -> bool {
        let mut writer = Writer::resume(&mut self.bytes[..bytes_max], self.state);
        let has_room = writer.push_request(&Request { opaque: number, ..*request });
        self.state = writer.state();
        if has_room {
            self.requests.push(number);
        }
        has_room
    }

    /// Ends the datagram.
    pub(crate) fn finish(&mut self, header: Header, bytes_max: usize) {
        let writer = Writer::resume(&mut self.bytes[..bytes_max], self.state);
        self.state.0 = writer.finish(header, Padding::Train);
    }

    /// The datagram, after [`Slot::finish`].
    pub(crate) fn datagram(&self) -> &[u8] {
        &self.bytes[..self.state.0]
    }

    /// Notes that it is sent now.
    pub(crate) fn sent(&mut self, now: Duration) {
        self.sent_at = Some(now);
        self.tries += 1;
    }

    /// Whether it is time to send it again.
    pub(crate) fn is_due(&self, now: Duration, resend_after: Duration) -> bool {
        let wait = resend_after * (1 << self.tries.saturating_sub(1).min(DOUBLINGS_MAX));
        self.sent_at.is_some_and(|at| now.saturating_sub(at) >= wait)
    }
}
