//! [`Listening`]: where clients connect.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

#[cfg(feature = "tls")]
use super::tls::{Identity, TlsStream};
use super::unix_socket::UnixSocket;
use super::{Endpoint, Stream};
use crate::protocol::Protocol;
use crate::{ServerError, ServerOptions};

/// A socket that does not block.
#[derive(Debug)]
enum Socket {
    Internet(TcpListener),
    Unix(UnixSocket),
    #[cfg(feature = "tls")]
    Encrypted(TcpListener, Identity),
}

/// A socket at which clients connect, and what they speak.
#[derive(Debug)]
pub(crate) struct Listening {
    socket: Socket,
    pub(crate) endpoint: Endpoint,
    pub(crate) protocol: Protocol,
}

impl Listening {
    /// Whether connections are encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        match &self.socket {
            Socket::Internet(_) | Socket::Unix(_) => false,
            #[cfg(feature = "tls")]
            Socket::Encrypted(..) => true,
        }
    }

    fn internet(listener: TcpListener, protocol: Protocol) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let endpoint = Endpoint::Internet(listener.local_addr()?);
        Ok(Self { socket: Socket::Internet(listener), endpoint, protocol })
    }

    /// The next connection that waits.
    ///
    /// # Errors
    /// `WouldBlock` if there is none.
    pub(crate) fn accept(&self) -> io::Result<(Stream, Endpoint)> {
        match &self.socket {
            Socket::Internet(listener) => {
                let (stream, peer) = listener.accept()?;
                Ok((Stream::Internet(stream), Endpoint::Internet(peer)))
            }
            #[cfg(feature = "tls")]
            Socket::Encrypted(listener, identity) => {
                let (socket, peer) = listener.accept()?;
                let stream = TlsStream::new(socket, identity.config())?;
                Ok((Stream::Encrypted(Box::new(stream)), Endpoint::Internet(peer)))
            }
            // Its clients have no names of their own.
            Socket::Unix(socket) => {
                let (stream, _) = socket.listener.accept()?;
                Ok((Stream::Unix(stream), Endpoint::Unix(Arc::clone(&socket.path))))
            }
        }
    }
}

impl AsFd for Listening {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Internet(listener) => listener.as_fd(),
            Socket::Unix(socket) => socket.listener.as_fd(),
            #[cfg(feature = "tls")]
            Socket::Encrypted(listener, _) => listener.as_fd(),
        }
    }
}

/// Where clients connect: first the main address, then the others that the options name.
///
/// # Errors
/// Addresses that are not allowed, or that the system refuses.
pub(crate) fn for_clients(
    options: &ServerOptions,
    opened: Option<TcpListener>,
) -> Result<Vec<Listening>, ServerError> {
    if opened.is_none() {
        // Refused before the system is asked.
        options.check()?;
    }
    let bind = |address| TcpListener::bind(address).map_err(ServerError::io(format!("listen on {address}")));
    let main = opened.map_or_else(|| bind(options.address), Ok)?;
    let failed = ServerError::io(format!("listen on {}", options.address));
    let main = Listening::internet(main, Protocol::Undecided).map_err(failed)?;
    if let Endpoint::Internet(address) = main.endpoint {
        options.check_address(address)?;
    }
    let mut all = vec![main];
    if let Some(address) = options.memcached_address {
        options.check_address(address)?;
        let failed = ServerError::io(format!("listen on {address}"));
        all.push(Listening::internet(bind(address)?, Protocol::Memcached).map_err(failed)?);
    }
    if let Some(path) = &options.unix_socket {
        let socket = UnixSocket::bind(path, options.unix_socket_mode);
        let socket = socket.map_err(ServerError::io(format!("listen at {}", path.display())))?;
        let endpoint = Endpoint::Unix(Arc::clone(&socket.path));
        all.push(Listening { socket: Socket::Unix(socket), endpoint, protocol: Protocol::Undecided });
    }
    #[cfg(feature = "tls")]
    if let Some(tls) = &options.tls {
        let failed = || ServerError::io(format!("listen for encrypted connections on {}", tls.address));
        let identity = Identity::load(tls.files.clone()).map_err(failed())?;
        let listener = bind(tls.address)?;
        listener.set_nonblocking(true).map_err(failed())?;
        let endpoint = Endpoint::Internet(listener.local_addr().map_err(failed())?);
        let socket = Socket::Encrypted(listener, identity);
        all.push(Listening { socket, endpoint, protocol: Protocol::Undecided });
    }
    Ok(all)
}

/// Where metrics are asked for, if anywhere.
///
/// # Errors
/// An address that is not allowed, or that the system refuses.
pub(crate) fn for_metrics(
    options: &ServerOptions,
    opened: Option<TcpListener>,
) -> Result<Option<TcpListener>, ServerError> {
    let failed = || ServerError::io("listen for requests of metrics");
    let listener = match (opened, options.metrics_address) {
        (Some(listener), _) => listener,
        (None, Some(address)) => {
            options.check()?;
            TcpListener::bind(address).map_err(failed())?
        }
        (None, None) => return Ok(None),
    };
    listener.set_nonblocking(true).map_err(failed())?;
    options.check_metrics_address(listener.local_addr().map_err(failed())?)?;
    Ok(Some(listener))
}
