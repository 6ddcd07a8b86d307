//! The format of an item in memory. Items follow one another in a log.
//!
//! ```text
//!  word 0    [ 1 bit  | slack:20 | client flags? | expiry? | key length:17 | words:24 ]
//!  word 1    expiry, milliseconds since the cache was made     where "expiry?" is set
//!  word 1/2  client flags, low 32 bits                         where "client flags?" is set
//!  then      key bytes, value bytes, and `slack` bytes that are not used, up to the end of the last word
//! ```
//!
//! MICA's entry (Lim's thesis, §5.3.3) has key and value length, the initial item size, a 64-bit key hash and an expiry
//! in every item. Here `words` is the initial size and never changes, so that the log can be walked; the value's length
//! follows from it and the slack, so an update in place changes the slack. The hash is computed from the key when an
//! item is evicted, which trades 4 ns for 8 bytes. Only items that expire spend 8 bytes on an expiry.

mod fast;
mod header;
mod scratch;
mod site;
mod stored;
mod view;

pub(crate) use fast::{Fast, Room, Target, room};
pub use header::KEY_BYTES_MAX;
pub(crate) use header::{Header, ITEM_WORDS_MAX};
pub(crate) use scratch::Scratch;
pub(crate) use site::Site;
pub(crate) use stored::{Stored, Value};
pub(crate) use view::Metadata;
pub use view::{ItemView, Token};
