//! Gets of all ready connections, looked up together.
//!
//! One flash read takes as long as sixteen at a time, so a worker collects the gets it meets, across pipelines and
//! across clients, and asks the store once. A client's other commands wait for its gets: replies keep their order.
//! Between clients there is no order to keep, since none of the batch has been answered.

use crate::connections::Connections;
use crate::store::{DatabaseNumber, Kind, Store, WrongType};

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
}

impl GetBatch {
    /// Whether a get of `database` can be added: the batch has room, and no gets of another database.
    #[inline]
    pub(crate) fn accepts(&self, database: DatabaseNumber) -> bool {
        self.gets.is_empty() || (self.database == database && !self.is_full())
    }

    /// Adds a get that the batch accepts.
    #[inline]
    pub(crate) fn push(&mut self, connection: usize, database: DatabaseNumber, key: &[u8]) {
        self.database = database;
        self.gets.push(Get {
            connection: connection as u32,
            key_start: self.keys.len() as u32,
            key_bytes: key.len() as u32,
        });
        self.keys.extend_from_slice(key);
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.gets.len() == GETS_MAX || self.keys.len() > KEY_BYTES_MAX
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.gets.is_empty()
    }

    /// Looks all gets up, appends their replies to their connections, and empties the batch.
    pub(crate) fn execute(&mut self, connections: &mut Connections, store: &dyn Store) -> LookedUp {
        let mut outcome = LookedUp { gets: self.gets.len() as u64, ..LookedUp::default() };
        if self.gets.is_empty() {
            return outcome;
        }
        let mut keys: [&[u8]; GETS_MAX] = [&[]; GETS_MAX];
        for (key, get) in keys.iter_mut().zip(&self.gets) {
            *key = &self.keys[get.key_start as usize..][..get.key_bytes as usize];
        }
        let mut answered = 0;
        let database = store.database(self.database);
        let found = database.get_many(&keys[..self.gets.len()], &mut |position, found| {
            debug_assert_eq!(position, answered);
            answered += 1;
            outcome.absent += u64::from(found.is_none());
            let connection = &mut connections[self.gets[position].connection as usize];
            connection.gets_queued -= 1;
            match found {
                Some(found) if found.kind != Kind::String => {
                    outcome.failed += 1;
                    connection.reply().error(WrongType::TEXT);
                }
                found => connection.reply().optional_bulk(found.map(|found| found.value)),
            }
        });
        outcome.failed += outcome.gets - answered as u64;
        // A prefix was answered before the failure; the others get the error.
        for get in &self.gets[answered..] {
            let connection = &mut connections[get.connection as usize];
            connection.gets_queued -= 1;
            connection.reply().error(match &found {
                Err(error) => format!("ERR {error}"),
                Ok(()) => "ERR the store gave no answer".to_owned(),
            });
        }
        self.gets.clear();
        self.keys.clear();
        self.keys.shrink_to(2 * KEY_BYTES_MAX);
        outcome
    }
}
