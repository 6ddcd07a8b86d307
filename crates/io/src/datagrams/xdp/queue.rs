//! [`Queue`]: a socket for frames of one queue of an interface.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::xdp::{SocketAddrXdp, SocketAddrXdpFlags, XdpOptionsFlags};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, bind, send, socket_with, sockopt};

use super::super::burst::{Burst, SLOTS_MAX};
use super::super::frame::{ETHERNET_BYTES, Frame, Link, at_interface};
use super::super::outgoing::Train;
use super::super::{FrameCounts, Outgoing};
use super::interface::{Interface, patiently};
use super::program::header_bytes;
use super::rings::Rings;
use super::system_calls::Place;

/// How often the kernel is asked to send what is in the ring, which takes 32 frames or more each time.
const KICKS_MAX: usize = 16;
/// In how many calls the kernel's counts are read once.
const COUNTS_EVERY: u32 = 64;

/// The socket of a queue with the ways to those whose frames came last.
#[derive(Debug)]
pub(super) struct Queue {
    socket: OwnedFd,
    rings: Rings,
    interface: Arc<Interface>,
    address: SocketAddr,
    links: Links,
    counts: FrameCounts,
    calls: u32,
}

impl Queue {
    /// A socket for the frames to `address` in the queue of this number.
    ///
    /// # Errors
    /// Those of the system: there is no such queue, it has another socket, or memory may not be locked.
    pub(super) fn open(interface: &Arc<Interface>, number: u32, address: SocketAddr) -> io::Result<Self> {
        let family = AddressFamily::XDP;
        let socket = socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        let rings = Rings::new(socket.as_fd())?;
        // Otherwise the kernel copies only if the driver cannot do better.
        let flags = match interface.place() {
            Place::Stack => SocketAddrXdpFlags::XDP_COPY,
            Place::Driver => SocketAddrXdpFlags::empty(),
        };
        let place = SocketAddrXdp::new(flags, interface.index(), number);
        patiently(|| Ok(bind(&socket, &place)?))?;
        interface.direct(number, address.port(), socket.as_fd())?;
        let (links, counts) = (Links::default(), FrameCounts::default());
        Ok(Self { socket, rings, interface: Arc::clone(interface), address, links, counts, calls: 0 })
    }

    /// Whether the interface itself reads and writes the memory of the socket.
    pub(super) fn is_zero_copy(&self) -> bool {
        sockopt::xdp_options(&self.socket)
            .is_ok_and(|options| options.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY))
    }

    /// Adds what has come to `burst`, as far as there is room. Returns the number of frames that were taken.
    pub(super) fn receive(&mut self, burst: &mut Burst) -> usize {
        let Self { rings, interface, address, links, counts, .. } = self;
        links.clear();
        let unfinished = interface.unfinished();
        let taken = rings.receive(|bytes| {
            let frame = match Frame::parse(bytes, unfinished) {
                Ok(frame) if frame.to.ip() == address.ip() && frame.to.port() == address.port() => frame,
                _ => {
                    counts.refused += 1;
                    return true;
                }
            };
            let peer = at_interface(frame.from, interface.index());
            let has_room = burst.add(peer, frame.content);
            if has_room {
                counts.received += 1;
                links.note(peer, frame.link.reversed());
            }
            has_room
        });
        if rings.unsent() > 0 {
            self.kick();
        }
        self.calls = self.calls.wrapping_add(1);
        if taken == 0 || self.calls.is_multiple_of(COUNTS_EVERY) {
            self.count_dropped();
        }
        taken as usize
    }

    fn count_dropped(&mut self) {
        if let Ok(of_kernel) = sockopt::xdp_statistics(&self.socket) {
            // Kernels without the second number add it to the first.
            self.counts.dropped = of_kernel.rx_dropped + of_kernel.rx_ring_full.unwrap_or(0);
        }
    }

    /// The way to the peer of a train, if a frame of the last burst came from there and the packets are not too long
    /// for the interface.
    pub(super) fn way_to(&mut self, train: &Train) -> Option<Link> {
        let packet = header_bytes(self.address.ip()) - ETHERNET_BYTES + train.segment_bytes;
        if packet > self.interface.packet_bytes_max() { None } else { self.links.find(train.peer) }
    }

    /// Writes the frames of a train; [`Self::kick`] sends them. Returns the number of those for which there was memory:
    /// the others are lost.
    pub(super) fn send(&mut self, outgoing: &Outgoing, train: &Train, link: Link) -> usize {
        let bytes = outgoing.bytes_of(train);
        let segments = bytes.chunks(train.segment_bytes.max(1)).chain(bytes.is_empty().then_some(bytes));
        let mut sent = 0;
        for content in segments {
            let frame = Frame { link, from: self.address, to: train.peer, content };
            let mut is_sent = self.rings.send(|room| frame.write(room));
            if !is_sent {
                self.kick();
                is_sent = self.rings.send(|room| frame.write(room));
            }
            sent += usize::from(is_sent);
        }
        self.counts.sent += sent as u64;
        sent
    }

    /// Lets the kernel send what was written. What it does not take now stays in the ring until the next call.
    pub(super) fn kick(&mut self) {
        self.rings.publish();
        for _ in 0..KICKS_MAX {
            if self.rings.unsent() == 0 {
                break;
            }
            match send(&self.socket, &[], SendFlags::DONTWAIT) {
                // It has sent as many as it does at a time, or the device is busy.
                Ok(_) | Err(Errno::AGAIN | Errno::INTR | Errno::BUSY | Errno::NOBUFS) => {}
                // The interface is down or gone.
                Err(_) => break,
            }
        }
        self.rings.reclaim();
    }

    pub(super) fn counts(&self) -> FrameCounts {
        self.counts
    }

    #[cfg(test)]
    pub(super) fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Sends any bytes.
    #[cfg(test)]
    pub(super) fn send_bytes(&mut self, bytes: &[u8]) {
        let is_sent = self.rings.send(|room| {
            room[..bytes.len()].copy_from_slice(bytes);
            Some(bytes.len())
        });
        assert!(is_sent);
        self.kick();
    }

    /// As if a frame had come from the peer.
    #[cfg(test)]
    pub(super) fn note(&mut self, peer: SocketAddr, way: Link) {
        self.links.note(peer, way);
    }
}

impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The ways to the peers of the last burst. A burst has a slot for each time that the peer changes, so there are no
/// more ways than slots: peers that were made up take no memory.
#[derive(Debug)]
struct Links {
    links: Vec<(SocketAddr, Link)>,
    /// The one that was asked for last: replies are in the order of the burst.
    last: usize,
}

impl Default for Links {
    fn default() -> Self {
        Self { links: Vec::with_capacity(SLOTS_MAX), last: 0 }
    }
}

impl Links {
    fn clear(&mut self) {
        self.links.clear();
        self.last = 0;
    }

    fn note(&mut self, peer: SocketAddr, link: Link) {
        if let Some(last) = self.links.last_mut()
            && last.0 == peer
        {
            last.1 = link;
        } else if self.links.len() < SLOTS_MAX {
            self.links.push((peer, link));
        }
    }

    fn find(&mut self, peer: SocketAddr) -> Option<Link> {
        let (before, from) = self.links.split_at(self.last.min(self.links.len()));
        let place = from.iter().position(|link| link.0 == peer).map(|place| place + before.len());
        let place = place.or_else(|| before.iter().position(|link| link.0 == peer))?;
        self.last = place;
        Some(self.links[place].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_peers_take_no_memory() {
        let link = |number: u16| {
            let [high, low] = number.to_be_bytes();
            Link { from: [2, 0, 0, 0, 0, 1], to: [2, 0, 0, 0, high, low] }
        };
        let peer = |number: u16| SocketAddr::from(([10, 0, 0, 1], number));
        let mut links = Links::default();
        let capacity = links.links.capacity();
        for number in 0..10_000 {
            links.note(peer(number), link(number));
        }
        assert_eq!((links.links.len(), links.links.capacity()), (SLOTS_MAX, capacity));
        // Each is found, in any order; the newest way of a peer counts.
        for number in [3, 4, 4, 31, 0, 17, 2] {
            assert_eq!(links.find(peer(number)), Some(link(number)));
        }
        assert_eq!(links.find(peer(32)), None);
        links.clear();
        assert_eq!(links.find(peer(3)), None);
        links.note(peer(1), link(1));
        links.note(peer(1), link(2));
        assert_eq!(links.find(peer(1)), Some(link(2)));
    }
}
