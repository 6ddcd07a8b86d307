//! [`BurstSocket`]: a UDP socket with `recvmmsg`, `sendmmsg`, and trains where the system has them.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use super::outgoing::Train;
use super::plain::{is_passing, wait};
use super::{Burst, Datagrams, Outgoing, SOCKET_BUFFER_BYTES, system_calls};

/// A UDP socket that receives and sends bursts.
#[derive(Debug)]
pub struct BurstSocket {
    socket: UdpSocket,
    address: SocketAddr,
    /// Whether the system takes a train as one message.
    has_trains: bool,
    dropped: u64,
    /// The last count of the system, which has 32 bits.
    dropped_low: u32,
}

impl BurstSocket {
    /// A socket at this address; port 0 lets the system choose.
    ///
    /// # Errors
    /// Those of the system.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        // Without larger buffers, or the count of what was dropped, it works as well.
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BUFFER_BYTES);
        let _ = rustix::net::sockopt::set_socket_send_buffer_size(&socket, SOCKET_BUFFER_BYTES);
        let _ = system_calls::count_dropped(socket.as_fd());
        let has_trains = system_calls::join_received(socket.as_fd()).is_ok();
        let address = socket.local_addr()?;
        Ok(Self { socket, address, has_trains, dropped: 0, dropped_low: 0 })
    }

    /// Adds what has come to `burst`, as far as there is room.
    pub(super) fn receive_more(&mut self, burst: &mut Burst) -> io::Result<()> {
        if burst.is_full() {
            return Ok(());
        }
        match system_calls::receive(self.socket.as_fd(), burst) {
            Ok(Some(dropped)) => {
                self.dropped += u64::from(dropped.wrapping_sub(self.dropped_low));
                self.dropped_low = dropped;
            }
            Ok(None) => {}
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Sends `trains` of `outgoing`; returns the number of datagrams that the system took.
    pub(super) fn send_trains(&mut self, outgoing: &Outgoing, trains: &[Train]) -> io::Result<usize> {
        if trains.is_empty() {
            return Ok(0);
        }
        if self.has_trains {
            return self.send(outgoing, trains);
        }
        let each: Vec<Train> = trains.iter().flat_map(|train| datagrams_of(*train)).collect();
        self.send(outgoing, &each)
    }

    /// Sends `trains`, each as one message; returns the number of datagrams that the system took.
    fn send(&mut self, outgoing: &Outgoing, trains: &[Train]) -> io::Result<usize> {
        let (mut sent, mut next) = (0, 0);
        while next < trains.len() {
            match system_calls::send(self.socket.as_fd(), outgoing, &trains[next..]) {
                Ok(messages) => {
                    let taken = &trains[next..trains.len().min(next + messages.max(1))];
                    sent += taken.iter().map(|train| train.count).sum::<usize>();
                    next += taken.len();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The buffer is full: the rest would not have room either.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    let train = trains[next];
                    next += 1;
                    let code = error.raw_os_error();
                    if train.len > train.segment_bytes
                        && matches!(code, Some(libc::EIO | libc::EINVAL | libc::EMSGSIZE))
                    {
                        // A device without checksums takes no trains, and an old system neither.
                        self.has_trains &= code == Some(libc::EMSGSIZE);
                        sent += self.send(outgoing, &datagrams_of(train))?;
                    } else if !is_passing(&error) && code != Some(libc::EMSGSIZE) {
                        return Err(error);
                    }
                }
            }
        }
        Ok(sent)
    }
}

/// The datagrams of a train, one by one. Only where the system takes no trains, which then costs an allocation.
#[cold]
fn datagrams_of(train: Train) -> Vec<Train> {
    let Train { peer, start, len, segment_bytes, .. } = train;
    let starts = (start..start + len.max(1)).step_by(segment_bytes.max(1));
    let each = starts.map(|at| {
        let len = segment_bytes.min(start + len - at);
        Train { peer, start: at, len, segment_bytes: len, count: 1 }
    });
    each.collect()
}

impl Datagrams for BurstSocket {
    fn receive_burst(&mut self, burst: &mut Burst) -> io::Result<usize> {
        burst.clear();
        self.receive_more(burst)?;
        Ok(burst.len())
    }

    fn send_burst(&mut self, outgoing: &mut Outgoing) -> io::Result<usize> {
        let sent = self.send_trains(outgoing, outgoing.trains());
        outgoing.clear();
        sent
    }

    fn wait(&mut self, timeout: Duration) -> io::Result<()> {
        wait(&self.socket, timeout)
    }

    fn dropped(&self) -> u64 {
        self.dropped
    }

    fn local_address(&self) -> SocketAddr {
        self.address
    }
}

impl AsFd for BurstSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
