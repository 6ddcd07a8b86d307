//! [`QueuedCommands`]: the commands between `MULTI` and `EXEC`.

use alluvium_protocol::{Arguments, request};

/// Commands that wait for `EXEC`.
#[derive(Debug, Default)]
pub(crate) struct QueuedCommands {
    /// As requests, one behind the other.
    pub(crate) frames: Vec<u8>,
    pub(crate) len: usize,
    /// A command was refused: `EXEC` will execute none.
    pub(crate) has_failed: bool,
    /// Whether one of them writes.
    pub(crate) has_writes: bool,
}

impl QueuedCommands {
    /// Adds a command, unless they would take more than `bytes_max` bytes: then returns `false`.
    pub(crate) fn push(&mut self, arguments: Arguments<'_>, is_write: bool, bytes_max: usize) -> bool {
        let before = self.frames.len();
        let words: Vec<&[u8]> = arguments.iter().collect();
        request::encode(&words, &mut self.frames);
        if self.frames.len() > bytes_max {
            self.frames.truncate(before);
            return false;
        }
        self.len += 1;
        self.has_writes |= is_write;
        true
    }
}
