//! [`RoundWrites`]: the writes of a worker's round, which one commit makes durable together.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::connections::Connections;
use crate::store::Store;

/// The replies to a round's writes. They are in the connections' buffers, and are sent after the commit.
#[derive(Debug, Default)]
pub(crate) struct RoundWrites {
    /// In the order of execution, so those of one connection ascend.
    replies: Vec<WriteReply>,
    is_begun: bool,
}

/// Where the reply to a write is in its connection's buffer.
#[derive(Debug)]
struct WriteReply {
    connection: usize,
    bytes: Range<usize>,
}

impl RoundWrites {
    /// Must be called before a write of the round is executed. `writers` counts the workers that have writes without a
    /// commit.
    pub(crate) fn begin(&mut self, writers: &AtomicUsize) {
        if !self.is_begun {
            self.is_begun = true;
            writers.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Notes the reply to a write.
    pub(crate) fn add(&mut self, connection: usize, bytes: Range<usize>) {
        self.replies.push(WriteReply { connection, bytes });
    }

    /// Makes the round's writes durable, and those of other workers that its reads may have seen: otherwise a client
    /// could be told what a crash takes away. If that fails, the replies to writes become errors.
    ///
    /// A round that has only read waits for nothing unless another worker is about to commit. Returns when the
    /// commit began, if there was one.
    pub(crate) fn commit(
        &mut self,
        connections: &mut Connections,
        store: &dyn Store,
        writers: &AtomicUsize,
    ) -> Option<Instant> {
        if !self.is_begun && writers.load(Ordering::Acquire) == 0 {
            return None;
        }
        let begun = Instant::now();
        let outcome = store.commit();
        if std::mem::take(&mut self.is_begun) {
            writers.fetch_sub(1, Ordering::AcqRel);
        }
        if let Err(error) = outcome {
            // From back to front: what comes after a reply moves with it.
            for WriteReply { connection, bytes } in self.replies.drain(..).rev() {
                connections[connection].replace_by_error(bytes, &error);
            }
        }
        self.replies.clear();
        Some(begun)
    }
}

#[cfg(test)]
#[path = "round_writes_test.rs"]
mod tests;
