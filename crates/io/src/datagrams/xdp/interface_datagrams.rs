//! [`InterfaceDatagrams`]: a UDP socket that can have a queue of an interface beside it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::epoll::{self, EventData, EventFlags};

use super::super::plain::wait;
use super::super::{Burst, BurstSocket, Datagrams, FrameCounts, Outgoing};
use super::interface::{Interface, XdpError};
use super::queue::Queue;
use super::system_calls::Place;

/// In how many bursts the system's socket is asked once, while frames come in each.
const SOCKET_EVERY: u32 = 8;

/// A UDP socket, which [`receive_frames`] can give a queue of a network interface. Datagrams then come by both: what
/// the program in the interface does not take comes by the socket. Replies to frames are frames; all else is sent by
/// the socket.
#[derive(Debug)]
pub struct InterfaceDatagrams {
    socket: BurstSocket,
    queue: Option<Ready>,
    bursts: u32,
}

/// A queue with the descriptor that is readable when the queue or the socket is.
#[derive(Debug)]
struct Ready {
    queue: Queue,
    both: OwnedFd,
}

/// What [`receive_frames`] has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XdpQueues {
    /// How many of the addresses have a queue of the interface.
    pub queues: usize,
    /// Whether the program runs in the driver. Otherwise it runs at the entrance of the network stack, which is slower.
    pub is_in_driver: bool,
    /// Whether the interface itself reads and writes the memory of the sockets. Otherwise the kernel copies.
    pub is_zero_copy: bool,
}

impl InterfaceDatagrams {
    /// A socket at this address, without a queue; port 0 lets the system choose.
    ///
    /// # Errors
    /// Those of the system.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        Ok(Self { socket: BurstSocket::bind(address)?, queue: None, bursts: 0 })
    }

    fn set_queue(&mut self, queue: Queue) -> io::Result<()> {
        let both = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&both, &self.socket, EventData::new_u64(0), EventFlags::IN)?;
        epoll::add(&both, &queue, EventData::new_u64(1), EventFlags::IN)?;
        self.queue = Some(Ready { queue, both });
        Ok(())
    }

    /// As if a frame of a peer had come.
    #[cfg(test)]
    pub(super) fn queue(&mut self) -> Option<&mut Queue> {
        self.queue.as_mut().map(|ready| &mut ready.queue)
    }
}

/// Lets sockets receive datagrams to their addresses in frames of the interface of this name, past the network stack
/// (AF_XDP). The first socket gets those of the interface's first queue, and so on; a socket for which there is no
/// queue stays as it is. All have the same IP address, which is one of the interface. Frames pass no rules of the
/// machine's packet filter. The program in the interface is there until the last of the sockets is closed, at the
/// latest when the process ends.
///
/// Each queue takes 1.5 MiB of memory that cannot be swapped.
///
/// # Errors
/// [`XdpError`] if no socket got a queue. All are as they were, then.
pub fn receive_frames(sockets: &mut [InterfaceDatagrams], interface: &str) -> Result<XdpQueues, XdpError> {
    let addresses: Vec<SocketAddr> = sockets.iter().map(Datagrams::local_address).collect();
    let Some(first) = addresses.first() else {
        return Ok(XdpQueues { queues: 0, is_in_driver: false, is_zero_copy: false });
    };
    let interface = Arc::new(Interface::open(interface, *first, addresses.len() as u32)?);
    let is_in_driver = interface.place() == Place::Driver;
    let mut found = XdpQueues { queues: 0, is_in_driver, is_zero_copy: true };
    let mut first_error = None;
    for (number, (socket, address)) in sockets.iter_mut().zip(addresses).enumerate() {
        let given = Queue::open(&interface, number as u32, address).and_then(|queue| {
            found.is_zero_copy &= queue.is_zero_copy();
            socket.set_queue(queue)
        });
        match given {
            Ok(()) => found.queues += 1,
            Err(error) => drop(first_error.get_or_insert(error)),
        }
    }
    match first_error {
        Some(error) if found.queues == 0 => Err(XdpError::at("open a socket for frames")(error)),
        _ => Ok(found),
    }
}

impl Datagrams for InterfaceDatagrams {
    fn receive_burst(&mut self, burst: &mut Burst) -> io::Result<usize> {
        let Some(Ready { queue, .. }) = &mut self.queue else { return self.socket.receive_burst(burst) };
        burst.clear();
        self.bursts = self.bursts.wrapping_add(1);
        let socket_first = self.bursts.is_multiple_of(SOCKET_EVERY);
        if socket_first {
            self.socket.receive_more(burst)?;
        }
        if queue.receive(burst) == 0 && !socket_first {
            self.socket.receive_more(burst)?;
        }
        Ok(burst.len())
    }

    fn send_burst(&mut self, outgoing: &mut Outgoing) -> io::Result<usize> {
        let Some(Ready { queue, .. }) = &mut self.queue else { return self.socket.send_burst(outgoing) };
        let trains = outgoing.trains();
        let (mut sent, mut next, mut outcome) = (0, 0, Ok(()));
        for (number, train) in trains.iter().enumerate() {
            let Some(way) = queue.way_to(train) else { continue };
            outcome = outcome
                .and(self.socket.send_trains(outgoing, &trains[next..number]).map(|count| sent += count));
            sent += queue.send(outgoing, train, way);
            next = number + 1;
        }
        outcome = outcome.and(self.socket.send_trains(outgoing, &trains[next..]).map(|count| sent += count));
        queue.kick();
        outgoing.clear();
        outcome.map(|()| sent)
    }

    fn wait(&mut self, timeout: Duration) -> io::Result<()> {
        wait(&*self, timeout)
    }

    fn dropped(&self) -> u64 {
        self.socket.dropped() + self.frames().dropped
    }

    fn frames(&self) -> FrameCounts {
        self.queue.as_ref().map(|ready| ready.queue.counts()).unwrap_or_default()
    }

    fn local_address(&self) -> SocketAddr {
        self.socket.local_address()
    }
}

impl AsFd for InterfaceDatagrams {
    /// Readable when a datagram has come in either way.
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.queue {
            Some(ready) => ready.both.as_fd(),
            None => self.socket.as_fd(),
        }
    }
}
