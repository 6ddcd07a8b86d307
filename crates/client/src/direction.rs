//! [`Direction`]: where requests are sent, as far as the client knows.

use std::net::SocketAddr;
use std::time::Duration;

use alluvium_base::checksum::checksum64;
use alluvium_protocol::datagram::{
    DATAGRAM_BYTES_MAX, DIRECTORY_REQUEST_BYTES, Directory, Header, Kind, Padding, Writer,
};

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

    /// Where the requests of a key are sent.
    #[inline]
    pub(crate) fn address_of(&self, key: &[u8]) -> Option<SocketAddr> {
        let Known { directory, .. } = self.known.as_ref()?;
        let is_single = directory.partition_ports.len() == 1;
        let hash = if is_single { 0 } else { checksum64(key, directory.hash_seed) };
        Some(SocketAddr::new(self.server.ip(), directory.port_of(hash)))
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
        self.known = Some(Known { directory, epoch: header.epoch, cookie: header.cookie });
        true
    }
}
