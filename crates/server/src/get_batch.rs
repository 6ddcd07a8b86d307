//! Gets of all ready connections, looked up together.
//!
//! One flash read takes as long as sixteen at a time, so a worker collects the gets it meets, across pipelines and
//! across clients, and asks the store once. A client's other commands wait for its gets: replies keep their order.
//! Between clients there is no order to keep, since none of the batch has been answered.

use crate::client_memory::ClientMemory;
use crate::connection::Connection;
use crate::connections::Connections;
use crate::long_reply::{DeferredGet, LongReply};
use crate::memcached::{self, Lookup};
use crate::store::{DatabaseNumber, Found, FoundOrLong, Kind, STREAM_BYTES, Store, WrongType};

#[cfg(test)]
#[path = "get_batch_test.rs"]
pub(crate) mod tests;

/// Maximum number of gets in a batch: enough to keep a flash device busy, with some to spare for keys found in memory.
const GETS_MAX: usize = 128;

/// Maximum number of bytes of keys in a batch. The last key may cross it.
const KEY_BYTES_MAX: usize = 1 << 20;

struct Get {
    connection: u32,
    key_start: u32,
    key_bytes: u32,
    /// Bytes of the request's line, which follow the key if the reply needs them.
    line_bytes: u32,
    form: Form,
}

/// How the outcome of a get is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The reply to `GET` of Redis.
    Bulk,
    /// A reply in memcached's protocols.
    Memcached(memcached::Form),
}

impl Get {
    #[inline]
    fn key<'a>(&self, keys: &'a [u8]) -> &'a [u8] {
        &keys[self.key_start as usize..][..self.key_bytes as usize]
    }

    /// Writes what comes before a long value, and returns what comes after it.
    fn begin_long(
        &self,
        keys: &[u8],
        connection: &mut Connection,
        flags: u32,
        len: usize,
        counts: &mut memcached::Counts,
    ) -> &'static [u8] {
        match self.form {
            Form::Bulk => {
                connection.reply().bulk_header(len);
                b"\r\n"
            }
            Form::Memcached(form) => {
                form.begin_long(self.key(keys), flags, len, counts, connection.memcached_reply())
            }
        }
    }

    fn line<'a>(&self, keys: &'a [u8]) -> &'a [u8] {
        &keys[(self.key_start + self.key_bytes) as usize..][..self.line_bytes as usize]
    }
}

