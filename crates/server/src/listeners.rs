//! [`Listeners`]: sockets that a service manager has opened.

use std::net::TcpListener;

/// Sockets that listen already, and are used instead of the addresses in [`ServerOptions`](crate::ServerOptions).
#[derive(Debug, Default)]
pub struct Listeners {
    /// Where clients connect.
    pub clients: Option<TcpListener>,
    /// Where metrics are asked for.
    pub metrics: Option<TcpListener>,
}
