//! [`Client`]: the connections of one thread, each with a number of requests in flight.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, poll};

use super::wire::{Protocol, Reply, Request};
use crate::error::BenchError;
use crate::latencies::Latencies;

/// See the module.
pub struct Client {
    connections: Vec<Connection>,
    protocol: Protocol,
    value_bytes: usize,
    requests: u64,
    absent: u64,
}

struct Connection {
    stream: TcpStream,
    /// Requests that were sent and not answered.
    in_flight: VecDeque<Request>,
    sent: Instant,
    output: Vec<u8>,
    input: Vec<u8>,
    /// Bytes of `input` that were received.
    received: usize,
}

/// Room for replies; grows to the size of a whole batch if necessary.
const INPUT_BYTES: usize = 64 << 10;

impl Client {
    /// A client over connections.
    ///
    /// # Errors
    /// When the system refuses options of a socket.
    pub fn new(streams: Vec<TcpStream>, protocol: Protocol, value_bytes: usize) -> Result<Self, BenchError> {
        let mut connections = Vec::new();
        for stream in streams {
            stream.set_nodelay(true)?;
            connections.push(Connection {
                stream,
                in_flight: VecDeque::new(),
                sent: Instant::now(),
                output: Vec::new(),
                input: vec![0; INPUT_BYTES],
                received: 0,
            });
        }
        Ok(Self { connections, protocol, value_bytes, requests: 0, absent: 0 })
    }

    /// Sends the requests that `next` gives, `depth` at a time on each connection, until it gives none and all are
    /// answered.
    ///
    /// # Errors
    /// Wrong answers, and those of the sockets.
    pub fn run(
        &mut self,
        depth: usize,
        latencies: &mut Latencies,
        mut next: impl FnMut() -> Option<Request>,
    ) -> Result<(), BenchError> {
        for connection in &mut self.connections {
            connection.send(depth, self.protocol, self.value_bytes, &mut next)?;
        }
        let mut ready = Vec::new();
        loop {
            self.wait(&mut ready)?;
            if ready.is_empty() {
                return Ok(());
            }
            for number in ready.drain(..) {
                let connection = &mut self.connections[number];
                let answered = connection.receive(self.protocol, self.value_bytes, &mut self.absent)?;
                self.requests += answered;
                if connection.in_flight.is_empty() {
                    let duration = connection.sent.elapsed();
                    (0..depth).for_each(|_| latencies.record(duration));
                    connection.send(depth, self.protocol, self.value_bytes, &mut next)?;
                }
            }
        }
    }

    /// Waits for replies, and adds the connections that have some to `ready`. Returns at once if none is awaited.
    fn wait(&self, ready: &mut Vec<usize>) -> Result<(), BenchError> {
        let waiting = |connection: &&Connection| !connection.in_flight.is_empty();
        let mut watched: Vec<PollFd<'_>> = self
            .connections
            .iter()
            .filter(waiting)
            .map(|connection| PollFd::new(&connection.stream, PollFlags::IN))
            .collect();
        if watched.is_empty() {
            return Ok(());
        }
        poll(&mut watched, None).map_err(io::Error::from)?;
        let numbers =
            self.connections.iter().enumerate().filter(|(_, connection)| !connection.in_flight.is_empty());
        for ((number, _), watched) in numbers.zip(&watched) {
            if !watched.revents().is_empty() {
                ready.push(number);
            }
        }
        Ok(())
    }

    /// Number of answered requests since the last call.
    pub fn take_requests(&mut self) -> u64 {
        std::mem::take(&mut self.requests)
    }

    /// Number of those that found nothing.
    pub fn take_absent(&mut self) -> u64 {
        std::mem::take(&mut self.absent)
    }
}

impl Connection {
    fn send(
        &mut self,
        depth: usize,
        protocol: Protocol,
        value_bytes: usize,
        next: &mut impl FnMut() -> Option<Request>,
    ) -> Result<(), BenchError> {
        self.output.clear();
        for request in (0..depth).map_while(|_| next()) {
            protocol.encode(request, value_bytes, &mut self.output);
            self.in_flight.push_back(request);
        }
        self.sent = Instant::now();
        Ok(self.stream.write_all(&self.output)?)
    }

    /// Reads once; returns the number of requests that were answered by what came.
    fn receive(
        &mut self,
        protocol: Protocol,
        value_bytes: usize,
        absent: &mut u64,
    ) -> Result<u64, BenchError> {
        if self.received == self.input.len() {
            self.input.resize(2 * self.received, 0);
        }
        match self.stream.read(&mut self.input[self.received..])? {
            0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            bytes => self.received += bytes,
        }
        let (mut used, mut answered) = (0, 0);
        while let Some(&request) = self.in_flight.front() {
            used += match protocol.reply(request, value_bytes, &self.input[used..self.received])? {
                Reply::Incomplete => break,
                Reply::Present(bytes) => bytes,
                Reply::Absent(bytes) => {
                    *absent += 1;
                    bytes
                }
            };
            self.in_flight.pop_front();
            answered += 1;
        }
        if self.in_flight.is_empty() && used < self.received {
            return Err(BenchError::WrongAnswer("more replies than requests".into()));
        }
        self.input.copy_within(used..self.received, 0);
        self.received -= used;
        Ok(answered)
    }
}
