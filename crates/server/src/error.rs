//! Why a server does not start or stops.

use std::fmt;
use std::io;
use std::net::SocketAddr;

/// What went wrong with the server as a whole; errors of single requests are answered to their clients.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServerError {
    /// The address can be reached from other machines: choose a loopback address, or set a
    /// [`password`](crate::ServerOptions::password) or [`allow_remote`](crate::ServerOptions::allow_remote).
    RemoteAddress(SocketAddr),
    /// The address of metrics can be reached from other machines, and metrics have no password: choose a loopback
    /// address, or set [`allow_remote`](crate::ServerOptions::allow_remote).
    RemoteMetricsAddress(SocketAddr),
    /// Letters of which one names no events: see [`keyspace_events`](crate::ServerOptions::keyspace_events).
    KeyspaceEvents(String),
    /// The system refused an operation: most often the port is taken, or not ours to take.
    Io {
        /// What was being done.
        doing: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The file of users is wrong, or could not be read.
    Users(String),
    /// Datagrams cannot be served with these options or from this store.
    Datagrams(&'static str),
    /// The store could not be opened for serving.
    Store(crate::StoreError),
    /// A worker thread ended by a panic, which is a bug; the others were stopped.
    WorkerPanicked,
}

impl ServerError {
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source }
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RemoteAddress(address) => write!(
                out,
                "{address} can be reached from other machines and there is no password: listen on 127.0.0.1 or ::1, \
                 set a password, or allow remote clients explicitly"
            ),
            Self::RemoteMetricsAddress(address) => write!(
                out,
                "{address} can be reached from other machines, and metrics have no password: use 127.0.0.1 or ::1, or \
                 allow remote clients explicitly"
            ),
            Self::KeyspaceEvents(letters) => {
                write!(out, "'{letters}' names no events about keys: use letters of Ag$lshzxeKEtmdn")
            }
            Self::Io { doing, source } => write!(out, "cannot {doing}: {source}"),
            Self::Users(reason) => out.write_str(reason),
            Self::Datagrams(reason) => out.write_str(reason),
            Self::Store(source) => write!(out, "cannot open the store: {source}"),
            Self::WorkerPanicked => out.write_str("a worker thread panicked; the server was stopped"),
        }
    }
}

impl std::error::Error for ServerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Store(source) => Some(source.as_ref()),
            Self::RemoteAddress(_)
            | Self::RemoteMetricsAddress(_)
            | Self::KeyspaceEvents(_)
            | Self::Users(_)
            | Self::Datagrams(_)
            | Self::WorkerPanicked => None,
        }
    }
}
