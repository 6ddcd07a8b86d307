//! [`Directing`]: what all workers tell clients, and what they ask of them.

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::Arc;

use alluvium_io::Clock;
use alluvium_protocol::datagram::{DATAGRAM_BYTES_MAX, Directory, HashKind, Mode, PORTS_MAX};

use super::cookies::Cookies;

/// Partitions a worker, so that clients of later versions can divide the work otherwise.
const PARTITIONS_PER_WORKER: usize = 1;

/// The directory of a server with its epoch, and its cookies.
#[derive(Debug)]
pub(crate) struct Directing {
    /// Number of this directory. It is random, so that clients of an earlier server notice.
    pub(super) epoch: u16,
    /// The directory in the content of a datagram.
    pub(super) directory: Vec<u8>,
    pub(super) cookies: Cookies,
    /// The address whose port clients are told.
    pub(crate) address: SocketAddr,
}

impl Directing {
    /// Another directory of workers with these addresses, for clients that keep their cookies.
    #[cfg(test)]
    pub(super) fn redirected(&self, addresses: &[SocketAddr]) -> Self {
        let cookies = self.cookies.clone();
        let clock = cookies.clock();
        Self { cookies, ..Self::new(addresses, clock) }
    }

    /// A directory of workers with these addresses, of which there is one at least.
    pub(crate) fn new(addresses: &[SocketAddr], clock: Arc<dyn Clock>) -> Self {
        let random = RandomState::new();
        let workers = addresses.len().min(PORTS_MAX);
        let partitions = (workers * PARTITIONS_PER_WORKER).min(PORTS_MAX);
        let port = |number: usize| addresses[number % workers].port();
        let directory = Directory {
            mode: Mode::Shared,
            hash_kind: HashKind::Xxh3,
            hash_seed: random.hash_one(0),
            datagram_bytes_max: DATAGRAM_BYTES_MAX as u16,
            partition_ports: (0..partitions).map(port).collect(),
            worker_ports: (0..workers).map(port).collect(),
        };
        Self {
            epoch: random.hash_one(1) as u16,
            directory: directory.encode(),
            cookies: Cookies::new(clock),
            address: addresses[0],
        }
    }
}
