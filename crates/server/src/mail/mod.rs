//! Mail between workers: messages for clients whose connections belong to any worker.
//!
//! A message goes through the inbox of its recipient's worker. A worker sends what its clients have caused after the
//! commit of the round, so that no client hears about a write that a crash may take away. It takes the messages for its
//! own clients at the beginning of a round, before their requests: a client that has seen the reply to a write on one
//! connection finds what the write has caused on another connection in front of the replies to its later requests.

mod address;
mod message;
mod outbox;

pub(crate) use address::Address;
pub(crate) use message::{Content, Message};
pub(crate) use outbox::{Letters, Outbox};
