//! Frames past the network stack: AF_XDP.
//!
//! ```text
//!  interface ──► program: for us, in this queue? ──yes──► receive ring ──► Frame::parse ──► Burst
//!                   │ no, fragment, too long, ...            ▲ fill ring        │ way back
//!                   ▼                                        └──────────────────┤
//!                 kernel ──► UDP socket ──► Burst                               ▼
//!                 kernel ◄── UDP socket ◄── Outgoing ──► a way is known? ──► send ring ──► interface
//! ```
//!
//! In MICA (Lim's thesis, §5.2.2) the card puts a request into the queue of its core. Here a worker has the socket of
//! one queue, and the program gives it what came in this queue for the worker's port; the card can be told to choose
//! queues by port. A socket can only have frames of its own queue, so datagrams that come in another queue go through
//! the kernel to the worker's UDP socket, as do those that the program does not understand. So nothing is lost that a
//! UDP socket alone would have received.
//!
//! A reply goes back to where the frame came from, so neither addresses nor routes are looked up. Ways are known only
//! until the next burst: nothing is kept about peers.
//!
//! Goals: bounded memory, nothing to install, a program that is gone when the process is. Non-goals: fragments, VLANs,
//! frames of several pieces, and setting up the card.
//!
//! The crate `xdp` (0.8) has such rings, too. Its surface is unsafe where ours would begin, its counters overflow in
//! builds that check arithmetic, and it loads no programs, so what it would save is 200 lines.

mod interface;
mod interface_datagrams;
mod program;
mod queue;
mod rings;
mod system_calls;
#[cfg(test)]
mod tests;

pub use interface::XdpError;
pub use interface_datagrams::{InterfaceDatagrams, XdpQueues, receive_frames};

/// Maximum number of frames that wait to be received.
const RECEIVED_MAX: u32 = 512;
/// Maximum number of frames that wait to be sent.
const SENT_MAX: u32 = 256;
/// Maximum bytes of a frame: what the kernel leaves of half a page.
const FRAME_BYTES_MAX: usize = 2048 - 256;
