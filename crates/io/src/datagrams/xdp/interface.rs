//! [`Interface`]: a network interface with our program in it.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};

use super::super::frame::{ETHERNET_BYTES, Unfinished};
use super::FRAME_BYTES_MAX;
use super::program::{Purpose, program};
use super::system_calls::{self, MapKind, Place, attach, create_map, load, set_entry};
use crate::sync;

/// Why frames cannot be received past the network stack.
#[derive(Debug)]
pub enum XdpError {
    /// Packets to this address do not come from a network, or there may be several such addresses. It must be one
    /// address of the interface.
    Address(SocketAddr),
    /// A step failed. It needs rights (`CAP_NET_ADMIN`, `CAP_NET_RAW`, `CAP_BPF`), Linux 5.9 or newer, and an interface
    /// of this name that has no such program yet.
    System {
        /// What was to be done.
        step: &'static str,
        /// What the system says.
        error: io::Error,
    },
}

impl fmt::Display for XdpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => {
                write!(f, "{} is not the address of one network interface", address.ip())
            }
            Self::System { step, error } => write!(f, "cannot {step}: {error}"),
        }
    }
}

impl std::error::Error for XdpError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Address(_) => None,
            Self::System { error, .. } => Some(error),
        }
    }
}

impl XdpError {
    /// For `map_err`: what was to be done.
    pub(super) fn at<E: Into<io::Error>>(step: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::System { step, error: error.into() }
    }
}

/// A network interface with our program in it, which is there for as long as this value is.
#[derive(Debug)]
pub(super) struct Interface {
    index: u32,
    place: Place,
    packet_bytes_max: usize,
    ports: OwnedFd,
    sockets: OwnedFd,
    /// Puts the program out of the interface when it is closed.
    _link: OwnedFd,
}

impl Interface {
    /// Puts the program into the interface of this name, in the driver if it can. It passes all frames on until a queue
    /// is directed.
    pub(super) fn open(name: &str, address: SocketAddr, queues: u32) -> Result<Self, XdpError> {
        let ip = address.ip();
        if ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() {
            return Err(XdpError::Address(address));
        }
        // Any socket serves to ask.
        let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
            .map_err(XdpError::at("open a socket"))?;
        let index = netdevice::name_to_index(&socket, name).map_err(XdpError::at("find the interface"))?;
        let packet_bytes_max = system_calls::packet_bytes_max(socket.as_fd(), name)
            .map_err(XdpError::at("ask for the length of its packets"))?
            .min(FRAME_BYTES_MAX - ETHERNET_BYTES);
        let ports =
            create_map(MapKind::Numbers, queues).map_err(XdpError::at("create a map for a program"))?;
        let sockets =
            create_map(MapKind::Sockets, queues).map_err(XdpError::at("create a map for a program"))?;
        let put = |place| {
            let program =
                load_for(address, place, &ports, &sockets).map_err(XdpError::at("load a program"))?;
            let link = patiently(|| attach(program.as_fd(), index, place));
            link.map_err(XdpError::at("put a program into the interface"))
        };
        let (place, link) = match put(Place::Driver) {
            Ok(link) => (Place::Driver, link),
            // A driver that has no place for programs, or none for packets of this length.
            Err(_) => (Place::Stack, put(Place::Stack)?),
        };
        Ok(Self { index, place, packet_bytes_max, ports, sockets, _link: link })
    }

    /// Gives datagrams for a port that come in this queue to a socket.
    pub(super) fn direct(&self, queue: u32, port: u16, socket: BorrowedFd<'_>) -> io::Result<()> {
        let port = u16::from_ne_bytes(port.to_be_bytes());
        set_entry(self.ports.as_fd(), queue, port.into())?;
        set_entry(self.sockets.as_fd(), queue, socket.as_raw_fd() as u32)
    }

    pub(super) fn index(&self) -> u32 {
        self.index
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }

    /// The program for any place, to be run by tests.
    #[cfg(test)]
    pub(super) fn program(&self, address: SocketAddr, place: Place) -> io::Result<OwnedFd> {
        load_for(address, place, &self.ports, &self.sockets)
    }

    /// Maximum bytes of a packet that has room in the interface and in our frames, the header of Ethernet excluded.
    pub(super) fn packet_bytes_max(&self) -> usize {
        self.packet_bytes_max
    }

    /// Whether frames with unfinished checksums may be taken for what they seem.
    pub(super) fn unfinished(&self) -> Unfinished {
        unfinished(self.place)
    }
}

/// The program with these maps.
fn load_for(address: SocketAddr, place: Place, ports: &OwnedFd, sockets: &OwnedFd) -> io::Result<OwnedFd> {
    load(&program(Purpose {
        address,
        leaves_unfinished: unfinished(place) == Unfinished::Refuse,
        ports: ports.as_raw_fd(),
        sockets: sockets.as_raw_fd(),
    }))
}

/// Calls `take` again, for a fifth of a second, while what it takes is in use: what a process had that has just ended,
/// the kernel gives back a little later.
pub(super) fn patiently<T>(mut take: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..20 {
        match take() {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                sync::thread::sleep(Duration::from_millis(10));
            }
            outcome => return outcome,
        }
    }
    take()
}

/// The kernel joins frames between the driver and the entrance of its network stack.
fn unfinished(place: Place) -> Unfinished {
    match place {
        Place::Driver => Unfinished::Accept,
        Place::Stack => Unfinished::Refuse,
    }
}
