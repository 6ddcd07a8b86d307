//! The sockets of a server's workers.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use alluvium_io::SystemClock;
#[cfg(target_os = "linux")]
use alluvium_io::datagrams::XdpQueues;
use alluvium_io::datagrams::{Datagrams as _, ServerDatagrams};

use super::{Directing, Handing, Way};
use crate::{ServerError, ServerOptions, Store};

/// The socket of a worker, and its ends of the rings where requests are handed over, if they are.
pub(crate) type WorkerSocket = (ServerDatagrams, Option<Handing>);

/// The sockets of all workers, in their order, and what they tell clients.
pub(crate) struct Bound {
    pub(crate) sockets: Vec<WorkerSocket>,
    pub(crate) directing: Arc<Directing>,
}

/// Checks whether datagrams may be served with these options.
///
/// # Errors
/// [`ServerError::Datagrams`] where there are users or passwords, which datagrams do not have, and
/// [`ServerError::RemoteAddress`].
pub(crate) fn check(options: &ServerOptions) -> Result<(), ServerError> {
    if options.udp_port.is_none() {
        return Ok(());
    }
    if options.password.is_some() || options.acl_file.is_some() {
        return Err(ServerError::Datagrams(
            "datagrams carry no password, so they cannot be served beside one",
        ));
    }
    options.check_address(options.address)
}

/// Binds a socket for each worker, if the options ask for datagrams: to the port of the options and those that follow
/// it, or to ports of the system's choice.
///
/// # Errors
/// As [`check`], a store that is no cache, and ports that are in use.
pub(crate) fn bind(
    options: &ServerOptions,
    store: &dyn Store,
    ip: IpAddr,
) -> Result<Option<Bound>, ServerError> {
    let Some(port) = options.udp_port else { return Ok(None) };
    check(options)?;
    if store.is_stored() {
        return Err(ServerError::Datagrams("datagrams are served from a cache only"));
    }
    let mut sockets = Vec::new();
    for number in 0..options.workers.get() {
        let port = match (port, u16::try_from(number).ok().and_then(|number| port.checked_add(number))) {
            (0, _) => 0,
            (_, Some(port)) => port,
            (_, None) => {
                return Err(ServerError::Datagrams("there are not enough ports after that of datagrams"));
            }
        };
        let address = SocketAddr::new(ip, port);
        let socket = ServerDatagrams::bind(address)
            .map_err(ServerError::io(format!("receive datagrams at {address}")))?;
        sockets.push(socket);
    }
    if let Some(interface) = &options.udp_interface {
        receive_frames(&mut sockets, interface);
    }
    let addresses: Vec<SocketAddr> = sockets.iter().map(|socket| socket.local_address()).collect();
    let way = Way { mode: options.udp_mode, hands_over: options.udp_hands_over };
    let (clock, seed) = (Arc::new(SystemClock::default()), store.direction_seed());
    let directing = Arc::new(Directing::new(&addresses, way, clock, seed));
    let handing: Vec<Option<Handing>> = if options.udp_hands_over {
        Handing::between(sockets.len()).into_iter().map(Some).collect()
    } else {
        sockets.iter().map(|_| None).collect()
    };
    Ok(Some(Bound { sockets: sockets.into_iter().zip(handing).collect(), directing }))
}

/// Lets the sockets receive frames of this interface. Where that is not possible, datagrams come by the sockets alone.
#[cfg(target_os = "linux")]
fn receive_frames(sockets: &mut [ServerDatagrams], interface: &str) {
    match alluvium_io::datagrams::receive_frames(sockets, interface) {
        Ok(XdpQueues { queues, is_in_driver, is_zero_copy }) => tracing::info!(
            interface,
            queues,
            workers = sockets.len(),
            driver = is_in_driver,
            zero_copy = is_zero_copy,
            "datagrams come in frames of the interface"
        ),
        Err(error) => {
            tracing::warn!(interface, %error, "datagrams come by sockets: no frames of the interface")
        }
    }
}

/// Says that datagrams come by the sockets alone.
#[cfg(not(target_os = "linux"))]
fn receive_frames(_sockets: &mut [ServerDatagrams], interface: &str) {
    tracing::warn!(interface, "datagrams come by sockets: this system has no AF_XDP");
}
