//! What commands do to keys, for those who want to know: subscribers of keyspace events, and clients that keep values
//! which they have read.
//!
//! A command says what it has done by one call, `Context::changed`, after the write. Nobody pays for it while nobody
//! wants to know: one load, of [`Observers`]. Otherwise the change goes into the round's outbox, from which a
//! transaction that did not take effect takes it back, and leaves it after the commit.

mod change;
mod classes;
mod event;
mod expiries;
mod observers;
mod record;

pub(crate) use change::Change;
pub(crate) use classes::Classes;
pub(crate) use event::Event;
pub(crate) use expiries::{Expiries, expire_due};
pub(crate) use observers::{Observed, Observers};
pub(crate) use record::{missed, note_expiry, record, settle};
