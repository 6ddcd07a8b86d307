//! [`ReadsAhead`]: the items that the requests of a round need are read from the device together.
//!
//! Commands are executed one after the other, so each would wait for its own read. Where that happens, a round first
//! receives what all clients have sent, and finds the keys in it; the store reads them into its memory at once, and the
//! commands find them there. Whether it happens is found out by one key of each round.

use std::ops::Range;

use alluvium_protocol::{Arguments, Limits, Parser, Progress};

use super::{READ_BYTES_MAX, Worker};
use crate::commands;
use crate::connection::Connection;
use crate::protocol::Protocol;
use crate::session::Session;
use crate::store::{DatabaseNumber, Store};

/// A read from the device takes about as long as looking up this many keys in memory, which reading ahead adds.
const KEYS_PER_READ: usize = 128;
/// Number of requests of a client among which a round looks for one that may wait for a read, and of such clients.
const SAMPLE_REQUESTS_MAX: usize = 16;
const SAMPLE_CLIENTS_MAX: u32 = 4;
/// Maximum number of keys that are read ahead in a round.
const KEYS_MAX: usize = 1024;
/// Maximum bytes of these keys. The last key may cross it.
const KEY_BYTES_MAX: usize = 1 << 20;

/// See the module.
pub(super) struct ReadsAhead {
    /// Whether the store reads from a device.
    is_useful: bool,
    /// Whether this round reads ahead.
    is_due: bool,
    /// Number of clients whose requests may still tell whether this round reads from the device.
    samples_left: u32,
    /// Connections that have received something in this round, if it reads ahead.
    received: Vec<usize>,
    /// Keys, and where they are in `bytes`.
    keys: Vec<(DatabaseNumber, Range<usize>)>,
    bytes: Vec<u8>,
}

/// Calls `each` with the whole requests in `input`, until it returns `false`.
fn each_request(input: &[u8], limits: Limits, mut each: impl FnMut(Arguments<'_>) -> bool) {
    let (mut parser, mut position) = (Parser::new(limits), 0);
    loop {
        let frame = &input[position..];
        let Ok(Progress::Complete { consumed }) = parser.parse(frame) else { return };
        position += consumed;
        let arguments = parser.arguments(frame);
        if !arguments.is_empty() && !each(arguments) {
            return;
        }
    }
}

impl ReadsAhead {
    pub(super) fn new(is_useful: bool) -> Self {
        Self {
            is_useful,
            is_due: false,
            samples_left: SAMPLE_CLIENTS_MAX,
            received: Vec::new(),
            keys: Vec::new(),
            bytes: Vec::new(),
        }
    }

    /// Whether this round reads ahead.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.is_due
    }

    /// Whether this round has not found out yet whether it reads from the device.
    #[inline]
    fn wants_sample(&self) -> bool {
        self.is_useful && self.samples_left > 0 && !self.is_due
    }

    /// Reads the item of one of the requests in `input`, and lets the round read ahead if that is not in memory.
    fn sample(&mut self, session: &Session, input: &[u8], limits: Limits, store: &dyn Store) {
        self.samples_left -= 1;
        if session.protocol != Protocol::Redis || !session.is_authenticated {
            return;
        }
        let (mut has_key, mut is_mixed, mut left) = (false, false, SAMPLE_REQUESTS_MAX);
        each_request(input, limits, |arguments| {
            is_mixed |= commands::keys_to_read(arguments, &mut |key| {
                if !has_key {
                    self.bytes.extend_from_slice(key);
                }
                has_key = true;
            });
            left -= 1;
            left > 0 && !(is_mixed && has_key)
        });
        if is_mixed && has_key {
            let reads = store.database(session.database).prefetch(&[&self.bytes]).unwrap_or(0);
            self.is_due = reads > 0;
            self.samples_left = 0;
        }
        self.bytes.clear();
    }

    /// Notes that a connection has received something.
    pub(super) fn add(&mut self, connection: usize) {
        self.received.push(connection);
    }

    /// Adds the keys of the whole requests that a connection has received.
    fn find_keys(&mut self, connection: &Connection, limits: Limits) {
        let input = &connection.input;
        let session = &connection.session;
        // The beginnings of long requests are not parsed again and again.
        if session.protocol != Protocol::Redis
            || !session.is_authenticated
            || input.len() > 2 * READ_BYTES_MAX
        {
            return;
        }
        let (keys_before, mut is_mixed) = (self.keys.len(), false);
        each_request(input, limits, |arguments| {
            is_mixed |= commands::keys_to_read(arguments, &mut |key| {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(key);
                self.keys.push((session.database, start..self.bytes.len()));
            });
            self.keys.len() < KEYS_MAX && self.bytes.len() <= KEY_BYTES_MAX
        });
        // Gets alone are looked up together anyway.
        if !is_mixed {
            self.keys.truncate(keys_before);
        }
    }

    /// Reads the items of the keys. If that fails, the commands will fail.
    fn read(&mut self, store: &dyn Store) {
        let mut unknown = 0;
        if !self.keys.is_empty() {
            for keys in self.keys.chunk_by(|left, right| left.0 == right.0) {
                let slices: Vec<&[u8]> = keys.iter().map(|(_, range)| &self.bytes[range.clone()]).collect();
                unknown += store.database(keys[0].0).prefetch(&slices).unwrap_or(0);
            }
        }
        // A single read waits for no other.
        self.is_due = unknown > 1 && unknown * KEYS_PER_READ > self.keys.len();
        self.keys.clear();
        self.bytes.clear();
        self.bytes.shrink_to(KEY_BYTES_MAX);
    }
}

