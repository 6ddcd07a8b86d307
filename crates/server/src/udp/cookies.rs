//! [`Cookies`]: proofs that a peer receives what is sent to its address.

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use alluvium_io::Clock;

/// How long a cookie is given. It is accepted for as long again, at least.
pub(super) const COOKIE_TIME: Duration = Duration::from_secs(3600);

/// Makes and checks cookies: 32 bits of SipHash of the peer's address, the hour and a secret. Nothing is kept about
/// peers. A peer that guesses sends 2³¹ datagrams for one accepted, and only then to an address that is not its own.
#[derive(Clone, Debug)]
pub(super) struct Cookies {
    secret: RandomState,
    clock: Arc<dyn Clock>,
}

impl Cookies {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { secret: RandomState::new(), clock }
    }

    /// The number of the present hour, by which cookies differ.
    pub(super) fn hour(&self) -> u64 {
        self.clock.monotonic().as_secs() / COOKIE_TIME.as_secs()
    }

    /// The cookie of a peer in this hour.
    pub(super) fn of(&self, peer: SocketAddr, hour: u64) -> u32 {
        self.secret.hash_one((peer.ip(), peer.port(), hour)) as u32
    }

    /// Whether the peer was given this cookie in this hour or the one before.
    pub(super) fn accepts(&self, peer: SocketAddr, cookie: u32, hour: u64) -> bool {
        [Some(hour), hour.checked_sub(1)].into_iter().flatten().any(|hour| self.of(peer, hour) == cookie)
    }
}
