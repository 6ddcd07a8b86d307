//! Data types over a [`Database`](crate::store::Database).
//!
//! A hash or a set is a *collection*: an item under the key, its header, has the collection's number and its length,
//! and the members are stored under that number. So a key is deleted, renamed, or gets an expiry by writing its header
//! alone; members without a header are removed in the background.

mod collection;
mod header;

pub(crate) use collection::{Collection, copy, create, id_of, read, write};
