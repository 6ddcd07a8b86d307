//! [`Replies`]: what is sent after a burst.

use std::io;
use std::net::SocketAddr;

use alluvium_io::datagrams::{Datagrams, Outgoing};
use alluvium_protocol::datagram::{
    DATAGRAM_BYTES_MAX, HEADER_BYTES, Header, Kind, Padding, RESPONSE_HEAD_BYTES, Response, Status,
    VALUE_BYTES_MAX, Writer,
};

use super::counters::{Counters, Figure};

/// Bytes of the arena: two trains of the largest datagrams.
const ARENA_BYTES: usize = 128 << 10;

/// Replies in a fixed arena. A reply has room for a response to each request of its datagram; values take what is left.
#[derive(Debug)]
pub(super) struct Replies {
    outgoing: Outgoing,
    open: Option<Open>,
    first_error: Option<io::Error>,
}

/// The reply that is being written.
#[derive(Clone, Copy, Debug)]
struct Open {
    peer: SocketAddr,
    sequence: u32,
    /// Number of responses that are missing.
    missing: usize,
    /// Of the writer.
    state: (usize, u8),
}

impl Default for Replies {
    fn default() -> Self {
        Self { outgoing: Outgoing::new(ARENA_BYTES), open: None, first_error: None }
    }
}

impl Replies {
    /// Begins the reply to `requests` requests.
    pub(super) fn begin<D: Datagrams>(
        &mut self,
        socket: &mut D,
        counters: &Counters,
        peer: SocketAddr,
        sequence: u32,
        requests: usize,
    ) {
        self.make_room(socket, counters);
        self.open = Some(Open { peer, sequence, missing: requests, state: (HEADER_BYTES, 0) });
    }

    /// Adds the response to the next request of the datagram.
    #[inline]
    pub(super) fn respond(&mut self, response: &Response<'_>) {
        let Some(open) = &mut self.open else { return };
        let Some(room) = self.outgoing.room(DATAGRAM_BYTES_MAX) else { return };
        let mut writer = Writer::resume(room, open.state);
        open.missing = open.missing.saturating_sub(1);
        let reserved = open.missing * RESPONSE_HEAD_BYTES;
        if response.bytes() + reserved <= writer.room() {
            writer.push_response(response);
        } else {
            let is_too_large = response.value.len() > VALUE_BYTES_MAX;
            let status = if is_too_large { Status::TooLarge } else { Status::NoRoom };
            writer.push_response(&Response::bare(status, response.opaque));
        }
        open.state = writer.state();
    }

    /// Ends the reply.
    pub(super) fn end(&mut self, epoch: u16, cookie: u32) {
        let Some(Open { peer, sequence, state, .. }) = self.open.take() else { return };
        let Some(room) = self.outgoing.room(DATAGRAM_BYTES_MAX) else { return };
        let header = Header { kind: Kind::Responses, epoch, cookie, sequence, count: 0 };
        let len = Writer::resume(room, state).finish(header, Padding::Train);
        self.outgoing.commit(peer, len);
    }

    /// Adds a datagram without responses, which is not longer than `bytes_max`.
    pub(super) fn add<D: Datagrams>(
        &mut self,
        socket: &mut D,
        counters: &Counters,
        peer: SocketAddr,
        header: Header,
        content: &[u8],
        bytes_max: usize,
    ) -> bool {
        self.make_room(socket, counters);
        let Some(room) = self.outgoing.room(DATAGRAM_BYTES_MAX) else { return false };
        let mut writer = Writer::new(room);
        if HEADER_BYTES + content.len() > bytes_max || !writer.push_bytes(content) {
            return false;
        }
        let len = writer.finish(header, Padding::None);
        self.outgoing.commit(peer, len);
        true
    }

    #[cfg(test)]
    pub(super) fn memory_bytes(&self) -> usize {
        self.outgoing.memory_bytes()
    }

    fn make_room<D: Datagrams>(&mut self, socket: &mut D, counters: &Counters) {
        if self.outgoing.room(DATAGRAM_BYTES_MAX).is_none() {
            self.flush(socket, counters);
        }
    }

    fn flush<D: Datagrams>(&mut self, socket: &mut D, counters: &Counters) {
        let replies = self.outgoing.len();
        match socket.send_burst(&mut self.outgoing) {
            Ok(sent) => {
                counters.add(Figure::Replies, sent as u64);
                counters.add(Figure::Unsent, replies.saturating_sub(sent) as u64);
            }
            Err(error) => {
                self.outgoing.clear();
                counters.add(Figure::Unsent, replies as u64);
                self.first_error.get_or_insert(error);
            }
        }
    }

    /// Sends all.
    ///
    /// # Errors
    /// The first failure since the last call.
    pub(super) fn send<D: Datagrams>(&mut self, socket: &mut D, counters: &Counters) -> io::Result<()> {
        if !self.outgoing.is_empty() {
            self.flush(socket, counters);
        }
        self.first_error.take().map_or(Ok(()), Err)
    }
}
