//! One client's socket, with the bytes on their way in and out.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::time::Instant;

use alluvium_protocol::{Parser, Reply, memcached};

use crate::client_memory::ClientMemory;
use crate::long_reply::{DeferredGet, LongReply};
use crate::protocol::Protocol;
use crate::readiness::Interest;
use crate::session::Session;
use crate::socket::Stream;
use crate::store::STREAM_BYTES;

/// Bytes of replies in a round that are charged only when they are not sent.
const UNCHARGED_BYTES_MAX: usize = 16 << 10;
/// Bytes of a long reply after which other clients come first.
const STREAMED_BYTES_MAX: usize = 1 << 20;
/// Larger buffers of which half was sent are made smaller.
const SHRINK_BYTES_MIN: usize = 64 << 10;

pub(crate) struct Connection {
    pub(crate) stream: Stream,
    pub(crate) session: Session,
    pub(crate) parser: Parser,
    pub(crate) memcached: memcached::Parser,
    /// Bytes received and not yet used: an unfinished frame, or whole frames that wait while `unprocessed`.
    pub(crate) input: Vec<u8>,
    /// Replies; those before `written` have been sent. Holds no memory while there are none.
    pub(crate) output: Vec<u8>,
    pub(crate) written: usize,
    /// Replies from here on wait for a commit, or for the end of the round.
    sendable: usize,
    /// Bytes of replies that were in the buffer and are not any more.
    pub(crate) dropped: u64,
    /// Number of rounds that hold replies of the connection until they are committed.
    held: usize,
    /// A value that follows `output`, while it is read from the store.
    pub(crate) long: Option<Box<LongReply>>,
    /// Gets of this connection in the worker's batch: their replies come before anything else.
    pub(crate) gets_queued: usize,
    /// Gets that wait for the end of a long reply, or for memory.
    pub(crate) deferred: VecDeque<DeferredGet>,
    /// Bytes for which the connection is charged.
    pub(crate) charged: usize,
    /// Nothing is read from the client, or executed for it, until there is memory.
    pub(crate) waits: bool,
    /// Since when it waits with short interruptions.
    pub(crate) waits_since: Option<Instant>,
    /// Bytes that it needs to go on.
    pub(crate) needed_bytes: usize,
    /// The worker has it among those that wait.
    pub(crate) is_listed: bool,
    /// `input` may start with a whole frame, left there because the client must read its replies first.
    pub(crate) unprocessed: bool,
    /// A thread beside the workers does something for the client: its next requests wait for that.
    pub(crate) awaits_answer: bool,
    /// Its next request waits for the end of a pause.
    pub(crate) is_held: bool,
    /// The client sends no more; what it sent is still answered.
    pub(crate) ended: bool,
    /// The socket failed: nothing can be sent.
    pub(crate) broken: bool,
    /// Something happened in this round of the worker.
    pub(crate) touched: bool,
    /// The interest that the poller was given.
    pub(crate) interest: Interest,
    pub(crate) active: Instant,
}

impl Connection {
    pub(crate) fn new(
        stream: Stream,
        session: Session,
        parser: Parser,
        memcached: memcached::Parser,
    ) -> Self {
        let active = session.client.opened;
        Self {
            stream,
            session,
            parser,
            memcached,
            input: Vec::new(),
            output: Vec::new(),
            written: 0,
            sendable: 0,
            dropped: 0,
            held: 0,
            long: None,
            gets_queued: 0,
            deferred: VecDeque::new(),
            charged: 0,
            waits: false,
            waits_since: None,
            needed_bytes: 0,
            is_listed: false,
            unprocessed: false,
            awaits_answer: false,
            is_held: false,
            ended: false,
            broken: false,
            touched: false,
            interest: Interest::READ,
            active,
        }
    }

