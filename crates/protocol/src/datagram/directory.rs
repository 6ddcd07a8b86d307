//! [`Directory`]: what a client has to know to send a request to the right port.

use super::{Malformed, u16_at, u64_at};

/// Bytes of a directory before its ports.
const HEAD_BYTES: usize = 16;
/// Maximum number of partitions, and of workers.
pub const PORTS_MAX: usize = 256;
/// The bit beside the mode of a server that hands requests over.
const HANDS_OVER: u8 = 0x80;

/// Which workers may execute a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    /// Each worker may execute all requests. Requests for one partition are sent to one worker all the same: they find
    /// its items in the caches of one processor, and are executed in the order in which they arrive.
    Shared = 0,
    /// Each partition has one worker, which alone reads and writes it.
    Exclusive = 1,
    /// Each partition has one worker, which alone writes it; all may read it.
    ConcurrentReads = 2,
}

impl Mode {
    /// Whether only the worker of a key's partition may execute a request.
    #[inline]
    pub fn needs_owner(self, is_write: bool) -> bool {
        match self {
            Self::Shared => false,
            Self::Exclusive => true,
            Self::ConcurrentReads => is_write,
        }
    }
}

/// How keys are hashed to find their partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum HashKind {
    /// XXH3 with 64 bits and the seed of the directory.
    Xxh3 = 1,
}

/// What a client has to know to send a request to the right port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    /// Which workers may execute a request.
    pub mode: Mode,
    /// Whether any worker takes any request, and hands it to one that may execute it. The responses to the requests of
    /// a datagram then come from one or several workers, each in a reply of its own.
    pub hands_over: bool,
    /// How keys are hashed.
    pub hash_kind: HashKind,
    /// The seed of these hashes.
    pub hash_seed: u64,
    /// Maximum bytes of a datagram to the server and from it.
    pub datagram_bytes_max: u16,
    /// The port of each partition, of which there is one at least.
    pub partition_ports: Vec<u16>,
    /// The port of each worker.
    pub worker_ports: Vec<u16>,
}

impl Directory {
    /// The number of the partition of a key with this hash.
    #[inline]
    pub fn partition_of(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.partition_ports.len() as u128) >> 64) as usize
    }

    /// The port for requests of a key with this hash.
    #[inline]
    pub fn port_of(&self, hash: u64) -> u16 {
        self.partition_ports.get(self.partition_of(hash)).copied().unwrap_or(0)
    }

    /// The content of a datagram with it.
    pub fn encode(&self) -> Vec<u8> {
        let handing = if self.hands_over { HANDS_OVER } else { 0 };
        let mut bytes = vec![self.mode as u8 | handing, self.hash_kind as u8];
        bytes.extend_from_slice(&(self.partition_ports.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&(self.worker_ports.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&self.datagram_bytes_max.to_le_bytes());
        bytes.extend_from_slice(&self.hash_seed.to_le_bytes());
        for port in self.partition_ports.iter().chain(&self.worker_ports) {
            bytes.extend_from_slice(&port.to_le_bytes());
        }
        bytes
    }

    /// The directory in the content of a datagram.
    ///
    /// # Errors
    /// [`Malformed::Invalid`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let (head, ports) = bytes.split_at_checked(HEAD_BYTES).ok_or(Malformed::Invalid)?;
        let mode = match head[0] & !HANDS_OVER {
            0 => Mode::Shared,
            1 => Mode::Exclusive,
            2 => Mode::ConcurrentReads,
            _ => return Err(Malformed::Invalid),
        };
        let hash_kind = if head[1] == 1 { HashKind::Xxh3 } else { return Err(Malformed::Invalid) };
        let (partitions, workers) = (usize::from(u16_at(head, 2)), usize::from(u16_at(head, 4)));
        let is_in_order = (1..=PORTS_MAX).contains(&partitions)
            && (1..=PORTS_MAX).contains(&workers)
            && ports.len() == 2 * (partitions + workers);
        if !is_in_order {
            return Err(Malformed::Invalid);
        }
        let ports = |range: std::ops::Range<usize>| range.map(|number| u16_at(ports, 2 * number)).collect();
        Ok(Self {
            mode,
            hands_over: head[0] & HANDS_OVER != 0,
            hash_kind,
            hash_seed: u64_at(head, 8),
            datagram_bytes_max: u16_at(head, 6),
            partition_ports: ports(0..partitions),
            worker_ports: ports(partitions..partitions + workers),
        })
    }
}
