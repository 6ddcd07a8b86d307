//! Large items in files of their own: blob files, referenced from logs and tables. SILT (§4) also keeps large values
//! outside its stores; the collection is WiscKey's (Lu et al., FAST 2016, §3.3.3), with exact counts of live bytes.
//!
//! A large item is written once, to the end of the current blob file. Log and tables contain a [`Reference`], which
//! code that moves items treats like any other item. The live bytes of a file are counted when references are added and
//! removed ([`live`]); files with much garbage are emptied by copying the live records ([`collect`]).

pub(crate) mod chunk_encoder;
mod file;
mod file_header;
pub(crate) mod frame;
mod large_value;
mod live;
mod live_bytes;
mod read_ahead;
mod reader;
mod reference;
mod salvage;
mod span;
mod store;
mod stored_key;
mod tail;
#[cfg(test)]
mod tests;
mod walk;

pub(crate) use file::{BlobFile, BlobFiles, GATHER_BYTES};
pub(crate) use frame::RecordHeader;
pub(crate) use large_value::{LargeValue, PIECES_MAX, Pieces, TAIL_BYTES_MAX};
pub(crate) use live::{ReferenceCounts, VersionBlobs};
pub(crate) use reader::RecordReader;
pub(crate) use reference::Reference;
pub(crate) use store::Blobs;
pub(crate) use stored_key::{INLINE_KEY_BYTES_MAX, StoredKey, is_stand_in, stand_in_digest};
pub(crate) use walk::walk;
