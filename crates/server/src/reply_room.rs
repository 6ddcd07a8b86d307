//! [`ReplyRoom`]: how long the reply to one command may become.

use std::cell::Cell;

use alluvium_protocol::Room;

use crate::client_memory::ClientMemory;

/// Bytes of a command's reply that are charged only when it is written, and of steps of longer ones.
const STEP_BYTES: usize = 64 << 10;

/// Charges a reply while it grows.
pub(crate) struct ReplyRoom<'a> {
    memory: &'a ClientMemory,
    /// Length that the buffer may have without another charge.
    granted: Cell<usize>,
    /// Length that it may have at most.
    end_max: usize,
    charged: Cell<usize>,
    /// Bytes of the part of the reply for which there was no room.
    needed: Cell<usize>,
    start: usize,
    state: Cell<RoomState>,
}

/// Whether a reply had room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoomState {
    Enough,
    /// Other clients hold the memory.
    Waits,
    /// The reply is longer than any may be.
    TooLong,
}

impl<'a> ReplyRoom<'a> {
    /// For a reply of up to `bytes_max` bytes in a buffer that has `buffered` bytes.
    pub(crate) fn new(memory: &'a ClientMemory, buffered: usize, bytes_max: usize) -> Self {
        Self {
            memory,
            granted: Cell::new(buffered + STEP_BYTES.min(bytes_max)),
            end_max: buffered + bytes_max,
            charged: Cell::new(0),
            needed: Cell::new(0),
            start: buffered,
            state: Cell::new(RoomState::Enough),
        }
    }

    pub(crate) fn state(&self) -> RoomState {
        self.state.get()
    }

    /// Bytes that were charged.
    pub(crate) fn charged(&self) -> usize {
        self.charged.get()
    }

    /// Minimum bytes that must become free before it is worth another attempt.
    pub(crate) fn needed(&self) -> usize {
        self.needed.get()
    }

    /// Charges bytes that executing the command takes, beside its reply.
    pub(crate) fn admit_work(&self, bytes: usize) -> RoomState {
        if bytes > self.memory.one_bytes_max() {
            return RoomState::TooLong;
        }
        if !self.memory.try_charge(bytes) {
            self.needed.set(bytes);
            return RoomState::Waits;
        }
        self.charged.set(self.charged.get() + bytes);
        RoomState::Enough
    }

    #[cold]
    fn extend(&self, bytes: usize) -> bool {
        if bytes > self.end_max {
            self.state.set(RoomState::TooLong);
            return false;
        }
        let end = (bytes + STEP_BYTES).min(self.end_max);
        let more = end - self.granted.get();
        if !self.memory.try_charge(more) {
            self.state.set(RoomState::Waits);
            self.needed.set(bytes - self.start);
            return false;
        }
        self.charged.set(self.charged.get() + more);
        self.granted.set(end);
        true
    }
}

impl Room for ReplyRoom<'_> {
    #[inline]
    fn admits(&self, bytes: usize) -> bool {
        self.state.get() == RoomState::Enough && (bytes <= self.granted.get() || self.extend(bytes))
    }
}
