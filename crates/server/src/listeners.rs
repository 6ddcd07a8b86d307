//! [`Listeners`]: sockets that a service manager has opened.

use std::io;
use std::net::{SocketAddr, TcpListener};

use crate::{ServerError, ServerOptions};

/// Sockets that listen already, and are used instead of the addresses in [`ServerOptions`].
#[derive(Debug, Default)]
pub struct Listeners {
    /// Where clients connect.
    pub clients: Option<TcpListener>,
    /// Where metrics are asked for.
    pub metrics: Option<TcpListener>,
}

/// A socket that does not block, with its address.
pub(crate) struct Listening {
    pub(crate) listener: TcpListener,
    pub(crate) address: SocketAddr,
}

impl Listening {
    fn new(listener: TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Where clients connect.
    pub(crate) fn for_clients(
        options: &ServerOptions,
        opened: Option<TcpListener>,
    ) -> Result<Self, ServerError> {
        let address = options.address;
        let listening = match opened {
            Some(listener) => Self::new(listener),
            // Refused before the system is asked.
            None => options.check().and(Ok(TcpListener::bind(address).and_then(Self::new)))?,
        };
        let listening = listening.map_err(ServerError::io(format!("listen on {address}")))?;
        options.check_address(listening.address)?;
        Ok(listening)
    }

    /// Where memcached clients alone connect, if anywhere.
    pub(crate) fn for_memcached(options: &ServerOptions) -> Result<Option<Self>, ServerError> {
        let Some(address) = options.memcached_address else { return Ok(None) };
        options.check_address(address)?;
        let listening = TcpListener::bind(address).and_then(Self::new);
        listening.map(Some).map_err(ServerError::io(format!("listen on {address}")))
    }

    /// Where metrics are asked for, if anywhere.
    pub(crate) fn for_metrics(
        options: &ServerOptions,
        opened: Option<TcpListener>,
    ) -> Result<Option<Self>, ServerError> {
        let listening = match (opened, options.metrics_address) {
            (Some(listener), _) => Self::new(listener),
            (None, Some(address)) => {
                options.check().and(Ok(TcpListener::bind(address).and_then(Self::new)))?
            }
            (None, None) => return Ok(None),
        };
        let listening = listening.map_err(ServerError::io("listen for requests of metrics"))?;
        options.check_metrics_address(listening.address)?;
        Ok(Some(listening))
    }
}
