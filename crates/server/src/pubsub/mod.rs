//! Publishing messages to the clients that have subscribed to their channels.

mod subscribers;
mod subscriptions;

pub(crate) use subscribers::Subscribers;
pub(crate) use subscriptions::{Subscriptions, Topic};
