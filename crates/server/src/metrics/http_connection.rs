//! [`HttpConnection`]: a client that asks for metrics.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use super::http_request::{self, HEAD_BYTES_MAX, Parsed};
use super::http_response::Response;
use crate::readiness::Interest;

/// How long a client may take to send a request, and to read an answer.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a client may send after a refused request.
const DISCARD_TIME_MAX: Duration = Duration::from_secs(1);
/// How long a connection may wait for its next request: longer than most intervals of scraping.
const IDLE_TIME_MAX: Duration = Duration::from_secs(75);

/// It either reads a request or writes an answer.
pub(super) struct HttpConnection {
    pub stream: TcpStream,
    /// At most [`HEAD_BYTES_MAX`] bytes.
    input: Vec<u8>,
    /// The answer; the bytes before `written` have been sent.
    output: Vec<u8>,
    written: usize,
    /// Whether another request may follow.
    stays: bool,
    /// Whether a request was refused: what follows it is not read as requests.
    is_refused: bool,
    /// The connection is closed then.
    pub deadline: Instant,
    pub interest: Interest,
}

impl HttpConnection {
    pub fn new(stream: TcpStream, now: Instant) -> Self {
        Self {
            stream,
            input: Vec::new(),
            output: Vec::new(),
            written: 0,
            stays: true,
            is_refused: false,
            deadline: now + REQUEST_TIME_MAX,
            interest: Interest::READ,
        }
    }

    /// Reads once, and sends one answer at most, so that no client keeps others waiting. Gets the answer from `answer`.
    /// Returns whether the connection stays open.
    pub fn advance(&mut self, now: Instant, answer: &mut dyn FnMut(&str) -> Response) -> io::Result<bool> {
        if self.is_refused && self.output.is_empty() {
            return self.discard();
        }
        if self.output.is_empty() && !self.begin_answer(now, answer) {
            match self.receive(now)? {
                Received::Nothing => return Ok(true),
                Received::End => return Ok(false),
                Received::Bytes => drop(self.begin_answer(now, answer)),
            }
        }
        if !self.output.is_empty() && self.send()? {
            if self.is_refused {
                self.stream.shutdown(Shutdown::Write)?;
                self.deadline = now + DISCARD_TIME_MAX;
            } else if !self.stays {
                return Ok(false);
            } else {
                self.deadline = now + IDLE_TIME_MAX;
            }
        }
        let writes = !self.output.is_empty();
        // A request that is already here makes no event, but the socket is ready for its answer.
        let is_next_here = !self.is_refused && http_request::parse(&self.input) != Parsed::Incomplete;
        self.interest = Interest { read: !writes, write: writes || is_next_here };
        Ok(true)
    }

    /// Reads what follows a refused request: with bytes unread, closing the socket would take the answer away.
    fn discard(&mut self) -> io::Result<bool> {
        let mut bytes = [0; HEAD_BYTES_MAX];
        match (&self.stream).read(&mut bytes) {
            Ok(0) => Ok(false),
            Ok(_) => Ok(true),
            Err(error) if would_block(&error) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Begins to answer the request at the front of the input, if it is whole.
    fn begin_answer(&mut self, now: Instant, answer: &mut dyn FnMut(&str) -> Response) -> bool {
        match http_request::parse(&self.input) {
            Parsed::Incomplete => return false,
            Parsed::Get { path, stays, consumed } => {
                self.output = answer(path).encode(stays);
                self.stays = stays;
                self.input.drain(..consumed);
            }
            Parsed::Refused(status) => {
                self.output = Response::of_status(status).encode(false);
                self.is_refused = true;
                self.input.clear();
            }
        }
        self.deadline = now + REQUEST_TIME_MAX;
        true
    }

    fn receive(&mut self, now: Instant) -> io::Result<Received> {
        let mut bytes = [0; HEAD_BYTES_MAX];
        match (&self.stream).read(&mut bytes[..HEAD_BYTES_MAX - self.input.len()]) {
            Ok(0) => Ok(Received::End),
            Ok(received) => {
                if self.input.is_empty() {
                    self.deadline = now + REQUEST_TIME_MAX;
                }
                self.input.extend_from_slice(&bytes[..received]);
                Ok(Received::Bytes)
            }
            Err(error) if would_block(&error) => Ok(Received::Nothing),
            Err(error) => Err(error),
        }
    }

    /// Returns whether the whole answer is sent.
    fn send(&mut self) -> io::Result<bool> {
        while self.written < self.output.len() {
            match (&self.stream).write(&self.output[self.written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => self.written += written,
                Err(error) if would_block(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        self.output = Vec::new();
        self.written = 0;
        Ok(true)
    }
}

enum Received {
    Nothing,
    Bytes,
    End,
}

fn would_block(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
