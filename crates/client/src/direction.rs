//! [`Direction`]: where requests are sent, as far as the client knows.

use std::net::SocketAddr;
use std::time::Duration;

use alluvium_base::checksum::checksum64;
use alluvium_protocol::datagram::{
    DATAGRAM_BYTES_MAX, DIRECTORY_REQUEST_BYTES, Directory, Header, Kind, Mode, Padding, Request, Writer,
};

/// Where a request is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// To the worker of its partition.
    Owner(SocketAddr),
    /// To any worker.
    Any,
}

/// Where requests are sent, as far as the client knows.
#[derive(Debug)]
pub(crate) struct Direction {
    server: SocketAddr,
    known: Option<Known>,
    /// Sequence and time of the last question.
    asked: Option<(u32, Duration)>,
}

#[derive(Debug)]
struct Known {
    directory: Directory,
    epoch: u16,
    cookie: u32,
    /// The worker that gets the next datagram that any worker may get.
    turn: usize,
}

impl Direction {
    pub(crate) fn new(server: SocketAddr) -> Self {
        Self { server, known: None, asked: None }
    }

    pub(crate) fn server(&self) -> SocketAddr {
        self.server
    }

    pub(crate) fn is_known(&self) -> bool {
        self.known.is_some()
    }

    /// What was known is wrong.
    pub(crate) fn forget(&mut self) {
        self.known = None;
    }

    /// Where a request is sent.
    #[inline]
    pub(crate) fn destination(&self, request: &Request<'_>) -> Option<Destination> {
        let Known { directory, .. } = self.known.as_ref()?;
        // Of requests that all workers may execute, those for one partition find its items in one processor's caches.
        // Reads of several partitions are spread over the workers, as in the paper.
        let is_read = directory.mode == Mode::ConcurrentReads && !request.operation.is_write();
        if directory.hands_over || is_read {
            return Some(Destination::Any);
        }
        let is_single = directory.partition_ports.len() == 1;
        let hash = if is_single { 0 } else { checksum64(request.key, directory.hash_seed) };
        Some(Destination::Owner(SocketAddr::new(self.server.ip(), directory.port_of(hash))))
    }

    /// The worker for the next datagram that any worker may get: one after the other.
    pub(crate) fn next_worker(&mut self) -> SocketAddr {
        let port = self.known.as_mut().and_then(|known| {
            known.turn = known.turn.wrapping_add(1);
            let ports = &known.directory.worker_ports;
            ports.get(known.turn % ports.len().max(1)).copied()
        });
        SocketAddr::new(self.server.ip(), port.unwrap_or_else(|| self.server.port()))
    }

    /// Whether replies to a datagram may also come from this worker, which did not receive it.
    pub(crate) fn may_answer(&self, peer: SocketAddr) -> bool {
        self.hands_over()
            && peer.ip() == self.server.ip()
            && self.known.as_ref().is_some_and(|known| known.directory.worker_ports.contains(&peer.port()))
    }

    /// Whether several workers may answer the requests of one datagram.
    pub(crate) fn hands_over(&self) -> bool {
        self.known.as_ref().is_some_and(|known| known.directory.hands_over)
    }

    /// Maximum bytes of a datagram with requests.
    pub(crate) fn datagram_bytes_max(&self) -> usize {
        self.known
            .as_ref()
            .map_or(DATAGRAM_BYTES_MAX, |known| usize::from(known.directory.datagram_bytes_max))
            .clamp(64, DATAGRAM_BYTES_MAX)
    }

    /// The header of a datagram with requests.
    pub(crate) fn header(&self, sequence: u32) -> Header {
        let (epoch, cookie) = self.known.as_ref().map_or((0, 0), |known| (known.epoch, known.cookie));
        Header { kind: Kind::Requests, epoch, cookie, sequence, count: 0 }
    }

    /// Whether it is time to ask for the directory.
    pub(crate) fn is_due(&self, now: Duration, again_after: Duration) -> bool {
        self.known.is_none() && self.asked.is_none_or(|(_, at)| now.saturating_sub(at) >= again_after)
    }

    /// Writes a question for the directory; returns its bytes.
    pub(crate) fn ask(&mut self, now: Duration, sequence: u32, out: &mut [u8]) -> usize {
        self.asked = Some((sequence, now));
        let header = Header { kind: Kind::AskDirectory, epoch: 0, cookie: 0, sequence, count: 0 };
        Writer::new(out).finish(header, Padding::To(DIRECTORY_REQUEST_BYTES))
    }

    /// Takes the directory of a reply, if it is the one to the last question. Returns whether it is.
    pub(crate) fn learn(&mut self, peer: SocketAddr, header: &Header, content: &[u8]) -> bool {
        let is_asked = self.asked.is_some_and(|(sequence, _)| sequence == header.sequence);
        if peer != self.server || !is_asked {
            return false;
        }
        let Ok(directory) = Directory::decode(content) else { return false };
        self.asked = None;
        // Clients begin with different workers.
        let (epoch, cookie, turn) = (header.epoch, header.cookie, header.cookie as usize);
        self.known = Some(Known { directory, epoch, cookie, turn });
        true
    }
}
