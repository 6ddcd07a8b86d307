//! Requests and responses in datagrams, after MICA's network path (Lim's thesis, §5.2.2 and §5.3.2).
//!
//! A datagram has a header of 16 bytes and then requests, responses, or the directory of a server. Everything is little
//! endian and aligned to 8 bytes. What follows the `length` of the header is padding of any content: it makes
//! datagrams of a train equally long, and a request for the directory as long as its reply may be.
//!
//! ```text
//! datagram   magic 1 | version 1 | epoch 2 | cookie 4 | sequence 4 | count 1 | kind 1 | length 2
//! request    operation 1 | 0 1 | key length 2 | value length 2 | 0 2 | opaque 4 | expiry in seconds 4 | key | value
//! response   status 1 | 0 1 | value length 2 | opaque 4 | value
//! directory  mode 1, with 0x80 if workers hand requests over | hash kind 1 | partitions 2 | workers 2
//!            | datagram bytes 2 | hash seed 8 | port of each partition 2 | port of each worker 2
//! ```
//!
//! All operations can be repeated, because a client sends a request again whose response it misses: there is no
//! increment and no append. Keys are not echoed; a response is found by its datagram's sequence and its opaque number.
//! Requests have no hash of the key, because a server would have to compute its own to be sure of it.
//!
//! Goals: no allocation and no copy, a datagram is executed whole or not at all, a reply always has room for a response
//! to every request. Non-goals: sockets, clocks, hashes.

mod content;
#[cfg(test)]
mod datagram_test;
mod directory;
mod header;
mod malformed;
mod request;
mod response;
mod writer;

pub use content::Content;
pub use directory::{Directory, HashKind, Mode, PORTS_MAX};
pub use header::{HEADER_BYTES, Header, Kind};
pub use malformed::Malformed;
pub use request::{Operation, REQUEST_HEAD_BYTES, Request};
pub use response::{RESPONSE_HEAD_BYTES, Response, Status};
pub use writer::{Padding, Writer};

/// Maximum bytes of a datagram: what Ethernet carries without fragments, also under IPv6.
pub const DATAGRAM_BYTES_MAX: usize = 1452;
/// Bytes of a request for the directory. The reply is not longer, so nobody can make a server send more than was sent
/// to it.
pub const DIRECTORY_REQUEST_BYTES: usize = 1200;
/// Maximum bytes of a value in a response.
pub const VALUE_BYTES_MAX: usize = (DATAGRAM_BYTES_MAX - HEADER_BYTES - RESPONSE_HEAD_BYTES) / 8 * 8;

/// Bytes that key and value, or a value, take with their padding.
const fn padded(bytes: usize) -> usize {
    bytes.next_multiple_of(8)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u16::from_le_bytes(*bytes))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
