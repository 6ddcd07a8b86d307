//! [`LoadedMemcached`]: the same requests to a memcached, whose system calls are those of the kernel's network stack.
//!
//! It has a socket of the machine, which costs it less than TCP. All requests of a call are sent together. The keys are
//! the decimal numbers of the items, since a key of the text protocol has no zeros.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use alluvium_client::Operation;

use super::client::{Requests, Source, TIMED};
use super::flight::{Flight, fly};
use super::{Outcome, UdpOptions, described, on_threads, threads, zipf};
use crate::cache::memcached::Memcached;
use crate::cache::requests::Zipf;
use crate::error::BenchError;
use crate::measurement::Measurement;
use crate::random::mix;

/// Bytes that are read at a time.
const READ_BYTES: usize = 16 << 10;

/// A memcached of one thread that has all items.
#[derive(Debug)]
pub struct LoadedMemcached(Memcached);

/// Appends the key of an item.
fn push_key(bytes: &mut Vec<u8>, item: u64, key_bytes: usize) {
    // Writing to a vector does not fail.
    let _ = write!(bytes, "{item:0key_bytes$}");
}

impl LoadedMemcached {
    /// Starts `program` with room for the items, and stores them.
    ///
    /// # Errors
    /// [`BenchError`]: it does not start or answers strangely, or a key has too few bytes for the numbers of the items.
    pub fn start(program: &Path, options: &UdpOptions) -> Result<Self, BenchError> {
        options.check()?;
        let (key_bytes, value_bytes) = (options.key_size as usize, options.value_size as usize);
        if (options.items - 1).to_string().len() > key_bytes {
            return Err(BenchError::Usage("a key has room for the number of each item".into()));
        }
        let mut memcached = Memcached::start(program, options.cache)?;
        let mut key = Vec::new();
        let mut value = vec![0x5a; value_bytes];
        for item in 0..options.items {
            key.clear();
            push_key(&mut key, item, key_bytes);
            value[..8].copy_from_slice(&mix(item).to_le_bytes());
            memcached.set_later(&key, &value)?;
        }
        memcached.finish_sets()?;
        Ok(Self(memcached))
    }

    /// Sends gets and sets of random items for a time, as to a server under test: the case `memcached`.
    ///
    /// # Errors
    /// [`BenchError`]: the connection, or a wrong value.
    pub fn measure(&self, options: &UdpOptions) -> Result<Measurement, BenchError> {
        options.check()?;
        let zipf = zipf(options);
        let before = threads::process_time(self.0.process())?;
        let outcome = on_threads(options, |thread| drive(options, zipf.as_ref(), self.0.socket(), thread))?;
        let used = threads::process_time(self.0.process())?.saturating_sub(before);
        let requests = outcome.requests.max(1) as f64;
        let cpu_ns = used.as_nanos() as f64 / requests;
        let measurement = described(options, "memcached")
            .metric("ops_per_s", requests / options.seconds)
            .metric("server_cpu_ns_per_op", cpu_ns)
            .metric("ops_per_s_per_core", 1e9 / cpu_ns)
            .metric("absent", outcome.absent);
        Ok(outcome.latencies.report(measurement))
    }
}

fn drive(
    options: &UdpOptions,
    zipf: Option<&Zipf>,
    socket: &Path,
    thread: u64,
) -> Result<Outcome, BenchError> {
    let calls = (0..options.calls as u64).map(|call| {
        let stream = UnixStream::connect(socket)?;
        stream.set_nonblocking(true)?;
        Ok(Call {
            stream,
            requests: Requests::new(options),
            source: Source::new(options, zipf, thread * options.calls as u64 + call),
            key_bytes: options.key_size as usize,
            outgoing: Vec::new(),
            sent: 0,
            buffer: vec![0; READ_BYTES].into(),
            incoming: Vec::new(),
            answered: 0,
            due: Instant::now(),
            outcome: Outcome::default(),
        })
    });
    let mut calls: Vec<Call<'_>> = calls.collect::<Result<_, BenchError>>()?;
    fly(&mut calls, options.seconds, options.call_interval())?;
    let mut all = Outcome::default();
    calls.iter().for_each(|call| all.add(&call.outcome));
    Ok(all)
}

/// A call, with a connection of its own.
struct Call<'a> {
    stream: UnixStream,
    requests: Requests,
    source: Source<'a>,
    key_bytes: usize,
    outgoing: Vec<u8>,
    /// Bytes of it that were sent.
    sent: usize,
    buffer: Box<[u8]>,
    /// What came and was not taken yet.
    incoming: Vec<u8>,
    /// Requests that were answered.
    answered: usize,
    due: Instant,
    outcome: Outcome,
}

