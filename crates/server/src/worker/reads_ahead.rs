//! [`ReadsAhead`]: the items that the requests of a round need are read from the device together.
//!
//! Commands are executed one after the other, so each would wait for its own read. Where that happens, a round first
//! receives what all clients have sent, and finds the keys in it; the store reads them into its memory at once, and the
//! commands find them there. A store whose items are in memory is asked only now and then.

use std::ops::Range;

use alluvium_protocol::{Limits, Parser, Progress};

use super::{READ_BYTES_MAX, Worker};
use crate::commands;
use crate::connection::Connection;
use crate::protocol::Protocol;
use crate::store::{DatabaseNumber, Store};

/// Number of rounds without reads from the device after which a round finds out whether there are some.
const ROUNDS_PER_PROBE: u32 = 64;
/// Maximum number of keys that are read ahead in a round.
const KEYS_MAX: usize = 1024;
/// Maximum bytes of these keys. The last key may cross it.
const KEY_BYTES_MAX: usize = 1 << 20;

/// See the module.
pub(super) struct ReadsAhead {
    /// Number of rounds until the next one that reads ahead; `None` if the store has no use for it.
    pause: Option<u32>,
    /// Connections that have received something in this round, if it reads ahead.
    received: Vec<usize>,
    /// Keys, and where they are in `bytes`.
    keys: Vec<(DatabaseNumber, Range<usize>)>,
    bytes: Vec<u8>,
}

impl ReadsAhead {
    pub(super) fn new(is_useful: bool) -> Self {
        let pause = is_useful.then_some(ROUNDS_PER_PROBE);
        Self { pause, received: Vec::new(), keys: Vec::new(), bytes: Vec::new() }
    }

    /// Whether this round reads ahead.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.pause == Some(0)
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
        let mut parser = Parser::new(limits);
        let (keys_before, mut is_mixed, mut position) = (self.keys.len(), false, 0);
        while self.keys.len() < KEYS_MAX && self.bytes.len() <= KEY_BYTES_MAX {
            let frame = &input[position..];
            let Ok(Progress::Complete { consumed }) = parser.parse(frame) else { break };
            position += consumed;
            let arguments = parser.arguments(frame);
            if arguments.is_empty() {
                continue;
            }
            is_mixed |= commands::keys_to_read(arguments, &mut |key| {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(key);
                self.keys.push((session.database, start..self.bytes.len()));
            });
        }
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
        self.pause = Some(if unknown * 8 > self.keys.len() { 0 } else { ROUNDS_PER_PROBE });
        self.keys.clear();
        self.bytes.clear();
        self.bytes.shrink_to(KEY_BYTES_MAX);
    }
}

impl Worker {
    /// Processes what was received, after reading what it needs.
    pub(super) fn process_received(&mut self) {
        if !self.reads_ahead.is_due() {
            self.reads_ahead.pause = self.reads_ahead.pause.map(|rounds| rounds - 1);
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