/// Bytes that a reply needs, and whether its value is streamed. Where the reply tells the CAS identifier, which is a
/// digest, the whole value must be read before.
#[inline]
fn needed(form: Form, found: Option<&FoundOrLong<'_>>) -> (usize, bool) {
    match found {
        None => (0, false),
        Some(FoundOrLong::Found(found)) => (found.value.len(), false),
        Some(FoundOrLong::Long(long)) => match form {
            Form::Bulk | Form::Memcached(memcached::Form::Value { with_cas: false, .. }) => {
                (STREAM_BYTES, true)
            }
            Form::Memcached(_) => (2 * long.len, false),
        },
    }
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LookedUp {
    pub(crate) gets: u64,
    /// Gets that found no item.
    pub(crate) absent: u64,
    /// Gets that were answered by an error.
    pub(crate) failed: u64,
}

/// Gets that were read and not yet looked up. Holds copies of the keys, because the input buffer is reused for the next
/// client.
#[derive(Default)]
pub(crate) struct GetBatch {
    /// The database of all of them.
    database: DatabaseNumber,
    gets: Vec<Get>,
    keys: Vec<u8>,
    /// Requests of memcached clients since the last round.
    pub(crate) counts: memcached::Counts,
}

impl GetBatch {
    /// Whether a get of `database` can be added: the batch has room, and no gets of another database.
    #[inline]
    pub(crate) fn accepts(&self, database: DatabaseNumber) -> bool {
        self.gets.is_empty() || (self.database == database && !self.is_full())
    }

    /// Adds a get that the batch accepts, with the line of its request if the reply needs that.
    #[inline]
    pub(crate) fn push(
        &mut self,
        connection: usize,
        database: DatabaseNumber,
        key: &[u8],
        line: &[u8],
        form: Form,
    ) {
        self.database = database;
        self.gets.push(Get {
            connection: connection as u32,
            key_start: self.keys.len() as u32,
            key_bytes: key.len() as u32,
            line_bytes: line.len() as u32,
            form,
        });
        self.keys.extend_from_slice(key);
        self.keys.extend_from_slice(line);
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.gets.len() == GETS_MAX || self.keys.len() > KEY_BYTES_MAX
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.gets.is_empty()
    }

    /// Looks all gets up, appends their replies to their connections, and empties the batch. A connection whose unread
    /// replies grow beyond `output_bytes_max` is given up. A get that `memory` has no room for is deferred, and so are
    /// those of the client after it.
    pub(crate) fn execute(
        &mut self,
        connections: &mut Connections,
        store: &dyn Store,
        memory: &ClientMemory,
        output_bytes_max: usize,
    ) -> LookedUp {
        let mut outcome = LookedUp { gets: self.gets.len() as u64, ..LookedUp::default() };
        if self.gets.is_empty() {
            return outcome;
        }
        let mut keys: [&[u8]; GETS_MAX] = [&[]; GETS_MAX];
        for (key, get) in keys.iter_mut().zip(&self.gets) {
            *key = get.key(&self.keys);
        }
        let (mut answered, mut deferred) = (0, 0);
        let mut claims = Vec::new();
        let database = store.database(self.database);
        let found =
            database.get_many_or_long(&keys[..self.gets.len()], &mut |_| true, &mut |position, found| {
                debug_assert_eq!(position, answered);
                answered += 1;
                let get = &self.gets[position];
                let connection = &mut connections[get.connection as usize];
                connection.gets_queued -= 1;
                if connection.broken {
                    return;
                }
                let (bytes, is_streamed) = needed(get.form, found.as_ref());
                if bytes > output_bytes_max {
                    outcome.failed += 1;
                    connection.give_up();
                    return;
                }
                let is_behind = connection.long.is_some() || !connection.deferred.is_empty();
                if is_behind || !connection.reserve(bytes, memory) {
                    if !is_behind {
                        connection.wait_for(bytes);
                    }
                    let (key, line) = (get.key(&self.keys), get.line(&self.keys));
                    connection.deferred.push_back(DeferredGet::new(self.database, get.form, key, line));
                    deferred += 1;
                    return;
                }
                outcome.absent += u64::from(found.is_none());
                let mut value = Vec::new();
                let found = match found {
                    None => None,
                    Some(FoundOrLong::Found(found)) => Some(found),
                    Some(FoundOrLong::Long(long)) if is_streamed => {
                        let end =
                            get.begin_long(&self.keys, connection, long.flags, long.len, &mut self.counts);
                        connection.long = Some(Box::new(LongReply::new(long, end)));
                        return;
                    }
                    Some(FoundOrLong::Long(long)) => {
                        let (flags, expires_at_ms, mark) = (long.flags, long.expires_at_ms, long.mark);
                        if long.read_into(&mut value).is_err() {
                            connection.give_up();
                            return;
                        }
                        Some(Found { kind: Kind::String, value: &value, flags, expires_at_ms, mark })
                    }
                };
                match (get.form, found) {
                    (Form::Bulk, Some(found)) if found.kind != Kind::String => {
                        outcome.failed += 1;
                        connection.reply().error(WrongType::TEXT);
                    }
                    (Form::Bulk, found) => connection.reply().optional_bulk(found.map(|found| found.value)),
                    (Form::Memcached(form), found) => {
                        let lookup = Lookup { form, key: get.key(&self.keys), line: get.line(&self.keys) };
                        if let Some(claim) =
                            lookup.answer(found, &mut self.counts, connection.memcached_reply())
                        {
                            claims.push((position, claim));
                        }
                    }
                }
                connection.bound_output(output_bytes_max);
            });
        outcome.failed += outcome.gets - answered as u64;
        outcome.gets -= deferred;
        // The store must not be written to before.
        for (position, claim) in claims {
            let get = &self.gets[position];
            let connection = &mut connections[get.connection as usize];
            if !connection.broken {
                claim.decide(get.key(&self.keys), database, &mut connection.output);
            }
        }
        // A prefix was answered before the failure; the others get the error.
        for get in &self.gets[answered..] {
            let connection = &mut connections[get.connection as usize];
            connection.gets_queued -= 1;
            let text = match &found {
                Err(error) => error.to_string(),
                Ok(()) => "the store gave no answer".to_owned(),
            };
            match get.form {
                Form::Bulk => connection.reply().error(format!("ERR {text}")),
                Form::Memcached(form) => form.fail(&text, connection.memcached_reply()),
            }
        }
        self.gets.clear();
        self.keys.clear();
        self.keys.shrink_to(2 * KEY_BYTES_MAX);
        outcome
    }
}
