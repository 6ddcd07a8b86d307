//! Datagrams in bursts: one call receives those that have come, another sends many.
//!
//! [`Datagrams`] has three implementations. [`SystemDatagrams`] is a UDP socket: on Linux with `recvmmsg` and
//! `sendmmsg`, and with trains, which are equally long datagrams to one peer that pass the network stack as one (GSO
//! and GRO); elsewhere with one system call a datagram ([`PlainDatagrams`]). [`SimulatedDatagrams`] is an end of a
//! network in memory that loses, doubles and reorders by a seed. On Linux, a fourth one also receives frames past the
//! network stack (`InterfaceDatagrams`, AF_XDP).
//!
//! Goals: no allocation after the start, bounded memory, a datagram costs a fraction of a system call. Non-goals:
//! reliability, flow control.
//!
//! A [`Frame`] is what carries a datagram in an Ethernet.
//!
//! `quinn-udp` sends one train a call and does not say how many datagrams the system dropped; `nix` has one segment
//! length for all messages of a call. So the calls are made here, in the leaf module `system_calls`.

mod burst;
mod frame;
mod outgoing;
mod plain;
mod simulated;
#[cfg(target_os = "linux")]
mod socket;
#[cfg(target_os = "linux")]
mod system_calls;
#[cfg(test)]
mod tests;
#[cfg(target_os = "linux")]
mod xdp;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

pub use burst::Burst;
pub use frame::{Frame, Link, NoDatagram, Unfinished};
#[doc(hidden)]
pub use frame::{fuzz_frame, fuzz_frame_samples};
pub use outgoing::Outgoing;
pub use plain::PlainDatagrams;
pub use simulated::{NetworkFaults, SimulatedDatagrams, SimulatedNetwork};
#[cfg(target_os = "linux")]
pub use socket::BurstSocket;
#[cfg(target_os = "linux")]
pub use xdp::{InterfaceDatagrams, XdpError, XdpQueues, receive_frames};

/// The best kind of UDP socket of this system.
#[cfg(target_os = "linux")]
pub type SystemDatagrams = BurstSocket;
/// The best kind of UDP socket of this system.
#[cfg(not(target_os = "linux"))]
pub type SystemDatagrams = PlainDatagrams;

/// A UDP socket that can have a queue of a network interface beside it, where this system has such queues.
#[cfg(target_os = "linux")]
pub type ServerDatagrams = InterfaceDatagrams;
/// A UDP socket that can have a queue of a network interface beside it, where this system has such queues.
#[cfg(not(target_os = "linux"))]
pub type ServerDatagrams = PlainDatagrams;

/// Frames that passed the network stack by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCounts {
    /// Datagrams received in frames.
    pub received: u64,
    /// Datagrams sent in frames.
    pub sent: u64,
    /// Frames that had no whole datagram for this address.
    pub refused: u64,
    /// Frames for this address that the system has dropped because too many waited.
    pub dropped: u64,
}

/// An address that receives and sends datagrams in bursts. Only [`Datagrams::wait`] waits.
pub trait Datagrams {
    /// Receives datagrams that have come, in place of the contents of `burst`, as far as there is room. Returns their
    /// number.
    ///
    /// # Errors
    /// Those of the system that are not about a single peer.
    fn receive_burst(&mut self, burst: &mut Burst) -> io::Result<usize>;

    /// Sends all of `outgoing` and leaves it empty. Returns the number of datagrams that the system took; the others
    /// are lost, as the network may lose them.
    ///
    /// # Errors
    /// Those of the system that are not about a single peer.
    fn send_burst(&mut self, outgoing: &mut Outgoing) -> io::Result<usize>;

    /// Waits until a datagram has come, or for this long. In a simulated network, a step passes.
    ///
    /// # Errors
    /// Those of the system.
    fn wait(&mut self, timeout: Duration) -> io::Result<()>;

    /// Number of datagrams for this address that the system has dropped because too many waited, if it says so.
    fn dropped(&self) -> u64;

    /// The datagrams that came and went in frames past the network stack; they are among all others.
    fn frames(&self) -> FrameCounts {
        FrameCounts::default()
    }

    /// The address.
    fn local_address(&self) -> SocketAddr;
}

/// Maximum bytes of a train, headers excluded.
const TRAIN_BYTES_MAX: usize = 65_000;
/// Maximum datagrams in a train. Linux takes 64 or more.
const TRAIN_DATAGRAMS_MAX: usize = 64;
/// What sockets ask for as their buffers; the system may grant less.
const SOCKET_BUFFER_BYTES: usize = 4 << 20;