impl Worker {
    /// Finds out, with what a client has sent, whether this round reads ahead.
    #[inline]
    pub(super) fn sample(&mut self, number: usize, received: &[u8]) {
        let connection = &self.connections[number];
        if self.reads_ahead.wants_sample() && connection.input.is_empty() {
            let (limits, store) = (self.shared.options.limits, &*self.shared.store);
            self.reads_ahead.sample(&connection.session, received, limits, store);
        }
    }

    /// Processes what was received, after reading what it needs.
    pub(super) fn process_received(&mut self) {
        self.reads_ahead.samples_left = SAMPLE_CLIENTS_MAX;
        if !self.reads_ahead.is_due {
            return;
        }
        let received = std::mem::take(&mut self.reads_ahead.received);
        if received.is_empty() {
            return;
        }
        for &number in &received {
            self.reads_ahead.find_keys(&self.connections[number], self.shared.options.limits);
        }
        self.reads_ahead.read(&*self.shared.store);
        for &number in &received {
            self.process_input(number);
        }
        self.reads_ahead.received = received;
        self.reads_ahead.received.clear();
    }
}

#[cfg(test)]
mod tests {
    use alluvium_protocol::{Limits, request};

    use super::{KEYS_PER_READ, ReadsAhead};
    use crate::get_batch::tests::{Echo, connections};
    use crate::protocol::Protocol;
    use crate::store::DatabaseNumber;

    fn requests(all: &[&[&str]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        all.iter().for_each(|words| request::encode(words, &mut bytes));
        bytes
    }

    #[test]
    fn a_round_reads_ahead_once_a_request_waits_for_the_device() {
        let mut connections = connections(1);
        let session = &mut connections[0].session;
        session.protocol = Protocol::Redis;
        let store = Echo { fails: false };
        let cases: [(&[&[&str]], bool); 8] = [
            (&[&["EXISTS", "on flash"]], true),
            (&[&["EXISTS", "in memory"], &["EXISTS", "on flash"]], false),
            (&[&["GET", "on flash"], &["PING"]], false),
            (&[&["GET", "on flash"], &["SET", "in memory", "value"]], true),
            (&[&["SET", "in memory", "value"], &["GET", "on flash"]], true),
            (&[&["GET", "on flash"]], false),
            (&[&["SET", "on flash", "value"]], false),
            (&[&["MGET", "on flash", "in memory"]], true),
        ];
        for (all, is_due) in cases {
            let mut reads_ahead = ReadsAhead::new(true);
            assert!(reads_ahead.wants_sample());
            reads_ahead.sample(session, &requests(all), Limits::default(), &store);
            assert_eq!(reads_ahead.is_due(), is_due, "{all:?}");
            assert_eq!(reads_ahead.wants_sample(), all.iter().all(|words| words[0] != "EXISTS") && !is_due);
        }
        session.is_authenticated = false;
        let mut reads_ahead = ReadsAhead::new(true);
        reads_ahead.sample(session, &requests(&[&["EXISTS", "on flash"]]), Limits::default(), &store);
        assert!(!reads_ahead.is_due());
        assert!(!ReadsAhead::new(false).wants_sample());
    }

    #[test]
    fn rounds_read_ahead_as_long_as_that_saves_more_than_it_costs() {
        let store = Echo { fails: false };
        for (on_flash, in_memory, is_due) in [
            (0, 0, false),
            (1, 0, false),
            (2, 0, true),
            (2, 2 * KEYS_PER_READ - 3, true),
            (2, 2 * KEYS_PER_READ, false),
        ] {
            let mut reads_ahead = ReadsAhead { is_due: true, ..ReadsAhead::new(true) };
            for key in vec!["on flash"; on_flash].into_iter().chain(vec!["in memory"; in_memory]) {
                let start = reads_ahead.bytes.len();
                reads_ahead.bytes.extend_from_slice(key.as_bytes());
                reads_ahead.keys.push((DatabaseNumber::default(), start..start + key.len()));
            }
            reads_ahead.read(&store);
            assert_eq!(reads_ahead.is_due(), is_due, "{on_flash} and {in_memory}");
        }
    }
}
