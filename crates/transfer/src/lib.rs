//! Items as files, to move them from one store to another: JSON lines, CSV, or framed bytes with checksums.
//!
//! [`RecordWriter`] and [`RecordReader`] hold one record in memory at a time. A reader reports its position
//! ([`Position`]), and continues from there in a seekable file. Nothing here knows a database.
#![forbid(unsafe_code)]

mod binary;
mod byte_order_mark;
mod comma_separated;
mod entry;
mod error;
mod format;
#[doc(hidden)]
pub mod fuzz;
mod json_lines;
mod keyspace_head;
mod reader;
mod record;
#[cfg(test)]
mod tests;
mod text;
mod writer;

pub use entry::Entry;
pub use error::{Place, ReadError, Result};
pub use format::{Format, UnknownFormat};
pub use keyspace_head::{KeyspaceHead, KeyspaceOrder};
pub use reader::{Position, RecordReader};
pub use record::{KEY_BYTES_MAX, Record, VALUE_BYTES_MAX};
pub use writer::RecordWriter;
