//! Clients that wait for memory, and long values.

use std::time::{Duration, Instant};

use super::{READ_BYTES_MAX, Worker};
use crate::client_memory::{CONNECTION_BYTES, SMALL_BYTES};
use crate::connection::Connection;
use crate::get_batch::Form;

/// How often clients that wait are tried again.
pub(super) const RETRY: Duration = Duration::from_millis(10);
/// Bytes of replies that a client may leave unread while there is no room for more.
const PAUSE_BYTES_WITHOUT_ROOM: usize = 16 << 10;
/// Bytes of messages that a client may leave unread when all memory is used.
const UNREAD_BYTES_WITHOUT_ROOM: usize = 64 << 10;

impl Worker {
    /// Bytes of unread replies above which a client's requests wait.
    #[inline]
    pub(super) fn pause_bytes(&self) -> usize {
        let bytes = self.shared.options.output_pause_bytes;
        if self.shared.memory.has_room() { bytes } else { bytes.min(PAUSE_BYTES_WITHOUT_ROOM) }
    }

    /// Maximum number of bytes to read from a client now; 0 if it must wait.
    #[inline]
    pub(super) fn readable_bytes(&self, number: usize) -> usize {
        let memory = &self.shared.memory;
        if memory.has_room() {
            return READ_BYTES_MAX;
        }
        let connection = &self.connections[number];
        if connection.charged <= SMALL_BYTES {
            return SMALL_BYTES.max(connection.stream.read_bytes_min());
        }
        let has_room = memory.used() + READ_BYTES_MAX <= memory.bytes_max();
        if has_room && memory.favours(connection.session.id) { READ_BYTES_MAX } else { 0 }
    }

    /// Notes whether a connection waits for memory.
    pub(super) fn note_waiting(&mut self, number: usize) {
        let connection = &mut self.connections[number];
        if !connection.waits {
            if connection.waits_since.take().is_some() {
                self.shared.memory.end_wait();
            }
            return;
        }
        if connection.waits_since.is_none() {
            connection.waits_since = Some(Instant::now());
            self.shared.memory.begin_wait();
        }
        if !connection.is_listed {
            connection.is_listed = true;
            self.waiting.push(number);
        }
    }

    /// Resumes clients that wait, as far as there is room; closes one that holds much if that takes too long.
    pub(super) fn retry_waiting(&mut self) {
        let (now, mut longest) = (Instant::now(), Duration::ZERO);
        for number in std::mem::take(&mut self.waiting) {
            if !self.connections.contains(number) || !self.connections[number].waits {
                continue;
            }
            let connection = &mut self.connections[number];
            let memory = &self.shared.memory;
            let fits = memory.used() + connection.needed_bytes <= memory.bytes_max();
            if fits && (memory.has_room() || memory.favours(connection.session.id)) {
                connection.waits = false;
                connection.is_listed = false;
                self.resumable.push(number);
            } else {
                self.waiting.push(number);
            }
            longest = longest.max(connection.waits_since.map_or(Duration::ZERO, |since| now - since));
        }
        if longest >= self.shared.memory.patience {
            self.relieve(longest);
        }
    }

    /// Closes clients that hold much memory if the bound is exceeded, or if others have `waited` for long.
    pub(super) fn relieve(&self, waited: Duration) {
        let (clients, memory) = (&self.shared.connected, &self.shared.memory);
        memory.relieve(waited, |relief| clients.close_largest(relief, memory.patience));
    }

    /// Looks deferred gets up again. Those that must wait are deferred again.
    pub(super) fn resume_gets(&mut self, number: usize) {
        for get in std::mem::take(&mut self.connections[number].deferred) {
            if !self.batch.accepts(get.database) {
                self.look_up();
            }
            self.batch.push(number, get.database, get.key(), get.line(), get.form);
            self.connections[number].gets_queued += 1;
        }
    }

    /// Closes a client that does not read the messages that it has subscribed to.
    pub(super) fn bound_messages(&mut self, number: usize) {
        let memory = &self.shared.memory;
        let bytes_max = self.shared.options.output_bytes_max.min(memory.bytes_max() / 8);
        let connection = &mut self.connections[number];
        connection.bound_output(bytes_max.min(super::mail::UNREAD_MESSAGE_BYTES_MAX));
        connection.charge(memory);
        if memory.is_exceeded() {
            connection.bound_output(UNREAD_BYTES_WITHOUT_ROOM);
        }
    }

    /// Closes connections whose clients send nothing, or take too long to read a value.
    pub(super) fn sweep(&mut self, now: Instant) {
        if let Some(timeout) = self.shared.idle_timeout() {
            self.close_idle(now, timeout);
        }
        if self.has_streams {
            let longs = |number: &usize| self.connections[*number].long.is_some();
            let numbers: Vec<usize> = self.connections.numbers().filter(longs).collect();
            self.has_streams = !numbers.is_empty();
            for number in numbers {
                if self.connections[number].long.as_ref().is_some_and(|long| long.is_overdue(now)) {
                    self.close(number);
                }
            }
        }
    }

    /// Releases what a connection that leaves was charged.
    pub(super) fn release(&self, connection: &Connection) {
        let (memory, session) = (&self.shared.memory, &connection.session);
        memory.release(connection.charged + CONNECTION_BYTES);
        memory.left(session.client.leaving_bytes());
        memory.end_favour(session.id);
        if connection.waits_since.is_some() {
            memory.end_wait();
        }
    }

    /// Adds a get to the batch, or to the next one if there is no room.
    pub(super) fn push_get(&mut self, number: usize, frame: &[u8]) {
        let database = self.connections[number].session.database;
        if !self.batch.accepts(database) {
            self.look_up();
        }
        let connection = &mut self.connections[number];
        self.batch.push(number, database, &connection.parser.arguments(frame)[1], b"", Form::Bulk);
        connection.gets_queued += 1;
    }
}
