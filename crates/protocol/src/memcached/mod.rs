//! The classic text protocol and the meta protocol of memcached, from and to bytes.
//!
//! Source: `doc/protocol.txt` of memcached 1.6.38 and the observable behaviour of memcached 1.6.18, whose error lines
//! are kept word for word. The binary protocol, which memcached has deprecated, is not spoken.
//!
//! Goals, as for RESP: no copy of keys and values, a hard limit on everything a peer can make the server hold, and the
//! same requests however the bytes are cut. This module knows what words a request has, and not what an item is.
//!
//! | direction | type | cost |
//! |---|---|---|
//! | request bytes → request | [`Parser`], [`Request`] | one pass, no allocation, no state but positions |
//! | outcome → reply bytes | [`Reply`] | appends to the caller's buffer, allocates only when that grows |
//! | request → request bytes | [`Request::encode`] | for clients and tests |
//! | expiry times, arithmetic on values | [`Expiry`], [`Direction`], [`write_count`] | rules without a clock or a store |
//!
//! ```
//! use alluvium_protocol::memcached::{Answer, Limits, Parser, Progress, Reply, Request};
//!
//! let (mut parser, mut out) = (Parser::new(Limits::default()), Vec::new());
//! let mut input = &b"set greeting 0 60 5\r\nhello\r\nfrobnicate\r\nget gree"[..];
//! loop {
//!     let consumed = match parser.parse(input) {
//!         Progress::Complete { consumed, request: Request::Store { store, noreply } } => {
//!             assert_eq!((store.key.text(), store.value), (&b"greeting"[..], &b"hello"[..]));
//!             if !noreply {
//!                 Reply::new(&mut out).answer(Answer::Stored);
//!             }
//!             consumed
//!         }
//!         Progress::Complete { consumed, .. } | Progress::Skipped { consumed } => consumed,
//!         Progress::Refused { consumed, refusal } => {
//!             refusal.write(&mut out);
//!             assert!(!refusal.error.closes());
//!             consumed
//!         }
//!         Progress::Incomplete { .. } => break,
//!     };
//!     input = &input[consumed..];
//! }
//! assert_eq!(out, b"STORED\r\nERROR\r\n");
//! assert_eq!(input, b"get gree");
//! ```
//!
//! What differs from memcached 1.6.18, on purpose:
//! - keys with control characters, which the protocol forbids, are refused with the line for keys that are too long;
//!   the value behind such a key is skipped;
//! - numbers that do not fit are refused, and expiry times have 64 bits, where memcached's numbers wrap at 32 bits;
//! - a NUL does not end a line;
//! - lines of `gat` and `gats` may be as long as those of `get`, and all have a limit;
//! - flags `E` and `x`, flag `s` of `ms` and flag `N` of its modes `A` and `P` are understood, as in memcached 1.6.38;
//! - flag `b` is returned if the request has it, and not if the item was stored with it;
//! - errors in flag `O` are found before anything is carried out;
//! - an error takes no reply to an earlier request away, and is reported before its value is skipped.

mod base64;
mod classic;
mod counter;
mod echo;
mod encoder;
mod error;
#[cfg(test)]
mod error_test;
mod expiry;
mod flags;
mod key;
mod keys;
mod limits;
mod line;
mod meta;
mod meta_reply;
mod number;
mod parser;
#[cfg(test)]
mod parser_test;
mod refusal;
mod reply;
#[cfg(test)]
mod reply_test;
mod request;
mod statistics;
mod words;

pub use counter::{Direction, write_count};
pub use echo::Echo;
pub use error::Error;
pub use expiry::Expiry;
pub use key::{Key, KeyBuffer};
pub use keys::Keys;
pub use limits::Limits;
pub use meta::{MetaArithmetic, MetaDelete, MetaGet, MetaStore};
pub use meta_reply::{CountFacts, DebugFacts, ItemFacts, Outcome};
pub use parser::{Parser, Progress};
pub use refusal::Refusal;
pub use reply::{Answer, Reply};
pub use request::{Get, Request, Shutdown, Store, StoreMode};
pub use statistics::{Detail, Statistics};
