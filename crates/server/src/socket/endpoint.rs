//! [`Endpoint`]: one end of a connection.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

/// An address, or the file of a Unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Internet(SocketAddr),
    Unix(Arc<Path>),
}

impl Endpoint {
    pub(crate) fn is_unix(&self) -> bool {
        matches!(self, Self::Unix(_))
    }
}

/// As client lists name it: Redis gives Unix sockets the port 0.
impl fmt::Display for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Internet(address) => address.fmt(out),
            Self::Unix(path) => write!(out, "{}:0", path.display()),
        }
    }
}
