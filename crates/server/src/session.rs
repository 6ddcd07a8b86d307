//! What a client has told us about itself.

use std::net::SocketAddr;
use std::time::Instant;

use alluvium_protocol::Version;

/// The state of one connection that commands see and set.
#[derive(Debug)]
pub(crate) struct Session {
    /// Number of the connection, never used again.
    pub(crate) id: u64,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) opened: Instant,
    pub(crate) version: Version,
    pub(crate) name: Box<str>,
    pub(crate) library_name: Box<str>,
    pub(crate) library_version: Box<str>,
    /// The last command is answered by a count, which the worker must request.
    pub(crate) wants_count: bool,
    /// Answer no more requests, and close once the replies are sent.
    pub(crate) closing: bool,
}

impl Session {
    pub(crate) fn new(id: u64, peer: Option<SocketAddr>) -> Self {
        Self {
            id,
            peer,
            opened: Instant::now(),
            version: Version::default(),
            name: Box::default(),
            library_name: Box::default(),
            library_version: Box::default(),
            wants_count: false,
            closing: false,
        }
    }

    /// Resets the session to that of a new connection (`RESET`), but keeps the client library's name and version.
    pub(crate) fn reset(&mut self) {
        self.version = Version::default();
        self.name = Box::default();
    }
}

/// Whether `text` may be in a client list, which is separated by spaces and line ends: printable ASCII without spaces.
pub(crate) fn is_label(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_graphic)
}
