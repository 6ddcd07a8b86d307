//! Datagrams: MICA's network path (Lim's thesis, §5.2.2 and §5.3.2), for a store that is a cache.
//!
//! Each worker has a socket with a port of its own. A client learns the ports from a directory and sends a request to
//! the port of the key's partition. Without a network card that can be programmed, the port itself is the direction:
//! the kernel gives a worker what was sent to its port. What a worker may execute depends on the mode: everything, all
//! reads and the writes of its partitions, or only what its partitions are asked. The rest is answered `moved`, or is
//! handed to the owner (`handing`), if that was chosen instead of direction by clients.
//!
//! ```text
//!  receive_burst ──► admit: length, cookie, epoch ──► requests of all datagrams, in their order
//!                       │ no cookie, another epoch          │ gets: 32 at a time, looked up together
//!                       ▼                                   │ writes: at once, after the gets of the same key
//!                    16 bytes                               ▼
//!                                     replies, one a datagram, in a fixed arena ──► send_burst
//! ```
//!
//! A worker keeps nothing about peers. A cookie, which is a hash of the peer's address, the hour and a secret, proves
//! that the peer receives what is sent to its address. Without one, a peer gets at most as many bytes as it has sent.

mod batch;
mod bind;
#[cfg(test)]
mod client_test;
mod cookies;
mod counters;
mod directing;
mod handing;
#[cfg(test)]
mod handing_test;
mod items;
#[cfg(test)]
mod linearizability;
#[cfg(test)]
mod linearizability_test;
mod replies;
mod service;
#[cfg(test)]
mod service_test;
#[cfg(test)]
mod simulated_workers;

pub(crate) use bind::{WorkerSocket, bind, check};
pub(crate) use counters::{Counters, figures};
pub(crate) use directing::{Directing, Way};
pub(crate) use handing::Handing;
pub(crate) use items::Items;
pub(crate) use service::Service;
