//! Publishing messages to the clients that have subscribed to their channels.
//!
//! A subscriber's connection belongs to one worker, and a message may come from any other: it goes through the inbox of
//! the subscriber's worker. A worker sends what its clients have published after the commit of the round, so that no
//! subscriber hears about a write that a crash may take away.

mod message;
mod subscribers;
mod subscriptions;

pub(crate) use message::{Message, Outbox};
pub(crate) use subscribers::{Address, Subscribers};
pub(crate) use subscriptions::{Subscriptions, Topic};
