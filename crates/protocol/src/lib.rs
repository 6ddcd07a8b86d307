//! The Redis serialization protocol, from and to bytes: requests in RESP2 and inline form, replies in RESP2 and RESP3.
//! Beside it, in [`memcached`], the two text protocols of memcached, and in [`datagram`] a protocol of our own for
//! datagrams.
//!
//! Source: the Redis protocol specification (<https://redis.io/docs/latest/develop/reference/protocol-spec/>) and the
//! observable behaviour of Redis 7.0.15, whose error texts are kept word for word.
//!
//! Goals: no copy of arguments, no memory reserved for bytes that were only announced, a hard limit on everything a
//! peer can make us hold, and the same frames however the bytes are cut. Non-goals: sockets, clocks, commands; this
//! crate does not know what `GET` means.
//!
//! | direction | type | cost |
//! |---|---|---|
//! | request bytes → arguments | [`Parser`], [`parse`] | one pass, 8 bytes of state an argument |
//! | reply → bytes | [`Reply`] | appends to the caller's buffer, allocates only when that grows |
//! | datagram ↔ requests, responses | [`datagram`] | one pass, no allocation |
//! | value of `DUMP` ↔ bytes | [`dump`] | one pass, a copy of the strings |
//! | arguments → request bytes, reply bytes → [`Value`] | [`request::encode`], [`Value::decode`] | for clients and tests |
#![forbid(unsafe_code)]

pub mod datagram;
pub mod dump;
pub mod fuzz;
pub mod integer;
pub mod memcached;
pub mod request;

mod arguments;
mod error;
mod inline;
mod limits;
mod parser;
#[cfg(test)]
mod parser_test;
mod reply;
mod value;

pub use arguments::Arguments;
pub use error::ProtocolError;
pub use limits::Limits;
pub use parser::{Frame, Parser, Progress, parse};
pub use reply::{Reply, Room, Version};
pub use value::Value;
