//! [`LongReply`]: a reply whose value is read from the store while the client reads it.

use std::io::Read;
use std::time::{Duration, Instant};

use crate::get_batch::Form;
use crate::store::{DatabaseNumber, LongValue};

/// Bytes that are read from the store at a time.
const PIECE_BYTES: usize = 64 << 10;
/// How long a client may take to read a value: this, and a second for each [`BYTES_PER_S_MIN`] bytes. Until then the
/// store keeps the value, also if it was overwritten.
const TIME_MIN: Duration = Duration::from_secs(60);
const BYTES_PER_S_MIN: usize = 64 << 10;

/// What of a value has not been sent.
pub(crate) struct LongReply {
    bytes: Box<dyn Read>,
    left: usize,
    /// What follows the value: the end of the reply, and messages that have come meanwhile.
    pub(crate) after: Vec<u8>,
    deadline: Instant,
}

impl LongReply {
    pub(crate) fn new(value: LongValue, end: &[u8]) -> Self {
        let time = TIME_MIN + Duration::from_secs((value.len / BYTES_PER_S_MIN) as u64);
        let deadline = Instant::now() + time;
        Self { bytes: value.bytes, left: value.len, after: end.to_vec(), deadline }
    }

    /// Appends the next bytes to `output`; returns whether there are no more. `None` if the store has failed: then the
    /// rest of the reply can't be sent.
    pub(crate) fn read_piece(&mut self, output: &mut Vec<u8>) -> Option<bool> {
        let (start, bytes) = (output.len(), self.left.min(PIECE_BYTES));
        output.resize(start + bytes, 0);
        if self.bytes.read_exact(&mut output[start..]).is_err() {
            return None;
        }
        self.left -= bytes;
        if self.left == 0 {
            output.append(&mut self.after);
        }
        Some(self.left == 0)
    }

    /// Whether the client has taken too long.
    pub(crate) fn is_overdue(&self, now: Instant) -> bool {
        now >= self.deadline
    }
}

/// A get that waits: for the end of a long reply to its client, or for memory.
pub(crate) struct DeferredGet {
    pub(crate) database: DatabaseNumber,
    pub(crate) form: Form,
    /// The key, and the line of the request.
    bytes: Box<[u8]>,
    key_bytes: usize,
}

impl DeferredGet {
    pub(crate) fn new(database: DatabaseNumber, form: Form, key: &[u8], line: &[u8]) -> Self {
        Self { database, form, bytes: [key, line].concat().into(), key_bytes: key.len() }
    }

    pub(crate) fn key(&self) -> &[u8] {
        &self.bytes[..self.key_bytes]
    }

    pub(crate) fn line(&self) -> &[u8] {
        &self.bytes[self.key_bytes..]
    }

    pub(crate) fn held_bytes(&self) -> usize {
        size_of::<Self>() + self.bytes.len()
    }
}
