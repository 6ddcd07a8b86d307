//! [`Directing`]: what all workers tell clients, and what they ask of them.

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::Arc;

use alluvium_base::checksum::checksum64;
use alluvium_io::Clock;
use alluvium_protocol::datagram::{
    Content, DATAGRAM_BYTES_MAX, Directory, HashKind, Mode, PORTS_MAX, Request,
};

use super::cookies::Cookies;

/// Partitions a worker, so that clients of later versions can divide the work otherwise.
const PARTITIONS_PER_WORKER: usize = 1;

/// How requests reach the worker that may execute them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// Which workers may execute a request.
    pub(crate) mode: Mode,
    /// Whether workers hand requests over. Otherwise clients send them to the right worker, or again.
    pub(crate) hands_over: bool,
}

/// The directory of a server with its epoch, and its cookies.
#[derive(Debug)]
pub(crate) struct Directing {
    /// Number of this directory. It is random, so that clients of an earlier server notice.
    pub(super) epoch: u16,
    directory: Directory,
    /// The directory in the content of a datagram.
    pub(super) encoded: Vec<u8>,
    /// Number of the worker of each partition.
    owners: Vec<usize>,
    pub(super) cookies: Cookies,
    /// The address whose port clients are told.
    pub(crate) address: SocketAddr,
}

impl Directing {
    /// A directory of workers with these addresses, of which there is one at least, by the hash with this seed or with
    /// any.
    pub(crate) fn new(addresses: &[SocketAddr], way: Way, clock: Arc<dyn Clock>, seed: Option<u64>) -> Self {
        let ports: Vec<u16> = addresses.iter().take(PORTS_MAX).map(SocketAddr::port).collect();
        Self::of(addresses[0], &ports, way, Cookies::new(clock), 0, seed)
    }

    /// Another directory of the same workers, for clients that keep their cookies: each partition is that of the worker
    /// which is `moved` further.
    #[cfg(test)]
    pub(super) fn redirected(&self, moved: usize) -> Self {
        let Directory { mode, hands_over, worker_ports, .. } = &self.directory;
        let way = Way { mode: *mode, hands_over: *hands_over };
        Self::of(self.address, worker_ports, way, self.cookies.clone(), moved, None)
    }

    fn of(
        address: SocketAddr,
        ports: &[u16],
        way: Way,
        cookies: Cookies,
        moved: usize,
        seed: Option<u64>,
    ) -> Self {
        let random = RandomState::new();
        let partitions = (ports.len() * PARTITIONS_PER_WORKER).min(PORTS_MAX);
        let owners: Vec<usize> = (0..partitions).map(|number| (number + moved) % ports.len()).collect();
        let directory = Directory {
            mode: way.mode,
            hands_over: way.hands_over,
            hash_kind: HashKind::Xxh3,
            hash_seed: seed.unwrap_or_else(|| random.hash_one(0)),
            datagram_bytes_max: DATAGRAM_BYTES_MAX as u16,
            partition_ports: owners.iter().map(|owner| ports[*owner]).collect(),
            worker_ports: ports.to_vec(),
        };
        let encoded = directory.encode();
        Self { epoch: random.hash_one(1) as u16, directory, encoded, owners, cookies, address }
    }

    /// Whether a worker of the wrong number hands a request over.
    #[inline]
    pub(super) fn hands_over(&self) -> bool {
        self.directory.hands_over
    }

    /// The number of the only worker that may execute a request; `None` if all may.
    #[inline]
    pub(super) fn owner_of(&self, request: &Request<'_>) -> Option<usize> {
        if !self.directory.mode.needs_owner(request.operation.is_write()) {
            return None;
        }
        let hash = checksum64(request.key, self.directory.hash_seed);
        self.owners.get(self.directory.partition_of(hash)).copied()
    }

    /// Whether the worker of this number may execute all requests of a datagram.
    #[inline]
    pub(super) fn may_execute(&self, number: usize, requests: &Content<'_, Request<'_>>) -> bool {
        self.directory.mode == Mode::Shared
            || requests.clone().all(|request| self.may_execute_one(number, &request))
    }

    /// Whether the worker of this number may execute a request.
    #[inline]
    pub(super) fn may_execute_one(&self, number: usize, request: &Request<'_>) -> bool {
        self.owner_of(request).is_none_or(|owner| owner == number)
    }
}
