//! A request that is answered with an error line.

use super::{Error, Key};

/// Why a request is not carried out, and how to answer it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal<'a> {
    /// The error, which tells the line and whether the connection must close.
    pub error: Error,
    /// Whether the request ends in `noreply`, which in the classic protocol hides error lines too.
    pub is_silent: bool,
    /// A key whose item must be deleted: its new value is refused as too large, and readers must not take the old value
    /// for the new one. Set for `set` and `ms`, as in memcached.
    pub discard: Option<Key<'a>>,
}

impl Refusal<'_> {
    pub(super) fn new(error: Error) -> Self {
        Self { error, is_silent: false, discard: None }
    }

    pub(super) fn silent_if(error: Error, is_silent: bool) -> Self {
        Self { error, is_silent, discard: None }
    }

    /// Appends the line with its CR LF to `out`; nothing if the refusal is silent or has no line.
    pub fn write(&self, out: &mut Vec<u8>) {
        let text = self.error.text();
        if !self.is_silent && !text.is_empty() {
            out.extend_from_slice(text.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }
}