impl Flight for Call<'_> {
    fn begin(&mut self, due: Instant) {
        self.due = due;
        self.source.fill(&mut self.requests);
        self.outgoing.clear();
        (self.sent, self.answered) = (0, 0);
        for number in 0..self.requests.operations.len() {
            let (operation, item) = self.requests.operations[number];
            let bytes = &mut self.outgoing;
            bytes.extend_from_slice(if operation == Operation::Get { b"get " } else { b"set " });
            push_key(bytes, item, self.key_bytes);
            if operation == Operation::Set {
                let value = self.requests.get(number).value;
                let _ = write!(bytes, " 0 0 {}\r\n", value.len());
                bytes.extend_from_slice(value);
            }
            bytes.extend_from_slice(b"\r\n");
        }
    }

    fn advance(&mut self) -> Result<bool, BenchError> {
        self.send()?;
        match self.stream.read(&mut self.buffer) {
            Ok(0) => return Err(BenchError::Usage("memcached closed a connection".into())),
            Ok(came) => {
                self.incoming.extend_from_slice(&self.buffer[..came]);
                self.take_answers()?;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(BenchError::Io(error)),
        }
        Ok(self.answered == self.requests.operations.len())
    }
}

impl Call<'_> {
    fn send(&mut self) -> Result<(), BenchError> {
        while self.sent < self.outgoing.len() {
            match self.stream.write(&self.outgoing[self.sent..]) {
                Ok(sent) => self.sent += sent,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(BenchError::Io(error)),
            }
        }
        Ok(())
    }

    /// Takes the answers that came whole, and checks them.
    fn take_answers(&mut self) -> Result<(), BenchError> {
        let elapsed = self.due.elapsed();
        let few = self.requests.operations.len() < TIMED;
        let mut taken = 0;
        while let Some((operation, item)) = self.requests.operations.get(self.answered).copied() {
            let value = if operation == Operation::Get { Some(mix(item).to_le_bytes()) } else { None };
            match answer(&self.incoming[taken..], value) {
                Answer::Cut => break,
                Answer::Wrong => {
                    let text = String::from_utf8_lossy(&self.incoming[taken..]).into_owned();
                    return Err(BenchError::WrongAnswer(format!("{operation:?} of {item}: {text:?}")));
                }
                Answer::Right { bytes, is_absent } => {
                    taken += bytes;
                    self.outcome.absent += u64::from(is_absent);
                }
            }
            self.answered += 1;
            self.outcome.requests += 1;
            if few || self.answered.is_multiple_of(TIMED) {
                self.outcome.latencies.record(elapsed);
            }
        }
        self.incoming.drain(..taken);
        Ok(())
    }
}

/// What the first answer in some bytes is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// It has no end yet.
    Cut,
    /// It has this many bytes.
    Right {
        bytes: usize,
        is_absent: bool,
    },
    Wrong,
}

/// The first answer in `bytes`: to a get of an item whose value begins with `value`, or to a set.
fn answer(bytes: &[u8], value: Option<[u8; 8]>) -> Answer {
    let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else { return Answer::Cut };
    let (line, start) = (&bytes[..end], end + 2);
    let Some(value) = value else {
        let is_stored = line == b"STORED";
        return if is_stored { Answer::Right { bytes: start, is_absent: false } } else { Answer::Wrong };
    };
    if line == b"END" {
        return Answer::Right { bytes: start, is_absent: true };
    }
    let len = line.rsplit(|byte| *byte == b' ').next().map(String::from_utf8_lossy);
    let Some(len) = len.and_then(|len| len.parse::<usize>().ok()).filter(|_| line.starts_with(b"VALUE "))
    else {
        return Answer::Wrong;
    };
    let tail = b"\r\nEND\r\n";
    let whole = start.saturating_add(len).saturating_add(tail.len());
    let Some(rest) = bytes.get(start..whole) else { return Answer::Cut };
    let is_right = rest.starts_with(&value) && rest.ends_with(tail);
    if is_right { Answer::Right { bytes: whole, is_absent: false } } else { Answer::Wrong }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_taken_whole() {
        let value = *b"12\r\n5678";
        let is_absent = false;
        let found = b"VALUE 00000007 0 8\r\n12\r\n5678\r\nEND\r\n";
        let whole = [&found[..], b"END\r\n"].concat();
        assert_eq!(answer(&whole, Some(value)), Answer::Right { bytes: found.len(), is_absent });
        for end in 0..found.len() {
            assert_eq!(answer(&found[..end], Some(value)), Answer::Cut, "{end}");
        }
        assert_eq!(answer(b"END\r\n", Some(value)), Answer::Right { bytes: 5, is_absent: true });
        assert_eq!(answer(b"STORED\r\n", None), Answer::Right { bytes: 8, is_absent });
        assert_eq!(answer(b"STORED\r\n", Some(value)), Answer::Wrong);
        assert_eq!(answer(b"SERVER_ERROR out of memory\r\n", None), Answer::Wrong);
        assert_eq!(answer(found, Some(*b"another.")), Answer::Wrong);
    }
}
