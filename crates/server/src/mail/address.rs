//! [`Address`]: how to reach a client from any thread.

use std::fmt;
use std::sync::Arc;

use crate::inbox::Inbox;

/// How to reach a client from any thread.
#[derive(Clone)]
pub(crate) struct Address {
    /// The inbox of its worker.
    pub(crate) inbox: Arc<Inbox>,
    /// Number of its connection at the worker. Another client may have the number after it: see `session`.
    pub(crate) connection: usize,
    /// Number of its session.
    pub(crate) session: u64,
}

impl fmt::Debug for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Address({}, {})", self.connection, self.session)
    }
}