    /// Where replies go, in the version of the session.
    #[inline]
    pub(crate) fn reply(&mut self) -> Reply<'_> {
        let output = self.long.as_mut().map_or(&mut self.output, |long| &mut long.after);
        Reply::new(output, self.session.version)
    }

    /// Whether its next requests must wait.
    #[inline]
    pub(crate) fn is_parked(&self) -> bool {
        self.awaits_answer || self.waits || self.long.is_some() || !self.deferred.is_empty()
    }

    /// Lets it wait for memory.
    pub(crate) fn wait_for(&mut self, bytes: usize) {
        self.waits = true;
        self.needed_bytes = bytes;
    }

    /// Bytes that the server holds for the client.
    pub(crate) fn held_bytes(&self) -> usize {
        let mut bytes = self.input.len() + self.output.len() + self.session.held_bytes();
        if !self.input.is_empty() {
            bytes += self.parser.heap_bytes();
        }
        if let Some(long) = &self.long {
            bytes += STREAM_BYTES + long.after.len();
        }
        bytes + self.deferred.iter().map(DeferredGet::held_bytes).sum::<usize>()
    }

    /// Charges what the connection holds now.
    #[inline]
    pub(crate) fn charge(&mut self, memory: &ClientMemory) {
        let held = self.held_bytes();
        if held != self.charged {
            if held > self.charged {
                memory.charge(held - self.charged);
            } else {
                memory.release(self.charged - held);
            }
            self.charged = held;
            self.session.client.show_charge(held);
        }
    }

    /// Charges the reply of `bytes` bytes that is to be written, if there is room.
    #[inline]
    pub(crate) fn reserve(&mut self, bytes: usize, memory: &ClientMemory) -> bool {
        self.output.len() + bytes <= UNCHARGED_BYTES_MAX || self.reserve_long(bytes, memory)
    }

    fn reserve_long(&mut self, bytes: usize, memory: &ClientMemory) -> bool {
        let more = (self.held_bytes() + bytes).saturating_sub(self.charged);
        let has_room = memory.try_charge(more);
        if has_room {
            self.charged += more;
        }
        has_room
    }

    /// Appends bytes to the input that waits, with little spare room.
    pub(crate) fn keep_input(&mut self, bytes: &[u8]) {
        let input = &mut self.input;
        if input.capacity() - input.len() < bytes.len() {
            input.reserve_exact(bytes.len().max(input.len() / 4));
        }
        input.extend_from_slice(bytes);
    }

    /// Where replies to memcached clients go.
    #[inline]
    pub(crate) fn memcached_reply(&mut self) -> memcached::Reply<'_> {
        memcached::Reply::new(&mut self.output)
    }

    /// Gives the connection and its replies up if more than `bytes_max` bytes of them are unread.
    pub(crate) fn bound_output(&mut self, bytes_max: usize) {
        if self.pending_bytes() > bytes_max {
            self.give_up();
        }
    }

    /// Gives the connection and its replies up.
    pub(crate) fn give_up(&mut self) {
        self.broken = true;
        self.output = Vec::new();
        (self.written, self.sendable) = (0, 0);
        self.long = None;
        self.deferred = VecDeque::new();
    }

    /// Replaces the reply at `bytes`, counted from the first reply, by an error. A client that wants no reply gets no
    /// error. Returns by how many bytes the replies have grown.
    pub(crate) fn replace_by_error(&mut self, bytes: Range<u64>, text: &str) -> i64 {
        if bytes.is_empty() || self.broken {
            return 0;
        }
        let before = self.output.len();
        let after = self.output.split_off((bytes.end - self.dropped) as usize);
        self.output.truncate((bytes.start - self.dropped) as usize);
        match self.session.protocol {
            Protocol::Memcached => self.memcached_reply().server_error(text),
            Protocol::Redis | Protocol::Undecided => {
                Reply::new(&mut self.output, self.session.version).error(format!("ERR {text}"));
            }
        }
        self.output.extend_from_slice(&after);
        self.output.len() as i64 - before as i64
    }

    /// Where the next reply will be, counted from the first reply.
    #[inline]
    pub(crate) fn output_end(&self) -> u64 {
        self.dropped + self.output.len() as u64
    }

    /// Bytes of replies that may be sent and were not.
    #[cfg(test)]
    pub(crate) fn sendable_bytes(&self) -> usize {
        self.sendable - self.written
    }

    /// Holds the replies that may not be sent yet until [`Connection::release`]; returns whether there are any.
    pub(crate) fn hold(&mut self) -> bool {
        let has_replies = self.output.len() > self.sendable;
        self.held += usize::from(has_replies);
        has_replies
    }

    /// Lets the replies up to `end` be sent.
    pub(crate) fn release(&mut self, end: u64) {
        self.held -= 1;
        self.sendable = (end.saturating_sub(self.dropped) as usize).min(self.output.len());
    }

    /// Lets the replies of a round that waits for nothing be sent.
    pub(crate) fn end_round(&mut self) {
        if self.held == 0 {
            self.sendable = self.output.len();
        }
    }

    /// Bytes of replies that have not been sent to the client.
    #[inline]
    pub(crate) fn pending_bytes(&self) -> usize {
        let after = self.long.as_ref().map_or(0, |long| long.after.len());
        self.output.len() - self.written + after
    }

    /// Whether replies, or what the socket's encryption adds to them, have not been sent.
    fn has_unsent(&self) -> bool {
        self.pending_bytes() > 0 || self.stream.has_unsent()
    }

    /// Sends replies that may be sent, until all are sent or the socket accepts no more. Returns the number of bytes
    /// sent.
    pub(crate) fn flush(&mut self) -> usize {
        let mut sent = 0;
        while self.written < self.sendable || (sent < STREAMED_BYTES_MAX && self.read_piece()) {
            match self.stream.write(&self.output[self.written..self.sendable]) {
                Ok(0) => self.broken = true,
                Ok(written) => {
                    self.written += written;
                    sent += written;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => self.broken = true,
            }
            break;
        }
        self.broken |= self.stream.send().is_err();
        if self.written == self.output.len() {
            self.output.clear();
        } else if self.written > self.output.len() / 2 {
            self.output.drain(..self.written);
            self.output.shrink_to(SHRINK_BYTES_MIN);
        } else {
            return sent;
        }
        self.dropped += self.written as u64;
        self.sendable -= self.written;
        self.written = 0;
        sent
    }

    /// Replaces the output, all of which was sent, by the next bytes of a long reply; returns whether there are any.
    fn read_piece(&mut self) -> bool {
        if self.held > 0 || self.written < self.output.len() {
            return false;
        }
        let Some(long) = &mut self.long else { return false };
        self.dropped += self.output.len() as u64;
        self.output.clear();
        self.written = 0;
        match long.read_piece(&mut self.output) {
            Some(false) => {}
            Some(true) => self.long = None,
            None => {
                self.long = None;
                self.output.clear();
                self.broken = true;
            }
        }
        self.sendable = self.output.len();
        !self.broken
    }

    /// Whether nothing is left to do for this client.
    pub(crate) fn is_finished(&self) -> bool {
        let silent = self.session.closing || (self.ended && !self.unprocessed);
        self.broken || (silent && !self.is_parked() && !self.has_unsent())
    }

    /// What to wait for: requests, unless the client must first read, and room for replies, if there are any.
    pub(crate) fn wanted(&self, output_pause_bytes: usize) -> Interest {
        let listens = !self.session.closing && !self.ended && !self.unprocessed && !self.is_parked();
        let read = listens && self.pending_bytes() <= output_pause_bytes;
        let has_piece = self.long.is_some() && self.held == 0;
        Interest { read, write: self.sendable > self.written || has_piece || self.stream.has_unsent() }
    }
}
