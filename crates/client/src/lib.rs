//! A client for caches that serve datagrams (`alluvium serve --cache SIZE --udp PORT`), after MICA's client-assisted
//! direction (Lim's thesis, §5.3.2).
//!
//! ```no_run
//! use alluvium_client::Client;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut client = Client::connect("127.0.0.1:11300".parse()?)?;
//! client.set(b"key", b"value", 0)?;
//! assert_eq!(client.get(b"key")?.as_deref(), Some(&b"value"[..]));
//! # Ok(())
//! # }
//! ```
//!
//! A client learns from the server's directory which port has which keys, and a cookie without which it gets no other
//! reply. It gathers requests for one port in datagrams, sends a datagram again whose reply it misses, and gives up at
//! a deadline. Sockets and clocks enter by constructor, so tests run it in a simulated network.
//!
//! Goals: few system calls a request, bounded memory, no wrong answer whatever the network does. Non-goals: values that
//! are larger than a datagram ([`ClientError::TooLarge`]: use a connection), congestion control, threads.
//!
//! A write that was sent again, or that the network has doubled, may be executed once more later, up to the time that
//! datagrams spend in the network. Do not write a key from several clients if that matters.
#![forbid(unsafe_code)]

mod call;
mod client;
mod direction;
mod error;
mod options;
mod slot;
mod statistics;

pub use alluvium_protocol::datagram::{Operation, Request, Response, Status};
pub use client::Client;
pub use error::ClientError;
pub use options::ClientOptions;
pub use statistics::ClientStatistics;
