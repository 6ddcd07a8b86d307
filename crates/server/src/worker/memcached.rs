//! Input of memcached clients, and of clients whose protocol is not known yet.

use alluvium_protocol::memcached::{KeyBuffer, Progress, Reply, Request};

use super::Worker;
use crate::get_batch::Form;
use crate::memcached::{self, Context, DATABASE, Writer};
use crate::protocol::Protocol;

impl Worker {
    /// Whether the client, which is not known to speak the protocol of Redis, does so.
    pub(super) fn is_of_redis(&mut self, number: usize, input: &[u8]) -> bool {
        let session = &mut self.connections[number].session;
        if session.protocol == Protocol::Undecided {
            session.protocol = Protocol::of(input);
        }
        session.protocol == Protocol::Redis
    }

    /// As [`Worker::process`], for requests of memcached.
    pub(super) fn process_memcached(&mut self, number: usize, input: &[u8]) -> usize {
        let pause_bytes = self.pause_bytes();
        let mut consumed = 0;
        loop {
            let connection = &mut self.connections[number];
            let paused = connection.is_parked() || connection.pending_bytes() > pause_bytes;
            connection.unprocessed = paused && consumed < input.len();
            let is_known = connection.session.protocol == Protocol::Memcached;
            if paused
                || connection.session.closing
                || connection.broken
                || consumed == input.len()
                || !is_known
            {
                return consumed;
            }
            let bytes = &input[consumed..];
            match connection.memcached.parse(bytes) {
                Progress::Incomplete { .. } => return consumed,
                Progress::Skipped { consumed: bytes } => consumed += bytes,
                Progress::Complete { consumed: request_bytes, request } => {
                    if self.shared.pause.paused().is_some_and(|paused| memcached::waits(paused, &request)) {
                        self.hold(number);
                        return consumed;
                    }
                    let line = &bytes[..request_bytes];
                    if connection.session.is_unrestricted() && memcached::is_lookup(&request) {
                        self.look_up_keys(number, &request, line);
                    } else if !self.execute_memcached(number, &request) {
                        self.connections[number].unprocessed = true;
                        return consumed;
                    }
                    consumed += request_bytes;
                    self.commands_in_round += 1;
                }
                Progress::Refused { consumed: bytes, refusal } => {
                    self.finish_gets(number);
                    let connection = &mut self.connections[number];
                    if connection.is_parked() || connection.broken {
                        connection.unprocessed = true;
                        return consumed;
                    }
                    consumed += bytes;
                    refusal.write(&mut connection.output);
                    if refusal.error.closes() {
                        connection.session.closing = true;
                        return input.len();
                    }
                    if let Some(key) = refusal.discard {
                        // Its reply is the line above.
                        self.execute_memcached(number, &Request::Delete { key, noreply: true });
                    }
                }
            }
        }
    }

    /// Looks the batch up if gets of this client are in it: their replies come first.
    fn finish_gets(&mut self, number: usize) {
        if self.connections[number].gets_queued > 0 {
            self.look_up();
        }
    }

    /// Adds the keys of a request to the batch.
    fn look_up_keys(&mut self, number: usize, request: &Request<'_>, line: &[u8]) {
        match request {
            Request::Get(get) => {
                let (with_cas, count) = (get.with_cas, get.keys.len());
                for (position, key) in get.keys.iter().enumerate() {
                    let is_last = position + 1 == count;
                    self.push(number, key.text(), b"", memcached::Form::Value { with_cas, is_last });
                    if self.connections[number].broken {
                        return;
                    }
                }
            }
            Request::MetaGet(get) => {
                let mut buffer = KeyBuffer::default();
                self.push(number, get.key.bytes(&mut buffer), line, memcached::Form::Meta);
            }
            _ => unreachable!("a lookup"),
        }
    }

    /// Adds a key to the batch, or to the next one if there is no room. A client whose replies grow beyond the limit
    /// meanwhile, because it has asked for many items by one request, is closed.
    fn push(&mut self, number: usize, key: &[u8], line: &[u8], form: memcached::Form) {
        if !self.batch.accepts(DATABASE) {
            self.look_up();
            let connection = &mut self.connections[number];
            connection.broken |= connection.pending_bytes() > self.shared.options.output_bytes_max;
        }
        self.batch.push(number, DATABASE, key, line, Form::Memcached(form));
        self.connections[number].gets_queued += 1;
    }

    /// Executes a request after the gets that came before it. Returns `false` if it must wait.
    fn execute_memcached(&mut self, number: usize, request: &Request<'_>) -> bool {
        self.finish_gets(number);
        let connection = &mut self.connections[number];
        if connection.is_parked() || connection.broken {
            return false;
        }
        let is_write = memcached::may_write(request);
        if is_write {
            self.writes.begin(&self.shared.commits);
        }
        let start = connection.output_end();
        let session = connection.session.id;
        let writer = Writer { shared: &self.shared, outbox: &mut self.outbox, session };
        memcached::execute(
            request,
            &mut Context {
                reply: Reply::new(&mut connection.output),
                session: &mut connection.session,
                shared: &self.shared,
                writer,
                counts: &mut self.batch.counts,
            },
        );
        if is_write {
            self.writes.add(number, connection.session.id, start..connection.output_end());
        }
        true
    }
}
