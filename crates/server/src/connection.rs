//! One client's socket, with the bytes on their way in and out.

use std::io;
use std::ops::Range;
use std::time::Instant;

use alluvium_protocol::{Parser, Reply, memcached};

use crate::protocol::Protocol;
use crate::readiness::Interest;
use crate::session::Session;
use crate::socket::Stream;

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
    /// Gets of this connection in the worker's batch: their replies come before anything else.
    pub(crate) gets_queued: usize,
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
            gets_queued: 0,
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
        Reply::new(&mut self.output, self.session.version)
    }

    /// Where replies to memcached clients go.
    #[inline]
    pub(crate) fn memcached_reply(&mut self) -> memcached::Reply<'_> {
        memcached::Reply::new(&mut self.output)
    }

    /// Gives the connection and its replies up if more than `bytes_max` bytes of them are unread.
    pub(crate) fn bound_output(&mut self, bytes_max: usize) {
        if self.pending_bytes() > bytes_max {
            self.broken = true;
            self.output = Vec::new();
            (self.written, self.sendable) = (0, 0);
        }
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
            Protocol::Redis | Protocol::Undecided => self.reply().error(format!("ERR {text}")),
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
        self.output.len() - self.written
    }

    /// Whether replies, or what the socket's encryption adds to them, have not been sent.
    fn has_unsent(&self) -> bool {
        self.pending_bytes() > 0 || self.stream.has_unsent()
    }

    /// Sends replies that may be sent, until all are sent or the socket accepts no more. Returns the number of bytes
    /// sent.
    pub(crate) fn flush(&mut self) -> usize {
        let mut sent = 0;
        while self.written < self.sendable {
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
        } else {
            return sent;
        }
        self.dropped += self.written as u64;
        self.sendable -= self.written;
        self.written = 0;
        sent
    }

    /// Whether nothing is left to do for this client.
    pub(crate) fn is_finished(&self) -> bool {
        let silent = self.session.closing || (self.ended && !self.unprocessed);
        self.broken || (silent && !self.awaits_answer && !self.has_unsent())
    }

    /// What to wait for: requests, unless the client must first read, and room for replies, if there are any.
    pub(crate) fn wanted(&self, output_pause_bytes: usize) -> Interest {
        let listens = !self.session.closing && !self.ended && !self.unprocessed && !self.awaits_answer;
        let read = listens && self.pending_bytes() <= output_pause_bytes;
        Interest { read, write: self.sendable > self.written || self.stream.has_unsent() }
    }
}
