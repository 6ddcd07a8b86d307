//! [`PlainDatagrams`]: one system call a datagram.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
#[cfg(unix)]
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use super::{Burst, Datagrams, Outgoing};

/// A UDP socket of the standard library.
#[derive(Debug)]
pub struct PlainDatagrams {
    socket: UdpSocket,
    address: SocketAddr,
}

impl PlainDatagrams {
    /// A socket at this address; port 0 lets the system choose.
    ///
    /// # Errors
    /// Those of the system.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        Ok(Self { socket, address })
    }
}

/// Whether a failed call says nothing about later ones: there is nothing to do now, or one peer is not there.
pub(super) fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock
            | ErrorKind::Interrupted
            | ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::NetworkDown
            | ErrorKind::PermissionDenied
            | ErrorKind::InvalidInput
            | ErrorKind::OutOfMemory
    )
}

/// Waits until a datagram has come, or for this long.
#[cfg(unix)]
pub(super) fn wait(socket: impl AsFd, timeout: Duration) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let timeout = Timespec { tv_sec: timeout.as_secs() as _, tv_nsec: timeout.subsec_nanos().into() };
    match poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Waits until a datagram has come, or for this long.
#[cfg(not(unix))]
pub(super) fn wait(socket: &UdpSocket, timeout: Duration) -> io::Result<()> {
    socket.set_nonblocking(false)?;
    socket.set_read_timeout(Some(timeout.max(Duration::from_millis(1))))?;
    let _ = socket.peek_from(&mut [0]);
    socket.set_nonblocking(true)
}

impl Datagrams for PlainDatagrams {
    fn receive_burst(&mut self, burst: &mut Burst) -> io::Result<usize> {
        burst.clear();
        while let Some(slot) = burst.next_slot() {
            match self.socket.recv_from(slot) {
                Ok((len, peer)) => burst.push(Some(peer), len, len),
                Err(error) if is_passing(&error) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(burst.len())
    }

    fn send_burst(&mut self, outgoing: &mut Outgoing) -> io::Result<usize> {
        let sent =
            outgoing.datagrams().filter(|(peer, bytes)| self.socket.send_to(bytes, peer).is_ok()).count();
        outgoing.clear();
        Ok(sent)
    }

    fn wait(&mut self, timeout: Duration) -> io::Result<()> {
        wait(&self.socket, timeout)
    }

    fn dropped(&self) -> u64 {
        0
    }

    fn local_address(&self) -> SocketAddr {
        self.address
    }
}

#[cfg(unix)]
impl AsFd for PlainDatagrams {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
